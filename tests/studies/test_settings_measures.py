from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
import torch

from anaphora.studies import settings_measures

Settings = Callable[..., Any]


def test_the_norm_of_the_softmax_jacobian_is_that_of_autograd() -> None:
    scores = torch.randn(7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(lambda one: one.softmax(dim=0), scores)  # type: ignore[no-untyped-call]
    torch.testing.assert_close(settings_measures.jacobian_norm(scores.softmax(dim=0)), jacobian.norm())


def test_without_the_scale_variance_grows_and_softmax_saturates(settings: Settings) -> None:
    scaled = settings_measures.scaling(settings(), 0)["any"]
    unscaled = settings_measures.scaling(settings("model.attention.scaled=false"), 0)["any"]
    for features in (4, 64, 256):
        assert scaled[f"d_k {features}"]["score_variance"] == pytest.approx(1, rel=0.25)
        assert unscaled[f"d_k {features}"]["score_variance"] == pytest.approx(features, rel=0.25)
    wide = "d_k 256"
    assert unscaled[wide]["entropy_bits"] < 1 < 4 < scaled[wide]["entropy_bits"] <= 5  # type: ignore[operator]
    assert unscaled[wide]["gradient_norm"] < scaled[wide]["gradient_norm"]  # type: ignore[operator]


@pytest.mark.parametrize(
    ("position", "order_is_seen", "shift_is_seen"),
    [("none", False, False), ("sinusoidal", True, True), ("learned", True, True), ("rotary", True, False),
     ("alibi", True, False), ("t5_relative", True, False)],
)  # fmt: skip
def test_what_an_encoder_makes_of_order_and_of_a_shift(
    position: str, order_is_seen: bool, shift_is_seen: bool, settings: Settings
) -> None:
    # Wide weights, so that nothing is equal merely because all is small.
    config = settings(f"model/position={position}", "model.width=16", "model.initialisation.deviation=0.5")
    measures = settings_measures.symmetry(config, 0)["any"]["all"]
    assert (measures["permutation_change"] > 1e-6) is order_is_seen  # type: ignore[operator]
    assert (measures["shift_change"] > 1e-6) is shift_is_seen  # type: ignore[operator]


@pytest.mark.parametrize("attention", ["multi_head", "gru"])
def test_the_time_of_a_step_is_the_median_without_the_first(
    attention: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings_measures, "SENTENCE_LENGTHS", (4, 8))
    monkeypatch.setattr(settings_measures, "BATCH_TOKENS", 16)
    ticks = count()
    stops = [100.0, 3.0, 1.0, 2.0] * 2  # the first step of each length is slow

    def clock() -> float:
        tick = next(ticks)
        return 1000.0 * (tick // 2) + (stops[tick // 2] if tick % 2 else 0.0)

    measures = settings_measures.step_time(settings(f"model/attention={attention}", "model.width=16"), 0, clock)["any"]
    assert measures == {"tokens 4": {"seconds_per_step": 2.0}, "tokens 8": {"seconds_per_step": 2.0}}
