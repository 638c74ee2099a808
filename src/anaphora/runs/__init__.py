"""Runs: their directories, settings, initial weights and items, and the machine and processes that train them."""
