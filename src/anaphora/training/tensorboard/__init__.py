"""TensorBoard output of a run."""
