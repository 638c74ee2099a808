"""Training runs: run directories, models to start training from, items to evaluate, and the training machine."""
