"""Evidence on a run: headline scores, protocol, controls and verdict, with the classes of metrics.json."""
