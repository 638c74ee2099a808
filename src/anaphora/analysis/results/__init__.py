"""Results shared by several parts of the analysis, as dataclasses, and their conversion to JSON."""
