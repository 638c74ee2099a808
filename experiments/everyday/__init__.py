"""Does training on everyday scenes help with the sentences that people type first? README.md has the answer."""
