"""Encoders of other people: their settings and their weights."""
