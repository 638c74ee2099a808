"""Median and spread of every measure over several runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from anaphora.analysis.evidence.comparison import compare_runs
from anaphora.analysis.evidence.schema.evidence import Evidence
from anaphora.base.console import say
from anaphora.base.errors import UserError
from anaphora.base.files import check_writable, write_csv
from anaphora.commands.shared import scored_evidence
from anaphora.report.terminal import print_comparison
from anaphora.runs.presence import run_directories
from anaphora.settings.commands.analysis import RunComparison


def compare(settings: RunComparison) -> None:
    """Print the median and spread of every measure over several runs, and keep them as CSV where a file is named."""
    if settings.output:
        check_writable(Path(settings.output))
    rows = compare_runs(stored_evidence(run_directories(settings.runs)))
    print_comparison(rows)
    if settings.output:
        write_csv(Path(settings.output), [row.to_row() for row in rows])
        say(f"table {settings.output}")


def stored_evidence(runs: Sequence[str]) -> list[Evidence]:
    """The stored evidence on each run.

    Raises:
        UserError: fewer than two runs, or a run that has not been scored.
    """
    if len(runs) < 2:
        raise UserError(f"runs ({list(runs)}) must name at least two run directories")
    return [scored_evidence(run, "test") for run in runs]
