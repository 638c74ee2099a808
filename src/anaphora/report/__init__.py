"""Reports: figures, tables and files from scores and attention rows."""
