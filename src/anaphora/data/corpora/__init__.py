"""One small reader per public corpus, and one for a user's own table."""
