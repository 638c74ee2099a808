"""Notes on a model's answer, in the language of the enclosing `spoken_in`.

The page without Python fills in the same phrases by its script.
"""

from __future__ import annotations

from collections.abc import Sequence

from anaphora.base.locale.translation import _
from anaphora.data.example import Span
from anaphora.data.own_sentence import occurrences_in_any_case
from anaphora.data.third_person import third_person_pronouns
from anaphora.data.tokens.unread import UnknownWords

LEAST_WEIGHT = 0.1
"""The weight from which on a head points at a candidate."""


def answer_phrases() -> dict[str, str]:
    """Return the messages about an answer, by name; names in braces are placeholders."""
    return {
        "comma": _(", "),
        "none": _("none of them"),
        "unknown": _("Do not trust this answer: the run does not know {words}."),
        "unreadable": _(
            "Do not trust this run here: it does not know {words}, so no answer is shown: use other words."
        ),
        "too_few": _("Click at least two words that {pronoun} may mean; then the model answers."),
        "agree": _("Layer {layer} head {head} points there too: {pointed} gets {weight} of the pronoun’s attention."),
        "differ": _(
            "Layer {layer} head {head} points elsewhere: at {pointed} ({weight}), while the answer is {answer}."
        ),
        "nowhere": _("Layer {layer} head {head} points at none of them: {pointed} gets {weight} at most."),
        "supervised": _(
            " The labels trained this head to point, so this does not show that heads point by themselves."
        ),
    }


def unknown_note(unknown: UnknownWords) -> str | None:
    """Return a note on words that the model does not know and their effect; None if it knows all of them."""
    if not unknown.words:
        return None
    phrases = answer_phrases()
    return phrases["unknown" if unknown.is_readable else "unreadable"].format(words=quoted_words(unknown.words))


def unread_note(words: Sequence[str]) -> str:
    """Return a note on words of a text that a model does not know, for maps without an answer."""
    note = _("Do not trust the weights of {words}: the model does not know this part of the text.")
    return note.format(words=quoted_words(words))


def quoted_words(words: Sequence[str]) -> str:
    """Return words in quotation marks, with commas between them."""
    return answer_phrases()["comma"].join(f"“{word}”" for word in words)


def head_note(
    layer: int, head: int, candidates: Sequence[str], weights: Sequence[float], answer: int | None, is_supervised: bool
) -> str:
    """Return a note on whether a head attends most to the model's answer.

    Args:
        layer, head: the head.
        candidates: the names of the M candidates.
        weights: (M,) the pronoun's weight on each of them in this head.
        answer: the number of the candidate that the model names; None for none of them.
        is_supervised: whether a loss trained the rows of this head.
    """
    strongest = max(range(len(candidates)), key=weights.__getitem__)
    name = "nowhere" if weights[strongest] < LEAST_WEIGHT else "agree" if strongest == answer else "differ"
    phrases = answer_phrases()
    note = phrases[name].format(
        layer=layer,
        head=head,
        pointed=f"“{candidates[strongest]}”",
        weight=f"{weights[strongest]:.2f}",
        answer=phrases["none"] if answer is None else f"“{candidates[answer]}”",
    )
    return note + phrases["supervised"] if is_supervised else note


def pronoun_note(text: str, pronoun: Span) -> str | None:
    """Return a note on the pronoun chosen among several, and on how to choose another; None if there is only one."""
    others = [span for span in third_person_pronouns(text) if span != pronoun]
    if not others:
        return None
    return _("Of {count} pronouns the last one, “{pronoun}”, is asked about; pronoun={other} chooses another.").format(
        count=len(others) + 1, pronoun=text[slice(*pronoun)], other=_typed(text, others[-1])
    )


def no_pronoun_note() -> str:
    """Return advice on a sentence without a pronoun."""
    return _("There is no third-person pronoun of English or Chinese here: click a word to see its row.")


def too_few_note(pronoun: str) -> str:
    """Return advice on a sentence with fewer candidates than an answer needs."""
    return answer_phrases()["too_few"].format(pronoun=f"“{pronoun}”")


def _typed(text: str, span: Span) -> str:
    """Return a word as a user types it for `pronoun`: with its number if it occurs several times in the text."""
    word = text[slice(*span)]
    places = list(occurrences_in_any_case(word, text))
    return word if len(places) == 1 else f"{word}:{places.index(span) + 1}"
