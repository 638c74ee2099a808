"""Experiments: a folder each, with its code, settings, tests and result. They import the package, never the reverse."""
