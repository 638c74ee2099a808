"""Shortcuts: what scores without understanding, and how far it gets."""
