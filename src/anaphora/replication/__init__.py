"""A published measurement again on this package's encoder: attention maps against ablation importance."""
