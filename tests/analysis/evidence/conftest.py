"""A trained run and its evaluation items."""

from __future__ import annotations

from pathlib import Path

import pytest

from anaphora.runs.directory import Run, load
from anaphora.runs.items import EvaluationSplits, evaluation_splits


@pytest.fixture(scope="module")
def run(finished: Path) -> Run:
    return load(finished)


@pytest.fixture(scope="module")
def material(run: Run) -> EvaluationSplits:
    return evaluation_splits(run, "test")
