"""Pronoun questions made out of plain English text, whose answers rules know and nobody has checked: silver data."""
