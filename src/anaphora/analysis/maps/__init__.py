"""Attention maps: the rows of a pronoun, and five other kinds of map."""
