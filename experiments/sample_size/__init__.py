"""How many items and how many seeds does a claim need? docs/sample_size.md explains the answer."""
