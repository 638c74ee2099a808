"""The results of a study in `study.json`, tables, figures and pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anaphora.analysis.results.scores import Spread
from anaphora.analysis.results.typed_json import Interval, from_json, to_json
from anaphora.base.errors import UserError
from anaphora.base.files import read_json

VERDICTS = ("holds", "not so", "open")


@dataclass(frozen=True, kw_only=True)
class SeedValues(Spread):
    """A measure over the plan's seeds, with the value of each: None if a run has not finished or has none."""

    values: tuple[float | None, ...]


@dataclass(frozen=True, kw_only=True)
class SeedDifference(Spread):
    """Differences of a measure seed by seed, how many there are, and the 95 % interval of their mean."""

    pairs: int
    interval: Interval | None


@dataclass(frozen=True, kw_only=True)
class GroupSummary:
    """What was measured of one group of items in the runs of a cell or a pool.

    Attributes:
        runs: how many have the group.
        solved: how many of them solve the task; None where task accuracy was not measured.
        is_solved: whether their median does.
        measures: by name.
        against_base: differences from the base cell, seed by seed; those of alignment only between runs that both solve
            the task. Empty for the base cell and for pools.
    """

    runs: int
    solved: int | None
    is_solved: bool | None
    measures: dict[str, SeedValues]
    against_base: dict[str, SeedDifference] = field(default_factory=dict)


Groups = dict[str, dict[str, GroupSummary]]
"""{language: {group: its summary}}."""


@dataclass(frozen=True, kw_only=True)
class CellRun:
    """How far a run of a cell came; `head` is the layer and the head that the development split chose."""

    seed: int
    status: str
    error: str
    head: tuple[int, int] | None
    seconds: float | None


@dataclass(frozen=True, kw_only=True)
class CellSummary:
    """The runs of one recipe; `parts` are the changes that it makes together."""

    name: str
    factor: str
    parts: tuple[str, ...]
    overrides: tuple[str, ...]
    runs: tuple[CellRun, ...]
    groups: Groups


@dataclass(frozen=True, kw_only=True)
class PoolRun:
    """One run that belongs to a pool of cells."""

    cell: str
    seed: int
    status: str


@dataclass(frozen=True, kw_only=True)
class PoolSummary:
    """The runs of several cells together, cell by cell."""

    name: str
    cells: tuple[str, ...]
    runs: tuple[PoolRun, ...]
    groups: Groups


@dataclass(frozen=True, kw_only=True)
class Interaction(SeedDifference):
    """The joint effect of two changes beyond the sum of their single effects."""

    cell: str
    language: str
    group: str
    measure: str


@dataclass(frozen=True, kw_only=True)
class RuleOutcome:
    """A rule of the plan, and its outcome.

    Attributes:
        needed: the values that it needs, in signs and in English.
        passed: None if it has no values.
        spreads: what it is about, by language; None if no run solves the task.
    """

    statement: str
    statement_zh: str | None = None
    cell: str
    measure: str
    seed_statistic: str
    group: str
    baseline_cell: str | None = None
    baseline_group: str | None = None
    languages: tuple[str, ...] = ()
    at_least: float | None = None
    at_most: float | None = None
    needed: str
    passed: bool | None
    spreads: dict[str, Spread | None]


@dataclass(frozen=True, kw_only=True)
class StudyVerdict:
    """Whether a study's claim holds: one of `VERDICTS`, with the rules that decide it."""

    verdict: str
    rules: tuple[RuleOutcome, ...]


@dataclass(frozen=True, kw_only=True)
class Study:
    """A whole study: its question, its cells and pools, and its verdict."""

    name: str
    question: str
    prediction: str
    question_zh: str | None = None
    prediction_zh: str | None = None
    names: dict[str, str] = field(default_factory=dict)
    names_zh: dict[str, str] = field(default_factory=dict)
    solved: float
    seeds: tuple[int, ...]
    split: str
    base: tuple[str, ...]
    cells: tuple[CellSummary, ...]
    pools: tuple[PoolSummary, ...] = ()
    interactions: tuple[Interaction, ...]
    verdict: StudyVerdict

    @property
    def table_cells(self) -> Sequence[CellSummary | PoolSummary]:
        """Return the rows of a study's tables: its cells, then its pools."""
        return [*self.cells, *self.pools]

    @property
    def measured_languages(self) -> list[str]:
        """Return the languages in which anything was measured."""
        return list(dict.fromkeys(language for cell in self.cells for language in cell.groups))

    def groups_in(self, language: str) -> Iterator[GroupSummary]:
        """Yield the groups of all cells in one language."""
        for cell in self.cells:
            yield from cell.groups.get(language, {}).values()

    def to_json(self) -> dict[str, Any]:
        """Return the content of `study.json`."""
        content: dict[str, Any] = to_json(self)
        return content


def read_study(path: Path, way_out: str) -> Study:
    """Read a `study.json`.

    Args:
        path: of the file.
        way_out: what to do with a damaged one, for the message.

    Raises:
        FileNotFoundError: there is none.
        UserError: it is damaged; the message names the key and what is allowed.
    """
    content = read_json(path, {str: object}, way_out)
    try:
        study = from_json(Study, content)
    except UserError as error:
        raise UserError(f"{path}: {error}; {way_out}") from None
    if study.verdict.verdict not in VERDICTS:
        allowed = ", ".join(VERDICTS)
        raise UserError(f"{path}: verdict ({study.verdict.verdict!r:.60}) must be one of {allowed}; {way_out}")
    return study
