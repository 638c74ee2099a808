"""Does training on everyday scenes help with the sentences that users type first? The results are in README.md."""
