from __future__ import annotations

import numpy as np
import pytest

from experiments.sample_size.formulas import (
    ClusteredMean,
    clustered_mean,
    deviation_interval,
    deviation_of_range,
    items_needed,
    seeds_needed,
)


def test_the_design_effect_is_one_alone_and_the_clusters_size_where_a_cluster_answers_as_one() -> None:
    values = np.random.default_rng(0).integers(2, size=4000).astype(float)
    assert clustered_mean(values, range(4000)).design_effect == pytest.approx(1, abs=1e-9)
    shuffled = clustered_mean(values, [item % 500 for item in range(4000)]).design_effect
    assert shuffled == pytest.approx(1, abs=0.2)
    together = clustered_mean(np.repeat(values, 8), np.repeat(np.arange(4000), 8).tolist())
    assert together.design_effect == pytest.approx(8, rel=1e-3)
    assert (together.items, together.clusters) == (32_000, 4000)


def test_the_spread_of_a_mean_over_drawn_templates_is_what_the_design_effect_says() -> None:
    random = np.random.default_rng(1)
    means, predicted = [], []
    for _ in range(400):
        difficulty = random.beta(2, 1, size=40)
        values = (random.random((40, 10)) < difficulty[:, None]).astype(float).reshape(-1)
        spread = clustered_mean(values, np.repeat(np.arange(40), 10).tolist())
        assert spread.design_effect is not None
        means.append(spread.mean)
        predicted.append(spread.design_effect * spread.item_variance / spread.items)
    assert np.mean(predicted) == pytest.approx(np.var(means), rel=0.15)


def test_nothing_tells_how_clusters_vary_where_there_is_one_or_all_items_are_alike() -> None:
    for spread in (clustered_mean([0, 1, 1], "aaa"), clustered_mean([1, 1, 1], "abc")):
        assert spread.design_effect is None
        assert items_needed(spread, 0.05, 0.05, 0.8) is None


def test_items_are_those_of_the_textbook_times_the_design_effect() -> None:
    alone = ClusteredMean(0.5, 100, 100, 0.25, 1.0)
    assert items_needed(alone, 0.05, 0.05, 0.8) == 785
    assert items_needed(alone, 0.05, 0.05, 0.8, samples=2) == 1570
    assert items_needed(ClusteredMean(0.5, 100, 10, 0.25, 0.0), 0.05, 0.05, 0.8) is None
    assert items_needed(ClusteredMean(0.5, 100, 10, 0.25, 4.0), 0.05, 0.05, 0.8) == 3140


@pytest.mark.parametrize(
    ("effect", "samples", "seeds"), [(1.0, 1, 10), (0.5, 1, 34), (1.0, 2, 17), (0.5, 2, 64), (2.0, 2, 6)]
)
def test_seeds_are_those_of_the_tables_of_the_t_test(effect: float, samples: int, seeds: int) -> None:
    """Expected numbers are from G*Power 3.1 and Cohen 1988, table 2.4.1: two-sided alpha 0.05, power 0.8."""
    assert seeds_needed(0.1, 0.1 * effect, 0.05, 0.8, samples) == seeds


def test_two_seeds_are_the_fewest_and_too_many_are_none() -> None:
    assert seeds_needed(0.0, 0.05, 0.05, 0.8) == 2
    assert seeds_needed(1e-9, 0.05, 0.05, 0.8) == 2
    assert seeds_needed(1.0, 1e-3, 0.05, 0.8) is None


def test_the_deviation_of_five_seeds_is_known_from_sixty_percent_of_it_to_nearly_three_times() -> None:
    deviation, low, high = deviation_interval([1, 2, 3, 4, 5])
    assert (deviation, low / deviation, high / deviation) == pytest.approx((1.5811, 0.5991, 2.8736), rel=1e-4)


def test_a_range_gives_the_deviation_by_the_constants_of_control_charts() -> None:
    for seeds, constant in ((2, 1.128), (3, 1.693), (5, 2.326), (10, 3.078)):
        assert deviation_of_range(0.9, 0.9 + constant / 100, seeds) == pytest.approx(0.01, rel=1e-3)
