"""Errors, files, checks and language rules shared by the whole package; imports no other subpackage."""
