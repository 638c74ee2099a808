"""What goes together in a sentence that stands on the command line. Imports nothing heavy."""

from __future__ import annotations

from collections.abc import Sequence
from unicodedata import normalize

from anaphora.base.checks import one_of
from anaphora.base.language import LANGUAGES, split_names


def check_sentence(
    text: str | None,
    pronoun: str | None,
    candidates: Sequence[str],
    antecedent: str | None = None,
    language: str | None = None,
) -> None:
    """Refuse what would have no effect, because what it belongs to is not given.

    Args:
        text: the sentence; None if the command reads something else.
        pronoun, candidates, antecedent: as they are typed.
        language: of the text; None if its characters decide.

    Raises:
        ValueError: naming the setting, its value and what it needs.
    """
    for name, value in (("pronoun", pronoun), ("language", language)):
        if value is not None and text is None:
            raise ValueError(f"{name} ({value!r}) needs text=...")
    if candidates and pronoun is None:
        raise ValueError(f"candidates ({candidates}) need pronoun=...")
    named = [normalize("NFC", name) for name in split_names(candidates)]
    if antecedent is not None and normalize("NFC", antecedent) not in named:
        raise ValueError(f"antecedent ({antecedent!r}) must be one of candidates ({candidates})")
    if language is not None:
        one_of("language", language, LANGUAGES)
