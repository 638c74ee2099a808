"""Run directories: their files, settings, start weights and items."""
