"""The settings of each command."""
