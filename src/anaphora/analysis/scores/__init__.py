"""Scores of attention heads, computed from attention maps, with baselines and intervals."""
