"""Evaluation tasks beyond the main result: GAP, antecedent selection, labels, cross-validation and transfer."""
