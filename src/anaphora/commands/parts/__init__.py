"""Parts shared by several commands: settings, and reading and writing of files."""
