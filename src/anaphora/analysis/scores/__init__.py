"""From maps to scores of heads, with their baselines and intervals."""
