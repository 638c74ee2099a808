"""What several commands share: settings, and how files are read and written."""
