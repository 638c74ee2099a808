"""Shortcut baselines and their accuracies."""
