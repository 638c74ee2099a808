"""Sections of the page, one question each."""
