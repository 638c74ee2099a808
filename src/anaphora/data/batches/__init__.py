"""From examples and texts to the tensors that a model reads."""
