"""The live page: type a sentence and see maps and answers of models at once, on this machine only."""
