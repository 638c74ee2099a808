"""Training runs: directories with settings and weights, start models, items to evaluate, machine and processes."""
