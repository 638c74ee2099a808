from __future__ import annotations

import torch

from anaphora.training.module import step_seed


def test_every_step_of_every_seed_has_a_generator_of_its_own() -> None:
    seeds = {step_seed(seed, step) for seed in range(50) for step in range(200)}
    assert len(seeds) == 50 * 200
    assert all(0 <= seed < 2**63 for seed in seeds)
    torch.manual_seed(max(seeds))
