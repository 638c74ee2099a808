"""The offline page of the report."""
