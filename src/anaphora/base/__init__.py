"""Common base of all rooms: errors, files, checks, text and language rules; imports no other room."""
