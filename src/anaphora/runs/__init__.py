"""Training runs: run directories, models from which training starts, items to evaluate, and the training machine."""
