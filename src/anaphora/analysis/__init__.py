"""Analysis of attention maps: scores of heads, choice of a head, causal tests and evidence.

The modules do not use Lightning.
"""
