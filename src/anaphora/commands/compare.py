"""Median and spread of every measure over several runs."""

from __future__ import annotations

from collections.abc import Sequence

from anaphora.analysis.evidence.comparison import compare_runs
from anaphora.analysis.results.evidence import Evidence
from anaphora.base.errors import UserError
from anaphora.commands.shared import TableFile, scored_evidence
from anaphora.report.terminal import print_comparison
from anaphora.runs.presence import run_directories
from anaphora.settings.commands.analysis import RunComparison


def compare(settings: RunComparison) -> None:
    """Print the median and spread of every measure over several runs, and keep them as CSV where a file is named."""
    table = TableFile.checked(settings.output)
    rows = compare_runs(stored_evidence(run_directories(settings.runs)))
    if not rows:
        raise UserError(f"runs ({list(settings.runs)}): none of them has scores of main items")
    print_comparison(rows)
    table.write([row.to_row() for row in rows])


def stored_evidence(runs: Sequence[str]) -> list[Evidence]:
    """The stored evidence on each run.

    Raises:
        UserError: fewer than two runs, or a run that has not been scored.
    """
    if len(runs) < 2:
        raise UserError(f"runs ({list(runs)}) must name at least two run directories")
    return [scored_evidence(run, "test") for run in runs]
