"""Help on settings: the help of a command, and suggestions for an invalid argument."""
