"""HTML page of the report, which works offline."""
