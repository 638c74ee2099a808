"""The sections of the page, one question each."""
