"""Tasks beyond the main result: GAP, antecedent selection, labels, cross-validation, transfer, extraction of rows."""
