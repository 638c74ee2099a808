"""Verification that the maps of a model of `transformers` are the attention weights that it applies to its values."""
