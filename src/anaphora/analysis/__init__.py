"""Analysis of attention maps: scores of heads, choice of a head, causal tests, and all results of a run (`evidence`).

The modules do not use Lightning.
"""
