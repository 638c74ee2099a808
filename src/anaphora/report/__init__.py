"""Scores and rows -> figures, tables and files."""
