"""Shortcut baselines: predictions of antecedents that need no attention, such as "the nearest name"."""
