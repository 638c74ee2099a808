"""The types of cue in the built-in corpus, by the names that `data.types` gives them."""

from __future__ import annotations

from collections.abc import Sequence

from anaphora.base.checks import one_of
from anaphora.base.errors import UserError
from anaphora.base.language import LANGUAGES

SET_CUE_TYPES = ("selection", "gender", "number", "animacy")
"""Types of cue in the built-in corpus that need no word order."""
ROLE_CUE_TYPES = {
    "en": ("causality", "winograd", "voice", "reflexive"),
    "zh": ("causality", "winograd", "voice", "reflexive", "ba_bei"),
}
"""Types of cue in the built-in corpus that depend on who did what, by language."""
BINDING = "binding"
"""A type of role cue to be asked for by name: reflexives whose form does not reveal which name is the antecedent."""
COMPOSITION = "composition"
"""A type of cue to be asked for by name: octads, in which predicate, state and voice decide together."""
SHORT_TEXT = "short_text"
"""A type to be asked for by name: octads in texts of a few sentences, most of which name the participants again."""
ALL_TYPES = tuple(dict.fromkeys((*SET_CUE_TYPES, *sum(ROLE_CUE_TYPES.values(), ()), BINDING, COMPOSITION, SHORT_TEXT)))
MAX_TRAINING_ASIDES = 3
"""The most asides that stand before a pronoun in training."""


def role_cue_types(language: str) -> tuple[str, ...]:
    """Return the types of role cue that are written in templates, including those that are used only if named."""
    return (*ROLE_CUE_TYPES[language], BINDING)


def cue_types_of(language: str) -> tuple[str, ...]:
    """Return every type of cue that items of a language can have."""
    return (*SET_CUE_TYPES, *role_cue_types(language), COMPOSITION, SHORT_TEXT)


def check_types(types: Sequence[str], languages: Sequence[str]) -> None:
    """Check the types and the languages of a built-in corpus.

    Args:
        types: those that are chosen; none for the usual ones.
        languages: of its items.

    Raises:
        UserError: a name is unknown, a language is missing or named twice, or a language has none of the types.
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
            allowed = f"at least one of {', '.join(known)} for {language}"
            raise UserError(f"data.types ({list(types)}) must name {allowed}")
