"""Studies over many runs: a question, cells with seeds, rules for the verdict, and a page with the results."""
