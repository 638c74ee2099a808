"""What a reader is told of a sentence: which pronoun it is about, in the language of the enclosing `spoken_in`."""

from __future__ import annotations

from anaphora.base.locale.translation import _
from anaphora.data.example import Span
from anaphora.data.own_sentence import occurrences_in_any_case
from anaphora.data.third_person import third_person_pronouns


def pronoun_note(text: str, pronoun: Span) -> str | None:
    """Return which of several third-person pronouns was taken, and how to choose another; None if there is no other."""
    others = [span for span in third_person_pronouns(text) if span != pronoun]
    if not others:
        return None
    return _("Of {count} pronouns the last one, “{pronoun}”, is asked about; pronoun={other} chooses another.").format(
        count=len(others) + 1, pronoun=text[slice(*pronoun)], other=_typed(text, others[-1])
    )


def no_pronoun_note() -> str:
    """Return what to do with a sentence in which no pronoun was found."""
    return _("There is no third-person pronoun of English or Chinese here: click a word to see its row.")


def _typed(text: str, span: Span) -> str:
    """Return a word as a user types it for `pronoun`: with its number if it stands in the text several times."""
    word = text[slice(*span)]
    places = list(occurrences_in_any_case(word, text))
    return word if len(places) == 1 else f"{word}:{places.index(span) + 1}"
