"""Runs: their directories, settings, start weights and items, and the machine and processes that train them."""
