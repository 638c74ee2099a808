"""Code shared by several commands: settings, input and output."""
