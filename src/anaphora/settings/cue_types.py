"""The cue types of the built-in corpus, as `data.types` names them."""

from __future__ import annotations

from collections.abc import Sequence

from anaphora.base.checks import one_of
from anaphora.base.errors import UserError
from anaphora.base.language import LANGUAGES

SET_CUE_TYPES = ("selection", "gender", "number", "animacy")
"""Cue types that do not depend on word order."""
ROLE_CUE_TYPES = {
    "en": ("causality", "winograd", "voice", "reflexive"),
    "zh": ("causality", "winograd", "voice", "reflexive", "ba_bei"),
}
"""Cue types that depend on who did what to whom, by language."""
BINDING = "binding"
"""A role-cue type used only if named: reflexives whose form does not reveal which name is the antecedent."""
COMPOSITION = "composition"
"""A cue type used only if named: octads, in which predicate, state and voice decide together."""
SHORT_TEXT = "short_text"
"""A cue type used only if named: octads in short texts, most of which mention the participants again."""
ALL_TYPES = tuple(dict.fromkeys((*SET_CUE_TYPES, *sum(ROLE_CUE_TYPES.values(), ()), BINDING, COMPOSITION, SHORT_TEXT)))
MAX_TRAINING_ASIDES = 3
"""Maximum number of asides before a pronoun in the training split."""


def role_cue_types(language: str) -> tuple[str, ...]:
    """Return a language's role-cue types with templates, including the one that is used only if named."""
    return (*ROLE_CUE_TYPES[language], BINDING)


def cue_types_of(language: str) -> tuple[str, ...]:
    """Return all cue types of a language, including those that are used only if named."""
    return (*SET_CUE_TYPES, *role_cue_types(language), COMPOSITION, SHORT_TEXT)


def check_types(types: Sequence[str], languages: Sequence[str]) -> None:
    """Check the cue types and languages of a built-in corpus.

    Args:
        types: names of cue types; empty for the default ones.
        languages: languages of the items.

    Raises:
        UserError: a name is unknown, no language is given or one is given twice, or a language has none of the types.
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
