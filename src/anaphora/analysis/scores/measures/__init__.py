"""Measures of heads, each in a file with its result class and its computation."""
