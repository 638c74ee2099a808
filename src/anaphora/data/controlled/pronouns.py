"""Pronouns of the controlled corpus by language, gender, number and form."""

from __future__ import annotations

SUBJECT, OBJECT, POSSESSIVE, REFLEXIVE = "he", "him", "his", "himself"
PRONOUN_FORMS = (SUBJECT, OBJECT, POSSESSIVE, REFLEXIVE)
PRONOUNS = {
    "en": {
        ("male", "singular"): ("he", "him", "his", "himself"),
        ("female", "singular"): ("she", "her", "her", "herself"),
        ("neuter", "singular"): ("it", "it", "its", "itself"),
        ("male", "plural"): ("they", "them", "their", "themselves"),
        ("female", "plural"): ("they", "them", "their", "themselves"),
        ("neuter", "plural"): ("they", "them", "their", "themselves"),
    },
    "zh": {
        ("male", "singular"): ("他", "他", "他的", "他自己"),
        ("female", "singular"): ("她", "她", "她的", "她自己"),
        ("neuter", "singular"): ("它", "它", "它的", "它自己"),
        ("male", "plural"): ("他们", "他们", "他们的", "他们自己"),
        ("female", "plural"): ("她们", "她们", "她们的", "她们自己"),
        ("neuter", "plural"): ("它们", "它们", "它们的", "它们自己"),
    },
}
FORM_WORDS = {"him": OBJECT, "himself": REFLEXIVE, "他": OBJECT, "他自己": REFLEXIVE}
"""Pronoun form of each word that a reflexive scenario may give for the slot {form}."""


def pronoun(language: str, form: str, gender: str, number: str) -> str:
    """Return the pronoun for a form (one of `PRONOUN_FORMS`) and the antecedent's gender and number."""
    return PRONOUNS[language][gender, number][PRONOUN_FORMS.index(form)]
