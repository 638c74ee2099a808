"""Plain English text -> Examples whose answers rules know: silver questions, to train on before others.

What plain text may look like, and what is left out of it, is `corpora.plain_text`'s affair.
"""

from __future__ import annotations

from anaphora.data.corpora import plain_text
from anaphora.data.corpora.division import ReadingReport
from anaphora.data.example import Example
from anaphora.data.settings import PlainText, Silver
from anaphora.data.silver.people import Names
from anaphora.data.silver.questions import questions
from anaphora.errors import UserError

MOST_FIRST = 2
"""Questions whose answer is named first, for each one whose answer is not; more are left out, since a writer returns
to whoever came first, and a model would learn just that."""


def read(settings: Silver) -> tuple[dict[str, list[Example]], ReadingReport]:
    """The questions by split and the report, whose rows are paragraphs; a document is never divided.

    Raises:
        UserError: what `plain_text.read` raises, or the text teaches no given names or leaves no question.
    """
    texts, report = plain_text.read(text_of(settings))
    english = {split: [one for one in found if one.language == "en"] for split, found in texts.items()}
    names = Names(one for found in english.values() for one in found)
    if not (names.of("male") and names.of("female")):
        raise UserError(
            f"data.path ({settings.path}): no given names could be learned; some documents must be pages about people: "
            "a `title` with given and family name, and a text that begins with it and calls them he or she"
        )
    splits = {
        split: _balanced([each for one in found for each in questions(one, names, settings.words, settings.seed)])
        for split, found in english.items()
    }
    if not splits["train"]:
        raise UserError(f"data.path ({settings.path}): no passage names two people so that a rule knows an answer")
    return splits, report


def text_of(settings: Silver) -> PlainText:
    """The text that the questions are made of."""
    return PlainText(
        path=settings.path,
        also=settings.also,
        without=settings.without,
        dev_share=settings.dev_share,
        test_share=settings.test_share,
        seed=settings.seed,
    )


def _balanced(found: list[Example]) -> list[Example]:
    """All questions but those of the first-named answer that are too many, evenly left out."""
    first = [number for number, each in enumerate(found) if each.antecedents == (0,)]
    later = sum(each.antecedents == (1,) for each in found)
    most = min(len(first), max(1, MOST_FIRST * later))
    kept = {first[place * len(first) // most] for place in range(most)} if first else set()
    return [each for number, each in enumerate(found) if each.antecedents != (0,) or number in kept]
