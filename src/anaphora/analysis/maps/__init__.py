"""Attention maps: raw attention rows of a pronoun, and five derived kinds of map."""
