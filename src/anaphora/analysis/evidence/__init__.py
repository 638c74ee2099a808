"""The evidence on a run: headline, protocol, controls, verdict, and the classes of metrics.json."""
