"""What each command is asked for."""
