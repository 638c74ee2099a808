"""Verification that attention maps read from a model of `transformers` are the weights that multiply its values."""
