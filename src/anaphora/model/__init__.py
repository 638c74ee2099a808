"""Model that predicts antecedents (or labels) from token ids, independent of the data source."""
