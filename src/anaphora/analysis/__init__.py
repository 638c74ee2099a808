"""Analysis of attention maps: scores of heads, choice of a head, causal tests and evidence; without Lightning."""
