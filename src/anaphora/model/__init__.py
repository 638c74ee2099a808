"""The model, from token ids to hidden states to answers; independent of where the data come from."""
