"""The commands, one module for each, named after the command."""
