"""Evidence on a run: scores of the chosen head, controls, fixed protocol and verdict, with their data classes."""
