"""Evidence on whether a head of a model picks antecedents: scores, controls, fixed protocol and verdict."""
