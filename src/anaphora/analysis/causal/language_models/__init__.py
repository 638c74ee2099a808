"""Causal tests of language models: a candidate is scored in the pronoun's place, with attention edited on the way."""
