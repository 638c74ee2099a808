"""Silver-standard items for pre-training: plain English text -> Examples with antecedents found by rules, not checked.

The formats of plain text, and the paragraphs that are dropped, are those of `corpora.plain_text`.
"""

from __future__ import annotations

from pathlib import Path

from anaphora.base.errors import UserError
from anaphora.data.corpora import plain_text
from anaphora.data.corpora.division import ReadingReport
from anaphora.data.example import Example
from anaphora.data.silver.people import NameLexicon
from anaphora.data.silver.questions import silver_items
from anaphora.settings.data import PlainText, SilverStandard

ORIGIN, DECONTAMINATES = plain_text.ORIGIN, plain_text.DECONTAMINATES

MAX_FIRST_RATIO = 2
"""Largest number of items whose antecedent is the first candidate, per item whose antecedent is the second. Others are
left out, since writers mostly return to the person named first, and a model would learn only that."""


def read(settings: SilverStandard) -> tuple[dict[str, list[Example]], ReadingReport]:
    """Return the items by split and the report, whose rows are paragraphs; a document stays in one split.

    Only documents in English are used; given names are learned from all of them, in every split.

    Raises:
        UserError: `plain_text.read` rejects the text, or the text has no male or no female given name, or gives no
            training item.
    """
    texts, report = plain_text.read(plain_text_settings(settings))
    english = {split: [one for one in documents if one.language == "en"] for split, documents in texts.items()}
    names = NameLexicon(one for documents in english.values() for one in documents)
    if not (names.of("male") and names.of("female")):
        raise UserError(
            f"data.path ({settings.path}): no given names were found; some documents must be pages about people: "
            "a `title` with given and family name, and a text that begins with that name and uses he or she"
        )
    splits = {
        split: _balanced(
            [each for one in documents for each in silver_items(one, names, settings.words, settings.seed)]
        )
        for split, documents in english.items()
    }
    if not splits["train"]:
        raise UserError(f"data.path ({settings.path}): no passage names two people between whom a rule can decide")
    return splits, report


def files(settings: SilverStandard) -> dict[str, Path]:
    """Return the files of the text from which the items are made, by path."""
    return plain_text.files(plain_text_settings(settings))


def plain_text_settings(settings: SilverStandard) -> PlainText:
    """Return the settings of the text from which the items are made."""
    return PlainText(
        path=settings.path,
        also=settings.also,
        without=settings.without,
        dev_share=settings.dev_share,
        test_share=settings.test_share,
        seed=settings.seed,
    )


def _balanced(examples: list[Example]) -> list[Example]:
    """Return the items in order, with an even sample of those whose antecedent is the first candidate.

    At most `MAX_FIRST_RATIO` of them are kept for each item whose antecedent is the second, and at least one.
    """
    first = [number for number, example in enumerate(examples) if example.antecedents == (0,)]
    later = sum(example.antecedents == (1,) for example in examples)
    most = min(len(first), max(1, MAX_FIRST_RATIO * later))
    kept = {first[number * len(first) // most] for number in range(most)} if first else set()
    return [example for number, example in enumerate(examples) if example.antecedents != (0,) or number in kept]
