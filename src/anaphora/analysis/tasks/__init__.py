"""Questions other than the headline: GAP, antecedent selection, labels, folds."""
