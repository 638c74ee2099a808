"""Measures of heads; each module holds a measure's result class and computation."""
