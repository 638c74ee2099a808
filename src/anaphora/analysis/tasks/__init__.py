"""Tasks beyond the headline: GAP, antecedent selection, labels, folds."""
