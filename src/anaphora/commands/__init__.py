"""Commands, each in a module named after the command."""
