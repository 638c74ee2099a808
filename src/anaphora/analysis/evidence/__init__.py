"""Evidence on a run: scores of the chosen head, protocol, controls and verdict, with the classes of metrics.json."""
