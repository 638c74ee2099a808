"""Batches of input tensors, made from examples and texts."""
