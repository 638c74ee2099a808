"""Data: from text to examples, tokens and batches."""
