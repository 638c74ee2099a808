"""Readers of public corpora, one each, and of a user's own table."""
