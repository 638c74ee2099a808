"""Notes on a model's answer, in the language set by `spoken_in`, for the report and for pages that run a model."""

from __future__ import annotations

from collections.abc import Sequence

from anaphora.analysis.scores.heads import TIE
from anaphora.base.translation import N_, _
from anaphora.data.example import Span
from anaphora.data.own_sentence import numbered_words, third_person_pronouns
from anaphora.data.tokens.words import UnknownWords
from anaphora.report.wording import translated

LEAST_WEIGHT = 0.1
"""Minimum attention weight (0 to 1) on a candidate for a head to count as attending to it."""


answer_phrases = translated(
    comma=N_(", "),
    none=N_("none of them"),
    unknown=N_("Do not trust this answer: the run does not know {words}."),
    foreign=N_(
        "Do not trust this answer: the text seems to be neither English nor Chinese, and the run does not know these "
        "as whole words: {words}."
    ),
    unreadable=N_("Do not trust this run here: it does not know {words}, so no answer is shown: use other words."),
    too_few=N_("Click at least two words that {pronoun} may refer to; then the model answers."),
    agree=N_("Layer {layer} head {head} points there too: {pointed} gets {weight} of the pronoun’s attention."),
    differ=N_("Layer {layer} head {head} points elsewhere: at {pointed} ({weight}), while the answer is {answer}."),
    undecided=N_("Layer {layer} head {head} points at {pointed} ({weight}); the answer is a tie between {answer}."),
    nowhere=N_("Layer {layer} head {head} points at none of them: {pointed} gets most, but only {weight}."),
    tied=N_("Layer {layer} head {head} points at no single one of them: {pointed} get {weight} each."),
    supervised=N_(" The labels trained this head to point, so this does not show that heads point by themselves."),
    answering=N_(
        " The answer is read from these weights, which the labels trained, so this does not show that heads point by "
        "themselves."
    ),
)
"""Phrases of the notes, with placeholders in braces."""


def unknown_note(unknown: UnknownWords) -> str | None:
    """Return a warning about unknown words or a text in another language; None if no warning is needed."""
    phrases = answer_phrases()
    if unknown.foreign and unknown.is_readable:
        return phrases["foreign"].format(words=quoted_words(unknown.foreign))
    if not unknown.words:
        return None
    return phrases["unknown" if unknown.is_readable else "unreadable"].format(words=quoted_words(unknown.words))


def unread_note(words: Sequence[str]) -> str:
    """Return a warning about words unknown to the model, for a page that shows attention maps without an answer."""
    note = _("Do not trust the weights of {words}: the model does not know this part of the text.")
    return note.format(words=quoted_words(words))


def quoted_words(words: Sequence[str]) -> str:
    """Return words in quotation marks, joined by commas; invisible words are written as code points such as U+00AD."""
    printable = (
        word if any(map(str.isprintable, word)) else " ".join(f"U+{ord(letter):04X}" for letter in word)
        for word in words
    )
    return answer_phrases()["comma"].join(f"“{word}”" for word in printable)


def head_note(
    layer: int, head: int, candidates: Sequence[str], weights: Sequence[float], shares: Sequence[float], training: str
) -> str:
    """Return a note on whether, in one head, the pronoun attends most to the model's answer.

    Instead, the note may say that all weights are below `LEAST_WEIGHT`, that the largest weights are equal to two
    decimals, or that several answers have the highest probability (`best_answers`).

    Args:
        layer, head: indices of the head, from 0.
        candidates: texts of the M candidates.
        weights: (M,) weights from the pronoun to the candidates in this head.
        shares: (M,) probabilities of the candidates, or (M + 1,) with "none of them" last.
        training: effect of the training labels on this head: "answering" if the model's answers are computed from
            its weights, "supervised" if its weights were trained directly, else "" (`Config.head_training`).
    """
    strongest = max(range(len(candidates)), key=weights.__getitem__)
    answers, phrases = best_answers(shares), answer_phrases()
    weight = f"{weights[strongest]:.2f}"
    tied = [candidate for candidate, each in zip(candidates, weights, strict=True) if f"{each:.2f}" == weight]
    if len(tied) > 1:
        name = "tied"
    elif weights[strongest] < LEAST_WEIGHT:
        name = "nowhere"
    elif len(answers) > 1:
        name = "undecided"
    else:
        name = "agree" if answers == [strongest] else "differ"
    quoted = [f"“{candidates[answer]}”" if answer < len(candidates) else phrases["none"] for answer in answers]
    note = phrases[name].format(
        layer=layer,
        head=head,
        pointed=quoted_words(tied) if name == "tied" else f"“{candidates[strongest]}”",
        weight=weight,
        answer=phrases["comma"].join(quoted),
    )
    return note + phrases[training] if training else note


def best_answers(shares: Sequence[float]) -> list[int]:
    """Return the indices of the answers with the highest probability, up to a relative difference of `TIE`."""
    least = max(shares) * (1 - TIE)
    return [number for number, share in enumerate(shares) if share >= least]


def pronoun_note(text: str, pronoun: Span) -> str | None:
    """Return a note that says that the last pronoun of a text was chosen, and how to choose another.

    `pronoun` is the character span of the last pronoun. If the text has no other pronoun, the result is None.
    """
    others = [span for span in third_person_pronouns(text) if span != pronoun]
    if not others:
        return None
    return _(
        "There are {count} pronouns; the question is about the last one, “{pronoun}”; pronoun={other} chooses another."
    ).format(count=len(others) + 1, pronoun=text[slice(*pronoun)], other=numbered_words(text, others[-1]))


def no_pronoun_note() -> str:
    """Return a hint for a sentence without a pronoun."""
    return _("There is no English or Chinese third-person pronoun here: click a word to see its row.")


def too_few_note(pronoun: str) -> str:
    """Return a hint for a sentence with too few candidates for an answer."""
    return answer_phrases()["too_few"].format(pronoun=f"“{pronoun}”")
