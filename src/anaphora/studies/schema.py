"""Results of a study as stored in `study.json`."""

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
    """Median and range of a measure over seeds, with the value of each run.

    A value is None for a run that is unfinished or lacks the measure.
    """

    values: tuple[float | None, ...]


@dataclass(frozen=True, kw_only=True)
class SeedDifference(Spread):
    """Median and range over seeds of the difference between two cells (configurations) in a measure.

    Attributes:
        pairs: number of seeds with a value in both cells.
        mean: mean over these seeds; None in files of versions that did not store it.
        interval: 95 % interval of the mean; None for too few seeds.
    """

    pairs: int
    mean: float | None = None
    interval: Interval | None


@dataclass(frozen=True, kw_only=True)
class GroupSummary:
    """Summary of the runs of a cell (configuration of a study), or of a pool (several cells), on one group of items.

    Attributes:
        runs: number of runs with measures of the group.
        solved: number of runs whose task accuracy is at least the threshold `Study.solved`; None if task accuracy was
            not measured.
        is_solved: whether the median task accuracy is at least this threshold; None if task accuracy was not measured.
        measures: median, range and values over seeds, keyed by measure.
        against_base: difference from the base cell, keyed by measure; empty for the base cell and for pools. For
            `ALIGNMENT_MEASURES` (how well attention identifies the antecedent), only seeds are used for which both runs
            reach the threshold.
    """

    runs: int
    solved: int | None
    is_solved: bool | None
    measures: dict[str, SeedValues]
    against_base: dict[str, SeedDifference] = field(default_factory=dict)


Groups = dict[str, dict[str, GroupSummary]]
"""{language: {group: summary}}."""


@dataclass(frozen=True, kw_only=True)
class CellRun:
    """Status of one run of a cell: one configuration of a study, trained with one seed.

    The fields are as in `RunRecord`.
    """

    seed: int
    status: str
    error: str
    head: tuple[int, int] | None
    seconds: float | None


@dataclass(frozen=True, kw_only=True)
class CellSummary:
    """Results of one configuration (cell); `name`, `factor`, `parts` and `overrides` are those of its `StudyCell`."""

    name: str
    factor: str
    parts: tuple[str, ...]
    overrides: tuple[str, ...]
    runs: tuple[CellRun, ...]
    groups: Groups


@dataclass(frozen=True, kw_only=True)
class PoolRun:
    """Status of a run in a pool (several configurations of a study summarised together)."""

    cell: str
    seed: int
    status: str


@dataclass(frozen=True, kw_only=True)
class PoolSummary:
    """Results of a pool (several configurations, `cells`, summarised together); `runs` are ordered by cell."""

    name: str
    cells: tuple[str, ...]
    runs: tuple[PoolRun, ...]
    groups: Groups


@dataclass(frozen=True, kw_only=True)
class Interaction(SeedDifference):
    """Interaction of two changes to the base configuration: their joint effect minus the sum of their single effects.

    Median, range and interval are over seeds.
    """

    cell: str
    language: str
    group: str
    measure: str


@dataclass(frozen=True, kw_only=True)
class RuleOutcome:
    """Outcome of one rule of a study; the attributes not listed here are those of `VerdictRule`.

    Attributes:
        needed: the condition in symbols and English words, such as "lowest ≥ 0.9".
        passed: whether the rule holds; None if the measured runs do not decide this.
        spreads: median and range over seeds of the quantity that the rule bounds, keyed by language. A language is left
            out if the measure is missing for a compared group; the entry is None if no seed has a value, for instance
            because no run solves the task.
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
    """Verdict on a study's claim ("holds", "not so" or "open"), with the outcomes of the rules that decide it."""

    verdict: str
    rules: tuple[RuleOutcome, ...]


@dataclass(frozen=True, kw_only=True)
class Study:
    """Results of a study: its question, configurations (`cells`), pools (cells summarised together) and verdict."""

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
        """Return the cells (configurations), followed by the pools, in the order in which tables list them."""
        return [*self.cells, *self.pools]

    @property
    def measured_languages(self) -> list[str]:
        """Return the languages with measurements."""
        return list(dict.fromkeys(language for cell in self.cells for language in cell.groups))

    def groups_in(self, language: str) -> Iterator[GroupSummary]:
        """Yield the summaries of every cell (configuration) on all groups of items in one language, without pools."""
        for cell in self.cells:
            yield from cell.groups.get(language, {}).values()

    def to_json(self) -> Any:
        """Return the content of `study.json`."""
        return to_json(self)


def read_study(path: Path, way_out: str) -> Study:
    """Read the results of a study from a `study.json`; `way_out` is the advice at the end of error messages.

    Raises:
        FileNotFoundError: the file does not exist.
        UserError: the file is damaged; the message names the key and the allowed values.
    """
    content = read_json(path, {str: object}, way_out)
    try:
        study = from_json(Study, content)
    except UserError as error:
        raise UserError(f"{path}: {error}; {way_out}") from None
    verdict = study.verdict.verdict
    if verdict not in VERDICTS:
        raise UserError(f"{path}: verdict ({verdict!r:.60}) must be one of {', '.join(VERDICTS)}; {way_out}")
    return study
