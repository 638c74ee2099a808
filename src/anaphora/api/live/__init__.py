"""The live page: type a sentence and see the maps and answers of your models at once, on this machine alone."""
