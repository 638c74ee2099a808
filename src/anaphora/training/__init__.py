"""Settings -> a run directory, through Lightning."""
