"""Section of correctly and incorrectly answered example sentences with the chosen head's attention."""

from __future__ import annotations

from matplotlib.colors import to_hex

from anaphora.analysis.results.scores import Head
from anaphora.base.locale.translation import N_, _
from anaphora.report.figures import style
from anaphora.report.figures.sheet import MIN_PRINTED_WEIGHT, weight_text
from anaphora.report.numbers import NOT_MEASURED
from anaphora.report.page.elements import (
    PageElement,
    PlacedSections,
    ReportRun,
    Section,
    SentenceEntry,
    SentencesElement,
    ShadedSentence,
    ShadedWord,
)
from anaphora.report.page.explorer import unpack_map
from anaphora.report.wording import value_label

_SORTS = {
    N_("Right: the head picks the antecedent and the model answers rightly"): (True, True),
    N_("The head picks another candidate, the answer is right all the same"): (True, False),
    N_("The head picks the antecedent, the answer is wrong"): (False, True),
    N_("Wrong: both the head and the answer"): (False, False),
    N_("The head picks the antecedent; the model gives no answer"): (None, True),
    N_("The head picks another candidate; the model gives no answer"): (None, False),
}
"""Heading of each outcome: whether the answer is right (None without an answer) and the head picks the antecedent."""
_MOST = 2
"""Maximum number of sentences per outcome and language."""


def examples_section(run: ReportRun) -> Section:
    """Return the section of example sentences, at most `_MOST` per outcome and language.

    Sentences link to the explorer if it shows them.
    """
    elements: list[PageElement] = []
    languages = dict.fromkeys(sentence["language"] for sentence in run.sentences)
    for sort, (right, points) in _SORTS.items():
        chosen: list[SentenceEntry] = []
        for language in languages:
            chosen += [
                entry
                for entry in run.sentences
                if entry["language"] == language
                and entry.get("right") is right
                and bool(entry.get("head_right")) == points
            ][:_MOST]
        if chosen:
            shaded = [_shaded_sentence(sentence, run.evidence.head.position, run.is_explored) for sentence in chosen]
            elements.append(SentencesElement(title=_(sort), sentences=shaded))
    return Section(
        name="examples",
        title=_("Right and wrong, sentence by sentence"),
        explanation=_(
            "The first sentences of each sort, not the prettiest. Shading is the pronoun’s weight at the chosen head."
        ),
        elements=elements,
        missing=_("No sentences were given."),
    )


def _shaded_sentence(sentence: SentenceEntry, head: Head, explored: bool) -> ShadedSentence:
    words, pronoun = sentence["words"], sentence["pronoun"]
    row = unpack_map(sentence["maps"]["raw"])[head.layer, head.head, pronoun]
    roles = {word: "other" for entry in sentence["distractors"] for word in entry}
    roles |= {word: "antecedent" for entry in sentence["antecedents"] for word in entry}
    roles[pronoun] = "pronoun"
    shaded = []
    for number, (word, weight) in enumerate(zip(words, row, strict=True)):
        if number in (sentence.get("special") or ()):
            continue
        paint = style.WEIGHTS(min(float(weight), 1.0))
        share = weight_text(weight) if weight >= MIN_PRINTED_WEIGHT else ""
        shaded.append(ShadedWord(word, to_hex(paint), style.text_colour_on(paint), roles.get(number, ""), share))
    factors = " · ".join(value_label(str(sentence[name])) for name in ("kind", "type") if sentence.get(name))
    identity = sentence["id"] if explored else None
    return ShadedSentence(sentence["language"], identity, shaded, factors, _answer_text(sentence.get("answer")))


def _answer_text(answer: str | None) -> str:
    if answer is None:
        return NOT_MEASURED
    return answer or _("none of them")


SECTIONS: PlacedSections = {180: examples_section}
