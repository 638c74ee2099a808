"""Scores of heads computed from maps, with baselines and intervals."""
