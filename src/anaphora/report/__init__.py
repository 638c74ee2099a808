"""Figures, tables and pages made from scores and attention rows."""
