"""Figures, tables and HTML pages that show the results of the analysis."""
