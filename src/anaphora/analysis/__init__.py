"""Analysis of attention: maps, scores, choice of a head, causal tests and evidence; independent of Lightning."""
