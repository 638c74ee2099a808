"""Studies over many runs: question, cells, seeds, budget, rule, and a page with the answer."""
