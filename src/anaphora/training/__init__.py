"""Training with Lightning: from settings to a run directory."""
