"""Analysis of attention maps: scores and choice of heads, causal tests, and all results of a run (`evidence`)."""
