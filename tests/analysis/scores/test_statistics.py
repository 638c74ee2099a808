from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.results.scores import Head, Spread
from anaphora.analysis.scores import statistics
from anaphora.analysis.scores.heads import HeadScores, choose_head, score_records, strongest_candidates
from anaphora.analysis.scores.statistics import (
    cluster_interval,
    has_interval,
    holm,
    median_and_spread,
    permutation_p,
    permutation_p_max,
    smallest_p,
)
from anaphora.data.example import Example

SPANS = tuple((3 * word, 3 * word + 2) for word in range(5))


def item(chosen: Sequence[int], gold: int, count: int = 2, **rest: Any) -> AttentionRecord:
    """Return one item of `count` candidates; `chosen` has each head's choice."""
    weights = np.full((1, len(chosen), 5), 0.1, dtype=np.float32)
    weights[0, np.arange(len(chosen)), chosen] = 0.6
    example = Example(
        text="ab ab ab ab ab",
        language="en",
        pronoun=SPANS[4],
        candidates=tuple((span,) for span in SPANS[:count]),
        antecedents=(gold,),
        **rest,
    )
    return AttentionRecord(example, SPANS, tuple(range(5)), weights)


Policy = Callable[[int, int, int], list[int]]


def block(name: str, size: int, policy: Policy) -> list[AttentionRecord]:
    """Return all cells of `size` cues and `size` orders; `policy(order, cue, gold)` gives the heads' choices."""
    return [
        item(
            policy(order, cue, (cue + order) % size),
            (cue + order) % size,
            size,
            group=name,
            minimal_pair=f"{name}-{order}",
            factors={"cue": f"cue {cue}", "order": str(order)},
        )
        for order in range(size)
        for cue in range(size)
    ]


def blocks(policy: Policy, count: int = 12, size: int = 2) -> HeadScores:
    return score_records([each for number in range(count) for each in block(f"b{number}", size, policy)])


def interval(values: Any, clusters: Sequence[Hashable], **rest: Any) -> tuple[float, float]:
    ends = cluster_interval(values, clusters, **rest)
    assert ends is not None
    return ends


@pytest.mark.parametrize("count", [9, 40])
def test_the_interval_covers_the_mean_as_often_as_it_says(count: int) -> None:
    random = np.random.default_rng(count)
    covered = 0
    for trial in range(300):
        sizes = random.integers(2, 8, size=count)
        values = np.concatenate(
            [random.normal(centre, 1, size) for centre, size in zip(random.normal(size=count), sizes, strict=True)]
        )
        low, high = interval(values, np.repeat(np.arange(count), sizes).tolist(), draws=400, seed=trial)
        covered += low <= 0 <= high
    assert 0.91 <= covered / 300 <= 0.985


def test_items_of_one_cluster_do_not_count_as_independent() -> None:
    values = np.repeat(np.random.default_rng(0).random(20), 50)
    low, high = interval(values, np.repeat(np.arange(20), 50).tolist())
    alone_low, alone_high = interval(values, list(range(1000)))
    assert high - low > 4 * (alone_high - alone_low)


def test_the_interval_is_a_function_of_its_seed() -> None:
    values, clusters = np.arange(30) / 30, [f"template {number // 3}" for number in range(30)]
    assert cluster_interval(values, clusters, seed=3) == interval(values, clusters, seed=3)
    assert cluster_interval(values, clusters, seed=3) != interval(values, clusters, seed=4)
    low, high = interval(values, clusters)
    assert low < np.mean(values) < high


def test_one_cluster_gives_no_interval() -> None:
    assert cluster_interval([0.0, 1.0], ["a", "a"]) is None


def test_values_and_clusters_must_be_as_many() -> None:
    with pytest.raises(ValueError, match=r"values must be \(2,\)"):
        cluster_interval([0.0, 1.0, 1.0], ["a", "b"])


def ignorant(scored: HeadScores, random: np.random.Generator) -> HeadScores:
    """Return the same items with heads that weigh the candidates at random."""
    other = replace(scored, candidate_mass=random.random(scored.candidate_mass.shape, dtype=np.float32))
    return replace(other, candidate_accuracy=(strongest_candidates(other) * other.gold[:, None, None]).sum(axis=-1))


def test_p_is_uniform_where_the_head_knows_nothing() -> None:
    random = np.random.default_rng(0)
    scored = score_records([item([0], number % 4, 4) for number in range(250)])
    p_values = [permutation_p(ignorant(scored, random), Head(0, 0), draws=199, seed=trial) for trial in range(150)]
    assert stats.kstest(p_values, "uniform").pvalue > 0.01


def test_p_is_uniform_where_blocks_trade_their_cues() -> None:
    random = np.random.default_rng(1)
    scored = blocks(lambda order, cue, gold: [gold], count=30, size=3)
    p_values = [permutation_p(ignorant(scored, random), Head(0, 0), draws=199, seed=trial) for trial in range(100)]
    assert stats.kstest(p_values, "uniform").pvalue > 0.01


def test_the_best_of_many_ignorant_heads_is_found_significant_no_more_often_than_one() -> None:
    random = np.random.default_rng(2)
    scored = score_records([item([0] * 16, number % 2) for number in range(80)])
    corrected, naive = 0, 0
    for trial in range(100):
        heads = ignorant(scored, random)
        corrected += permutation_p_max(heads, draws=99, seed=trial).min() <= 0.05
        naive += permutation_p(heads, choose_head(heads), draws=99, seed=trial) <= 0.05
    assert corrected <= 12  # 5 are expected
    assert naive >= 30  # the reason for the correction


def test_a_head_that_finds_the_antecedent_has_the_smallest_p_there_is() -> None:
    scored = blocks(lambda order, cue, gold: [gold, 0])
    np.testing.assert_allclose(permutation_p_max(scored, draws=199), [[1 / 200, 1.0]])
    assert permutation_p(scored, Head(0, 0), draws=199) == pytest.approx(1 / 200)


@pytest.mark.parametrize("size", [2, 3])
def test_a_policy_of_position_or_entity_is_never_significant(size: int) -> None:
    scored = blocks(lambda order, cue, gold: [0, order, size - 1], size=size)
    np.testing.assert_array_equal(permutation_p_max(scored, draws=99), np.ones((1, 3)))


def test_all_orders_of_a_block_trade_cues_together() -> None:
    # One block, two cues: only "as it is" and "traded" exist, so even a perfect head has p near 1 / 2.
    p = permutation_p(blocks(lambda order, cue, gold: [gold], count=1), Head(0, 0), draws=999)
    assert p == pytest.approx(0.5, abs=0.06)


def test_pairs_of_two_and_sets_of_three_cues_are_permuted_in_one_test() -> None:
    records = [block(f"b{size}", size, lambda order, cue, gold: [gold]) for size in (2, 3)]
    # Two permutations of two cues and six of three: a perfect head is drawn in 1 / 12 of the relabellings.
    p = permutation_p(score_records([each for some in records for each in some]), Head(0, 0), draws=2000)
    assert p == pytest.approx(1 / 12, abs=0.02)


def test_fillers_are_never_relabelled_as_antecedents() -> None:
    fillers: dict[str, Any] = {"factors": {"focal": "0,1"}}
    scored = score_records([item([number % 2], number % 2, 4, **fillers) for number in range(2)])
    # Two items with two focal candidates each: a perfect score is drawn in 1 / 4 of the relabellings, not in 1 / 16.
    assert permutation_p(scored, Head(0, 0), draws=2000) == pytest.approx(0.25, abs=0.04)


@pytest.mark.parametrize("members", [1, 2])
def test_minimal_pairs_with_the_same_answer_or_none_beside_draw_it_anew(members: int) -> None:
    scored = score_records([item([0], 0, minimal_pair=f"t{number // members}") for number in range(4)])
    assert permutation_p(scored, Head(0, 0), draws=2000) == pytest.approx(1 / 16, abs=0.02)


def test_minimal_pairs_of_unequal_numbers_of_candidates_draw_theirs_anew() -> None:
    # One answer of two and one of three: all right in 1 / 6 of the relabellings; a trade of cues would make it 1 / 2.
    scored = score_records([item([0], 0, 2, minimal_pair="t"), item([1], 1, 3, minimal_pair="t")])
    assert permutation_p(scored, Head(0, 0), draws=2000) == pytest.approx(1 / 6, abs=0.03)


def test_an_antecedent_that_the_cue_may_not_pick_takes_part_in_the_draw() -> None:
    # Antecedents 0 and 3 of four, the cue may pick 0 and 1: two of {0, 1, 3} are drawn, 0 among them in 2 / 3.
    single = item([0], 0, 4, factors={"focal": "0,1"})
    both = replace(single, example=replace(single.example, antecedents=(0, 3)))
    assert permutation_p(score_records([both]), Head(0, 0), draws=2000) == pytest.approx(2 / 3, abs=0.04)


def rewrites(random: np.random.Generator, groups: int, knows: bool) -> HeadScores:
    """Return groups of four items with one antecedent and one choice of the head."""
    records = []
    for number in range(groups):
        gold, chosen = random.integers(2, size=2).tolist()
        records += [item([gold if knows else chosen], gold, group=f"g{number}") for _ in range(4)]
    return score_records(records)


def test_p_is_uniform_where_items_of_a_group_have_one_antecedent() -> None:
    random = np.random.default_rng(0)
    p_values = [permutation_p(rewrites(random, 20, False), Head(0, 0), draws=99, seed=trial) for trial in range(100)]
    assert np.mean(np.array(p_values) <= 0.1) <= 0.17  # 0.2 if every item draws its own


def test_items_of_a_group_exchange_the_candidates_that_may_be_antecedents_in_the_same_way() -> None:
    scored = rewrites(np.random.default_rng(0), 3, True)
    assert smallest_p(scored.examples) == pytest.approx((1 + 2000 / 2**3) / 2001)
    assert permutation_p(scored, Head(0, 0)) == pytest.approx(1 / 8, abs=0.02)
    # Of three candidates each, in different places: all six permutations differ, since the antecedents do.
    wide = {"group": "g", "factors": {"focal": "0,1,3"}}
    several = score_records([item([1], 1, 3, group="g"), item([3], 3, 4, **wide)])
    assert smallest_p(several.examples) == pytest.approx((1 + 2000 / 6) / 2001)
    assert permutation_p(several, Head(0, 0)) == pytest.approx(1 / 6, abs=0.03)
    # Another number of candidates has permutations of its own.
    unequal = score_records([item([0], 0, 2, group="g"), item([1], 1, 3, group="g")])
    assert smallest_p(unequal.examples) == pytest.approx((1 + 2000 / 6) / 2001)
    assert permutation_p(unequal, Head(0, 0)) == pytest.approx(1 / 6, abs=0.03)


def test_only_main_items_count_for_the_grid() -> None:
    main = [each for number in range(8) for each in block(f"b{number}", 2, lambda order, cue, gold: [0])]
    other = [item([0], 0, factors={"stratum": "cataphora"}) for _ in range(50)]
    assert permutation_p_max(score_records(main + other), draws=99).tolist() == [[1.0]]


@pytest.mark.parametrize(("count", "size", "labels"), [(1, 2, 2), (5, 2, 32), (2, 3, 36)])
def test_the_smallest_p_is_that_of_a_head_that_is_always_right(count: int, size: int, labels: int) -> None:
    scored = blocks(lambda order, cue, gold: [gold], count, size)
    assert smallest_p(scored.examples) == pytest.approx((1 + 2000 / labels) / 2001)
    assert permutation_p(scored, Head(0, 0)) == pytest.approx(smallest_p(scored.examples), abs=0.02)
    alone = score_records([item([one % 2], one % 2) for one in range(count)])
    assert smallest_p(alone.examples) == pytest.approx((1 + 2000 / 2**count) / 2001)
    assert permutation_p(alone, Head(0, 0)) == pytest.approx(smallest_p(alone.examples), abs=0.03)


def test_many_items_have_the_smallest_p_that_the_draws_allow() -> None:
    assert smallest_p(score_records([item([0], 0)] * 3000).examples) == pytest.approx(1 / 2001)
    assert smallest_p([]) == 1


def test_holm_agrees_with_a_hand_calculation() -> None:
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(holm([0.7, 0.6]), [1.0, 1.0])
    assert holm([]).shape == (0,)


def test_a_handful_of_seeds_is_reported_by_median_and_range() -> None:
    assert median_and_spread([0.9, 0.2, 0.8]) == Spread(0.8, 0.2, 0.9)
    with pytest.raises(ValueError, match="one or more numbers"):
        median_and_spread([])
    with pytest.raises(ValueError, match="one or more numbers"):
        median_and_spread([0.1, np.nan])


def test_the_interval_of_few_clusters_is_that_of_expanded_percentiles() -> None:
    """The reference is a count of all 3125 samples of five clusters with means 0 to 4 (Hesterberg 2015, section 4.1).

    The normal tail of t(0.025; 4 degrees of freedom) * sqrt(5/4) = -3.10 is 0.00096. A sample mean of 0 has probability
    0.00032, and one of at most 0.2 has 0.0019, so the ends are 0.2 and 3.8; those of plain percentiles are 0.8 and 3.2.
    """
    assert interval(np.arange(5), list("abcde"), draws=40_000) == pytest.approx((0.2, 3.8))


def test_two_clusters_are_enough_for_an_interval_which_is_then_a_t_interval_within_its_bounds() -> None:
    assert interval([0.0, 1.0], ["a", "b"]) == pytest.approx((0.5 - 12.7062 * 0.5, 0.5 + 12.7062 * 0.5), abs=1e-4)
    assert interval([0.0, 1.0], ["a", "b"], bounds=(0, 1)) == (0.0, 1.0)


@pytest.mark.parametrize("value", [0.0, 0.1, 0.5, 1.0, -1.0])
def test_up_to_five_clusters_that_are_all_alike_give_no_interval(value: float) -> None:
    for count in range(1, 6):
        labels = [number // 3 for number in range(3 * count)]
        assert cluster_interval([value] * 3 * count, labels) is None
        assert cluster_interval([value + shift for _ in range(count) for shift in (-0.3, 0.1, 0.2)], labels) is None
    assert interval([value] * 6, list("abcdef")) == pytest.approx((value, value))  # the sign test: 1/32 is below 5 %
    assert has_interval([0.0, 1.0]) and not has_interval([]) and not has_interval([0.5])


def test_an_interval_of_linearised_values_stays_within_its_bounds_too() -> None:
    values = [1.5, 1.4, 1.3, 1.2, -1.0, 1.6]  # a difference of two shares as a mean: each value may leave -1 to 1
    free, bounded = interval(values, list("abcdef")), interval(values, list("abcdef"), bounds=(-1, 1))
    assert free is not None and bounded is not None
    assert free[1] > 1 and bounded == (free[0], 1.0)


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8])
def test_intervals_of_few_clusters_hold_the_mean_about_as_often_as_they_say(count: int) -> None:
    random = np.random.default_rng(count)
    ends = [interval(random.normal(size=3 * count), list(range(count)) * 3) for _ in range(200)]
    held = np.mean([found is not None and found[0] <= 0 <= found[1] for found in ends])
    assert held >= 0.88


def test_what_is_not_asked_for_is_so_many_draws_of_seed_0() -> None:
    values, clusters = np.random.default_rng(0).random(60), [number // 3 for number in range(60)]
    assert interval(values, clusters) == interval(values, clusters, draws=2000, seed=0)
    random = np.random.default_rng(1)
    scored = ignorant(score_records([item([0, 1, 0], number % 4, 4) for number in range(20)]), random)
    np.testing.assert_array_equal(permutation_p_max(scored), permutation_p_max(scored, draws=1000, seed=0))
    assert permutation_p(scored, Head(0, 1)) == permutation_p(scored, Head(0, 1), draws=2000, seed=0)


def test_draws_are_held_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "_MAX_RANDOM_NUMBERS", 8)
    assert [list(statistics._chunks(*each)) for each in ((5, 4), (3, 100), (2, 0))] == [[2, 2, 1], [1, 1, 1], [2]]
