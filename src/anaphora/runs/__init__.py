"""Run directories: their files, their starting weights, and their re-use."""
