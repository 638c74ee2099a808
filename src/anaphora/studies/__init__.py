"""Studies: experiments with a question, several recipes (cells) and seeds, rules that decide the answer, and a page."""
