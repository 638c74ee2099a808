"""How many items and seeds does a claim need? The answer is in docs/sample_size.md."""
