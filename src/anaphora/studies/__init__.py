"""Studies over many runs: a question, cells, seeds, a budget, a rule, and one page that answers."""
