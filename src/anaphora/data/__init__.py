"""Text -> Example -> Tokens -> Batch."""
