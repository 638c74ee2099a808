"""Settings of the model: encoder, attention, positions, prediction head."""
