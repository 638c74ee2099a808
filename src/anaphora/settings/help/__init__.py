"""What the command line says of settings: the help of a command, and what was meant by a wrong argument."""
