"""Offline page of the report."""
