"""One file for each command, named as the user types it."""
