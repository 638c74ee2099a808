"""The typed evidence: its parts, its place in metrics.json, and how files of older versions are read."""
