"""The building blocks of a report: sections of figures, tables and sentences, between runs and the page."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from anaphora.analysis.evidence.evidence import Evidence
from anaphora.base.locale.translation import _
from anaphora.data.tokens.unread import UnreadMentions

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

    from anaphora.report.figures.maps import QuadCell

SentenceEntry = Mapping[str, Any]
"""A sentence of the explorer, as the page's script reads it; `explorer.explorer_entries` lists its keys."""


@dataclass(frozen=True, kw_only=True)
class ReportRun:
    """The content of the report on one run.

    Attributes:
        name: of the run.
        argument: what commands take as `run=`; empty for a model from elsewhere.
        evidence: all that is known of it; a part that was not measured is None.
        recipe: its settings in writing, but for those in which runs of one recipe differ; None if unknown.
        validations: those of its `training.json`.
        heads: language -> (L, H) candidate accuracy of every head on the development split.
        heads_chance: language -> the mean share of candidates that are right there.
        chance: the same over all languages of the development split.
        quads: language, kind of cue and four cells of each quad to show.
        sentences: entries of the explorer, with this run's maps and answers.
        is_explored: whether the page's explorer shows them, so that examples lead there.
        unread: the measured items with mentions that are not in the model's vocabulary; None if there are none.
    """

    name: str
    evidence: Evidence
    argument: str = ""
    recipe: str | None = None
    validations: Sequence[Mapping[str, float]] = ()
    heads: Mapping[str, ArrayLike] = field(default_factory=dict)
    heads_chance: Mapping[str, float] = field(default_factory=dict)
    chance: float | None = None
    quads: Sequence[tuple[str, str, Sequence[QuadCell]]] = ()
    sentences: Sequence[SentenceEntry] = ()
    is_explored: bool = True
    unread: UnreadMentions | None = None


@dataclass(frozen=True, kw_only=True)
class FigureElement:
    """A figure and its alternative text."""

    kind: ClassVar[str] = "picture"
    name: str
    figure: Figure
    alt: str


@dataclass(frozen=True, kw_only=True)
class TableElement:
    """Rows of text; the first `texts` columns are words, the others numbers. A folded table opens on a click."""

    kind: ClassVar[str] = "table"
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: int = 1
    folded: bool = False


@dataclass(frozen=True)
class RuleResult:
    """One row of a verdict; `passed` is None if it could not be checked."""

    rule: str
    question: str
    value: str
    needed: str
    passed: bool | None


@dataclass(frozen=True)
class GroupVerdict:
    """The verdict on one language and kind of cue, or on all with the label ""; its sign is "yes", "no" or "open"."""

    label: str
    verdict: str
    sign: str
    numbers: Sequence[str]
    rules: Sequence[RuleResult]


@dataclass(frozen=True, kw_only=True)
class VerdictElement:
    """The traffic lights: `columns` of each row's numbers, and of the table of its rules.

    Attributes:
        title: stands above them, with `note`, which says what the columns mean; both may be empty.
        counted: what a row says of them: the phrase of how many of its "rules" or "conditions" hold.
    """

    kind: ClassVar[str] = "verdict"
    columns: Sequence[str]
    rows: Sequence[GroupVerdict]
    title: str = ""
    note: str = ""
    counted: str = "rules"
    rule_columns: Sequence[str] = field(
        default_factory=lambda: [_("rule"), _("question"), _("measured"), _("needed"), _("result")]
    )

    def count_of(self, row: GroupVerdict) -> str:
        """Return how many rules of a row hold, and how many were not checked, if any."""
        results = [rule.passed for rule in row.rules]
        text = {
            ("rules", False): _("{count} of {all} rules hold"),
            ("rules", True): _("{count} of {all} rules hold, {unchecked} not checked"),
            ("conditions", False): _("{count} of {all} conditions hold"),
            ("conditions", True): _("{count} of {all} conditions hold, {unchecked} not checked"),
        }[self.counted, None in results]
        return text.format(count=results.count(True), all=len(results), unchecked=results.count(None))


_OPENING, _CLOSING = ("Ps", "Pi"), ("Pe", "Pf", "Po")
"""Unicode's categories of punctuation that belongs to the word after it and to the word before it."""


def _is_punctuation(text: str, categories: Sequence[str]) -> bool:
    return all(unicodedata.category(character) in categories for character in text)


@dataclass(frozen=True)
class ShadedWord:
    """A word of a sentence, its share of the pronoun's attention as a colour, and its role."""

    text: str
    paint: str
    ink: str
    role: str
    share: str


@dataclass(frozen=True)
class ShadedSentence:
    """A sentence with the pronoun's row of the chosen head; `identity` is its entry in the page's explorer, if any."""

    language: str
    identity: str | None
    words: Sequence[ShadedWord]
    factors: str
    answer: str

    def unbroken(self) -> list[list[ShadedWord]]:
        """Return the words, each with the punctuation that no line may begin or end with."""
        groups: list[list[ShadedWord]] = []
        opened = False
        for word in self.words:
            if groups and (opened or _is_punctuation(word.text, _CLOSING)):
                groups[-1].append(word)
            else:
                groups.append([word])
            opened = _is_punctuation(word.text, _OPENING)
        return groups


@dataclass(frozen=True, kw_only=True)
class SentencesElement:
    """Sentences under a heading."""

    kind: ClassVar[str] = "samples"
    title: str
    sentences: Sequence[ShadedSentence]


@dataclass(frozen=True, kw_only=True)
class HeadRolesElement:
    """A grid of layers by heads; each cell has the head's roles, its measured values, and whether it is chosen."""

    kind: ClassVar[str] = "grid"
    heads: Sequence[int]
    rows: Sequence[tuple[int, Sequence[tuple[Sequence[str], str, bool]]]]


@dataclass(frozen=True, kw_only=True)
class NoteElement:
    """A sentence or two."""

    kind: ClassVar[str] = "note"
    text: str


PageElement = FigureElement | TableElement | VerdictElement | SentencesElement | HeadRolesElement | NoteElement


@dataclass(frozen=True, kw_only=True)
class Section:
    """A question, one sentence that explains the answer's numbers, and the answer; no elements: not measured.

    Attributes:
        address: of a page that tells more, to which the title leads; empty for none.
    """

    name: str
    title: str
    explanation: str
    elements: Sequence[PageElement]
    missing: str = field(default_factory=lambda: _("Not measured in this run."))
    address: str = ""


PlacedSections = Mapping[int, Callable[[ReportRun], Section | None]]
"""The sections of one file by their places on the page, the first at the top; None where a run has no such section."""


def figures_of(sections: Iterable[Section]) -> dict[str, Figure]:
    """Return the figures of some sections by name."""
    return {
        element.name: element.figure
        for section in sections
        for element in section.elements
        if isinstance(element, FigureElement)
    }
