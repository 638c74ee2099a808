"""Corpora, examples, tokenizers and batches."""
