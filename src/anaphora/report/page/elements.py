"""Building blocks of the report: the content for one run, and sections of figures, tables and sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from anaphora.analysis.evidence.evidence import Evidence
from anaphora.base.language import stays_with_previous
from anaphora.base.translation import _
from anaphora.data.tokens.words import UnreadMentions
from anaphora.report.wording import clauses

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

    from anaphora.report.figures.maps import QuadCell

SentenceEntry = Mapping[str, Any]
"""Sentence with its attention maps as data for the page's script; `explorer.explorer_entries` lists the keys."""


@dataclass(frozen=True, kw_only=True)
class ReportRun:
    """Content of the report on one run.

    Attributes:
        evidence: measurements of the run; None in fields that were not measured.
        argument: value of `run=` in commands; empty for a model without a run directory.
        recipe: settings as text, without name, folders and seed; None if unknown.
        validations: validation records of `training.json`.
        heads: (L, H) candidate accuracy of every head on the development split, by language.
        heads_chance: mean share of correct candidates on the development split, by language.
        chance: mean share of correct candidates over all languages of the development split.
        quads: quads to show, each as (language, cue category, four sentences). The sentences combine each of two cues
            with both orders of the candidates.
        sentences: sentences with this run's attention maps and answers, for the interactive view of the page.
        is_explored: whether the interactive view shows these sentences, so that examples can link to it.
        unread: items with a pronoun or candidate outside the model's vocabulary; None if there are none.
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
    """Page element with a figure and its alternative text."""

    kind: ClassVar[str] = "picture"
    name: str
    figure: Figure
    alt: str


@dataclass(frozen=True, kw_only=True)
class TableElement:
    """Page element with a table of formatted cells.

    The first `texts` columns contain text, the others numbers. A `folded` table is shown after a click on its title.
    """

    kind: ClassVar[str] = "table"
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: int = 1
    folded: bool = False


@dataclass(frozen=True)
class RuleResult:
    """Result of one criterion (rule) for the verdict on a run or a study, in words; `passed` is None if unknown.

    `value` is what was measured, and `needed` is the threshold.
    """

    rule: str
    question: str
    value: str
    needed: str
    passed: bool | None


@dataclass(frozen=True)
class GroupVerdict:
    """Verdict on a hypothesis for the items of one language and cue category, or for all items if `label` is empty.

    Attributes:
        verdict: verdict in words, such as "supported".
        sign: "yes", "no" or "open", for the colour of the traffic light.
        numbers: table cells next to the verdict.
        rules: results of the criteria on which the verdict depends.
    """

    label: str
    verdict: str
    sign: str
    numbers: Sequence[str]
    rules: Sequence[RuleResult]


@dataclass(frozen=True, kw_only=True)
class VerdictElement:
    """Page element with verdicts as traffic lights, each with a table of its criteria (rules).

    Attributes:
        columns: headings for the numbers in the rows.
        note: explanation of the columns, below the title; may be empty.
        counted: noun for the rules of a row in texts such as "3 of 4 rules hold": "rules" or "conditions".
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
        results = [rule.passed for rule in row.rules]
        text = {
            ("rules", False): _("{count} of {all:rule holds|rules hold}"),
            ("rules", True): _("{count} of {all:rule holds|rules hold}, {unchecked} not checked"),
            ("conditions", False): _("{count} of {all:condition holds|conditions hold}"),
            ("conditions", True): _("{count} of {all:condition holds|conditions hold}, {unchecked} not checked"),
        }[self.counted, None in results]
        return text.format(count=results.count(True), all=len(results), unchecked=results.count(None))


@dataclass(frozen=True)
class ShadedWord:
    """Word of a sentence, shaded by its share of the pronoun's attention.

    Attributes:
        paint, ink: background colour and text colour, in hexadecimal.
        role: "pronoun", "antecedent", or "other" for another candidate; empty for other words.
        share: weight with two decimals; empty if negligible.
    """

    text: str
    paint: str
    ink: str
    role: str
    share: str


@dataclass(frozen=True)
class ShadedSentence:
    """Sentence shaded by the pronoun's attention in the chosen head.

    Attributes:
        identity: id of the sentence in the page's interactive view of attention maps; None if it is not shown there.
        factors: category and type of the sentence's cue, such as "role · causality"; empty if unknown.
        answer: text of the model's answer; a dash if the model gives none.
    """

    language: str
    identity: str | None
    words: Sequence[ShadedWord]
    factors: str
    answer: str

    def unbroken(self) -> list[list[ShadedWord]]:
        """Return the words in groups that no line break may divide: a word with its attached punctuation marks."""
        groups: list[list[ShadedWord]] = []
        for word, is_attached in zip(self.words, stays_with_previous([word.text for word in self.words]), strict=True):
            if is_attached:
                groups[-1].append(word)
            else:
                groups.append([word])
        return groups


@dataclass(frozen=True, kw_only=True)
class SentencesElement:
    """Page element with shaded sentences under a heading."""

    kind: ClassVar[str] = "samples"
    title: str
    sentences: Sequence[ShadedSentence]


@dataclass(frozen=True, kw_only=True)
class HeadRolesElement:
    """Page element with a grid of all heads and their roles, such as "positional".

    Attributes:
        heads: head indices of the columns.
        rows: (layer, cells); a cell is (roles, measured values as text, whether it is the chosen head).
    """

    kind: ClassVar[str] = "grid"
    heads: Sequence[int]
    rows: Sequence[tuple[int, Sequence[tuple[Sequence[str], str, bool]]]]


@dataclass(frozen=True, kw_only=True)
class NoteElement:
    """Page element with a paragraph of text."""

    kind: ClassVar[str] = "note"
    text: str


PageElement = FigureElement | TableElement | VerdictElement | SentencesElement | HeadRolesElement | NoteElement


@dataclass(frozen=True, kw_only=True)
class Section:
    """Section of the page: a question, an explanation of the numbers, and elements that answer the question.

    Attributes:
        name: id of the section on the page.
        elements: empty if nothing was measured.
        missing: text shown if there are no elements.
        address: URL of a page with more detail, linked from the title unless empty.
    """

    name: str
    title: str
    explanation: str
    elements: Sequence[PageElement]
    missing: str = field(default_factory=lambda: _("Not measured in this run."))
    address: str = ""


def table_of(rows: Sequence[Mapping[str, str]], title: str, texts: int = 1, folded: bool = False) -> TableElement:
    """Return a table from rows that map column names to cells; if there are no rows, the table has no columns."""
    cells = [list(row.values()) for row in rows]
    return TableElement(title=title, columns=list(rows[0]) if rows else [], rows=cells, texts=texts, folded=folded)


def with_rows(*tables: TableElement | VerdictElement) -> list[PageElement]:
    """Return the tables that have rows."""
    return [table for table in tables if table.rows]


PlacedSections = Mapping[int, Callable[[ReportRun], Section | None]]
"""Functions that build report sections, keyed by the section's position on the page.

A function returns None if its section does not apply to the run.
"""


def figure_with_numbers(
    name: str,
    figure: Figure | None,
    summary: Sequence[str],
    rows: Sequence[Mapping[str, str]],
    texts: int = 1,
    title: str = "",
) -> list[PageElement]:
    """Return page elements for a figure and, below it, a folded table of its numbers; empty if the figure is None.

    `summary` has the clauses of the figure's alternative text; the other arguments are those of `table_of`.
    """
    if figure is None:
        return []
    numbers = table_of(rows, title or _("The numbers"), texts, folded=True)
    return [FigureElement(name=name, figure=figure, alt=clauses(summary)), numbers]


def figures_of(sections: Iterable[Section]) -> dict[str, Figure]:
    """Return the figures of all sections, keyed by name."""
    return {
        element.name: element.figure
        for section in sections
        for element in section.elements
        if isinstance(element, FigureElement)
    }
