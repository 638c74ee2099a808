"""Batches: from examples and texts to the model's input tensors."""
