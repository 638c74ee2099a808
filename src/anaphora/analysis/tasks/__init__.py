"""Further tasks: GAP, antecedent selection, text labels, cross-validation, transfer to other data, extraction."""
