"""Pretrained encoders: their settings and weights."""
