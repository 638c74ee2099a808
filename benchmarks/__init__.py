"""Measurements of speed, and the comparison of two commits. They import the package, never the reverse."""
