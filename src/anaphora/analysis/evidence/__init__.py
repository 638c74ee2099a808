"""The evidence on a run: headline, protocol, controls, verdict, and the schema of metrics.json."""
