"""Further evaluations: GAP, accuracy of answers and labels, heads as antecedent selectors; export of attention rows."""
