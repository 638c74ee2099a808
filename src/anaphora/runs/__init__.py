"""A run directory: what stands in it, where it starts from, and whether it can be used again."""
