from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from anaphora.analysis import study as module
from anaphora.analysis.scores import Head, choose_head
from anaphora.analysis.settings import Analysis
from anaphora.analysis.study import Study, study
from anaphora.checkpoint import Run, load
from anaphora.workflow import Material, material_of


@pytest.fixture(scope="module")
def run(finished: Path) -> Run:
    return load(finished)


@pytest.fixture(scope="module")
def material(run: Run) -> Material:
    return material_of(run, Analysis(run=str(run.directory)))


def found(run: Run, material: Material, untrained: int = 0, chosen: Head | None = None) -> Study:
    return study(run, material.training, material.development, material.measured, "test", untrained, chosen)


def test_the_head_is_chosen_on_development_and_measured_elsewhere(run: Run, material: Material) -> None:
    one = found(run, material)
    assert one.head == choose_head(one.development)
    assert list(one.development.examples) == material.development
    assert list(one.measured.examples) == material.measured
    assert one.metrics()["head"] == {"layer": one.head.layer, "head": one.head.head, "chosen_on": "dev"}
    # A split whose best head is another does not change the choice.
    swapped = study(run, material.training, material.measured, material.development, "dev", 0)
    assert swapped.head == choose_head(one.measured)
    assert swapped.metrics()["languages"] != one.metrics()["languages"]


def test_a_head_fixed_beforehand_is_the_one_that_is_measured(run: Run, material: Material) -> None:
    for head in (Head(0, 0), Head(1, 1)):
        one = found(run, material, chosen=head)
        accuracy = one.measured.candidate_accuracy[:, head.layer, head.head]
        english = [example.language == "en" for example in one.measured.examples]
        told = one.metrics()["languages"]["en"]["candidate_accuracy"]
        assert told == pytest.approx(float(accuracy[english].mean()), abs=1e-6)


def test_untrained_models_are_the_same_ones_every_time_and_choose_for_themselves(
    run: Run, material: Material, monkeypatch: pytest.MonkeyPatch
) -> None:
    three, two = found(run, material, 3).untrained, found(run, material, 2).untrained
    np.testing.assert_array_equal(three[:2], two)
    assert len({row.tobytes() for row in three}) > 1
    monkeypatch.setattr(module, "UNTRAINED_MEASURED", 4)
    few = found(run, material, 2)
    asked = ~np.isnan(few.untrained)
    assert asked.sum(axis=1).tolist() == [4, 4]
    np.testing.assert_array_equal(few.untrained[asked], two[asked])
    groups = [example.group for example, inside in zip(few.measured.examples, asked[0], strict=True) if inside]
    assert all(groups.count(group) == 2 for group in groups)  # whole blocks
    told = few.metrics()
    assert told["untrained_models"] == 2
    assert told["languages"]["en"]["baselines"]["random_init"] is not None


def test_progress_names_every_stage(run: Run, material: Material) -> None:
    stages: list[str] = []
    study(run, material.training, material.development, material.measured, "test", 1, None, stages.append)
    assert stages == ["development split", "test split", "baselines", "untrained model 1 of 1"]
