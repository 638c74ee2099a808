"""The measures of heads, one in each file: what it returns, and what computes it."""
