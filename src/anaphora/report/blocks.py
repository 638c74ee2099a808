"""What a report is made of: runs go in, and sections of figures, tables and sentences lie between them and the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from anaphora.report.figures import QuadCell

Cell = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class ReportRun:
    """What the report shows of one run.

    Attributes:
        name: of the run.
        metrics: the contents of its `metrics.json`; every part may be missing or null.
        validations: those of its `training.json`.
        heads: language -> (L, H) candidate accuracy of every head on the development split.
        quads: title and m * m cells of each block to show.
    """

    name: str
    metrics: Cell
    validations: Sequence[Mapping[str, float]] = ()
    heads: Mapping[str, ArrayLike] = field(default_factory=dict)
    quads: Sequence[tuple[str, Sequence[QuadCell]]] = ()


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A figure with what it shows in words, for those who do not see it."""

    kind: ClassVar[str] = "picture"
    name: str
    figure: Figure
    alt: str
    caption: str = ""


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of text; the first `texts` columns are words, the others numbers. A folded table opens on a click."""

    kind: ClassVar[str] = "table"
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: int = 1
    folded: bool = False


@dataclass(frozen=True)
class Rule:
    """One row of a verdict; `passed` is None where it could not be checked."""

    rule: str
    question: str
    value: str
    needed: str
    passed: bool | None


@dataclass(frozen=True)
class Judgement:
    """The verdict on one language and kind of cue."""

    label: str
    verdict: str
    numbers: Sequence[str]
    rules: Sequence[Rule]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The traffic lights."""

    kind: ClassVar[str] = "verdict"
    columns: Sequence[str]
    rows: Sequence[Judgement]


@dataclass(frozen=True)
class Word:
    """A word of a sentence, its share of the pronoun's attention as a colour, and its role."""

    text: str
    paint: str
    ink: str
    role: str
    share: str


@dataclass(frozen=True)
class Sample:
    """A sentence with the pronoun's row of the chosen head."""

    language: str
    identity: str
    words: Sequence[Word]
    said: str
    answer: str


@dataclass(frozen=True, kw_only=True)
class Samples:
    """Sentences under a heading."""

    kind: ClassVar[str] = "samples"
    title: str
    sentences: Sequence[Sample]


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Layers (rows) by heads (columns), each cell a list of roles with what was measured."""

    kind: ClassVar[str] = "grid"
    heads: Sequence[int]
    rows: Sequence[tuple[int, Sequence[tuple[Sequence[str], str, bool]]]]


@dataclass(frozen=True, kw_only=True)
class Note:
    """A sentence or two."""

    kind: ClassVar[str] = "note"
    text: str


Block = Picture | Table | Verdict | Samples | Grid | Note


@dataclass(frozen=True, kw_only=True)
class Section:
    """A question, one sentence that explains the answer's numbers, and the answer; no blocks: not measured."""

    name: str
    title: str
    explanation: str
    blocks: Sequence[Block]
    missing: str = "Not measured in this run."
