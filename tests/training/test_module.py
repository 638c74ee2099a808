from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from anaphora.training.module import adamw, learning_rate_shape, step_seed
from anaphora.training.settings import Optimizer


@pytest.mark.parametrize(
    ("decay", "halfway", "last"), [("linear", 0.5, 0.0), ("cosine", 0.5, 0.0), ("constant", 1.0, 1.0)]
)
def test_the_learning_rate_warms_up_and_then_takes_its_shape(decay: str, halfway: float, last: float) -> None:
    share = learning_rate_shape(Optimizer(steps=120, warmup=1 / 6, decay=decay))
    assert [share(step) for step in (0, 9, 19)] == pytest.approx([0.05, 0.5, 1.0])
    assert share(20) == pytest.approx(1.0)
    assert share(70) == pytest.approx(halfway)
    assert share(120) == pytest.approx(last)


def test_a_cosine_is_above_a_line_first_and_below_it_later() -> None:
    line, wave = (learning_rate_shape(Optimizer(steps=100, warmup=0.0, decay=decay)) for decay in ("linear", "cosine"))
    assert wave(25) > line(25)
    assert wave(75) < line(75)
    assert wave(25) == pytest.approx(
        0.5
        + 0.5
        * math.cos(
            math.pi * 0.24747,
        ),
        abs=0.01,
    )


def test_weights_decay_on_matrices_alone() -> None:
    module = nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2))
    optimizer = adamw(module, Optimizer(weight_decay=0.5, beta2=0.9))
    decays = {id(weight): group["weight_decay"] for group in optimizer.param_groups for weight in group["params"]}
    assert {name: decays[id(weight)] for name, weight in module.named_parameters()} == {
        "0.weight": 0.5,
        "0.bias": 0.0,
        "1.weight": 0.0,
        "1.bias": 0.0,
    }
    assert optimizer.param_groups[0]["betas"] == (0.9, 0.9)


def test_every_step_of_every_seed_has_a_generator_of_its_own() -> None:
    seeds = {step_seed(seed, step) for seed in range(50) for step in range(200)}
    assert len(seeds) == 50 * 200
    assert all(0 <= seed < 2**63 for seed in seeds)
    torch.manual_seed(max(seeds))
