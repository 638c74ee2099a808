"""Tests that the study of trained controls has the settings of their experiments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from anaphora.analysis.evidence.plan import ALL_CONTROLS
from anaphora.settings.run import Config
from anaphora.settings.typed import resolve
from anaphora.studies.plan import StudyPlan


def test_the_study_of_the_controls_has_each_as_its_experiment_has_it(
    compose: Callable[..., Any], settings: Callable[..., Config]
) -> None:
    plan = resolve(compose("study=composition_controls", primary="study"), StudyPlan)
    cells = {name: overrides for cells in plan.factors.values() for name, overrides in cells.items()}
    assert set(cells) == set(ALL_CONTROLS)
    for name, overrides in cells.items():
        assert settings(*plan.base, *overrides) == settings(f"experiment=control_{name}")
    assert {rule.cell for rule in plan.rules} == {"base", *ALL_CONTROLS}
