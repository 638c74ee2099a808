"""The levels of compositions as a table, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Iterator

from anaphora.analysis.results.evidence import Evidence
from anaphora.analysis.results.scores import Level
from anaphora.report.numbers import format_count, format_percent
from anaphora.report.wording import label, labels, language_name, phrase


def level_columns() -> list[str]:
    """The heads of the columns of `level_rows`, the first two for language and level."""
    names = ("language", "level", "items", "task", "candidate", "octads", "mass", "best_shortcut", "untrained")
    return [phrase("levels", f"column_{name}") for name in names]


def level_rows(evidence: Evidence, shortcut: str = "{name} {accuracy}") -> Iterator[list[str]]:
    """A row for every language and level; `shortcut` is how the best one is written."""
    for code, levels in (evidence.levels or {}).items():
        for name, level in levels.items():
            cells = _cells(level, shortcut)
            yield [language_name(code), label("level_names", name), *cells]


def _cells(level: Level, shortcut: str) -> list[str]:
    best = level.best_shortcut
    # Compositions have shortcuts of their own; set cues, the baselines of every corpus.
    names = labels("baselines") | labels("shortcuts")
    return [
        format_count(level.items),
        format_percent(level.task_accuracy, level.intervals.task_accuracy),
        format_percent(level.candidate_accuracy, level.intervals.candidate_accuracy),
        format_percent(level.octad_accuracy),
        format_percent(level.antecedent_mass),
        ""
        if best is None
        else shortcut.format(name=names.get(best.name, best.name), accuracy=format_percent(best.accuracy)),
        format_percent(level.random_init),
    ]
