"""Causal tests of language models, which score each candidate in place of the pronoun."""
