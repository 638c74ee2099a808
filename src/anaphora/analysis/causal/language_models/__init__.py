"""Causal tests of language models: candidates are scored in place of the pronoun, with attention edited."""
