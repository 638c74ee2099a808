"""Tests of launchers and samplers of the extra `cluster`, skipped if their packages are not installed."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from anaphora.training.reuse import objective

Script = Callable[..., tuple[int, str, str]]
Sweep = Callable[..., tuple[int, str, str]]


@pytest.fixture
def sweep(script: Script, table: Path, tiny_settings: tuple[str, ...], tmp_path: Path) -> Sweep:
    """Return a function that runs a sweep of tiny runs with the given overrides in `tmp_path`."""
    places = ("data=jsonl", f"data.path={table}", f"output={tmp_path}", f"hydra.sweep.dir={tmp_path}")
    return lambda *overrides: script("train", "-m", *places, *tiny_settings, *overrides)


@pytest.mark.parametrize(
    ("launcher", "package"),
    [("joblib", "hydra_plugins.hydra_joblib_launcher"), ("submitit_local", "hydra_plugins.hydra_submitit_launcher")],
)
def test_a_failure_in_another_process_is_listed_and_the_other_jobs_go_on(
    launcher: str, package: str, sweep: Sweep, tmp_path: Path
) -> None:
    pytest.importorskip(package)
    status, _, err = sweep(
        f"hydra/launcher={launcher}", "model.attention.heads=2,3"
    )  # a width of 16 has no three heads
    assert status == 1
    assert "1 of the sweep's jobs failed:" in err
    assert err.count("model.width (16) must be a multiple of model.attention.heads (3)") == 1
    assert len(list(tmp_path.glob("*/model.safetensors"))) == 1


def test_optuna_minimises_the_objective_and_goes_on_after_a_failure(sweep: Sweep, tmp_path: Path) -> None:
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper")
    sampler = ("hydra/sweeper=optuna", "hydra.sweeper.sampler.seed=1", "hydra.sweeper.n_trials=4")
    status, _, err = sweep(*sampler, "hydra.sweeper.n_jobs=1", "model.attention.heads=choice(2,3,4)")
    best = OmegaConf.load(tmp_path / "optimization_results.yaml")
    runs = [path.parent for path in tmp_path.glob("*/model.safetensors")]
    assert best.best_value == min(objective(run, "validation_loss") for run in runs) < math.inf
    assert (status, "heads=3" in err) == (1, True)
