"""Verification that the maps of a model of `transformers` are the attention weights with which it mixes values."""
