"""Readers of public corpora and of a user's own tables."""
