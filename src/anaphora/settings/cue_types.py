"""Cue types of the built-in corpus, under the names used in the setting `data.types`.

A cue is the word or phrase that decides which candidate the pronoun refers to. With a set cue, such as gender, the
words alone decide, in any order. With a role cue, such as voice, it matters who did what to whom.
"""

from __future__ import annotations

from collections.abc import Sequence

from anaphora.base.checks import one_of
from anaphora.base.errors import UserError
from anaphora.base.language import LANGUAGES

SET_CUE_TYPES = ("selection", "gender", "number", "animacy")  # cues that decide in any order of candidates
ROLE_CUE_TYPES = {
    "en": ("causality", "winograd", "voice", "reflexive"),
    "zh": ("causality", "winograd", "voice", "reflexive", "ba_bei"),
}
"""Cue types that depend on the participants' semantic roles (who did what to whom), by language."""
BINDING = "binding"  # optional role-cue type: reflexives whose form does not reveal which name is the antecedent
COMPOSITION = "composition"
"""Optional cue type: sets of eight sentences in which predicate, state and voice determine the antecedent."""
SHORT_TEXT = "short_text"  # optional cue type: compositions told in a few sentences, most of which repeat the names
ALL_TYPES = tuple(dict.fromkeys((*SET_CUE_TYPES, *sum(ROLE_CUE_TYPES.values(), ()), BINDING, COMPOSITION, SHORT_TEXT)))
MAX_TRAINING_ASIDES = 3  # maximum number of asides (inserted sentences) before a pronoun in the training split


def role_cue_types(language: str) -> tuple[str, ...]:
    """Return the types of role cues in a language, including the optional type `BINDING`."""
    return (*ROLE_CUE_TYPES[language], BINDING)


def cue_types_of(language: str) -> tuple[str, ...]:
    """Return all types of cues in a language, including types that are used only if the user names them."""
    return (*SET_CUE_TYPES, *role_cue_types(language), COMPOSITION, SHORT_TEXT)


def check_types(types: Sequence[str], languages: Sequence[str]) -> None:
    """Check the cue types (an empty list means the default ones) and the languages of a built-in corpus.

    Raises:
        UserError: a cue type or language is unknown, there is no language, a language is given twice, or none of the
            cue types exists in one of the languages.
    """
    for language in languages:
        one_of("data.languages", language, LANGUAGES)
    if not languages or len(set(languages)) != len(languages):
        raise UserError(f"data.languages ({list(languages)}) must name each language once, at least one")
    for kind in types:
        one_of("data.types", kind, ALL_TYPES)
    for language in languages:
        known = cue_types_of(language)
        if types and not set(types) & set(known):
            raise UserError(f"data.types ({list(types)}) must name at least one of {', '.join(known)} for {language}")
