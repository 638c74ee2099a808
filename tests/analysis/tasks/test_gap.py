from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from anaphora.analysis.maps.answers import shares_chosen
from anaphora.analysis.tasks.gap import (
    Decisions,
    best_thresholds,
    f1_difference,
    gap_score,
    gold_decisions,
    parallelism,
    rule_scores,
    strongest_names,
)
from anaphora.data.example import Example


def item(text: str, pronoun: str, names: tuple[str, str], right: tuple[int, ...], gender: str = "female") -> Example:
    start = text.rindex(pronoun)
    spans = tuple(((text.index(name), text.index(name) + len(name)),) for name in names)
    return Example(
        text=text,
        language="en",
        pronoun=(start, start + len(pronoun)),
        candidates=spans,
        antecedents=right,
        group=text,
        factors={"gender": gender},
    )


def decisions_from_answers(answers: NDArray[np.int64], most: int) -> Decisions:
    return np.eye(most + 1)[answers][:, :most]  # -1 is the last row: neither name


ITEMS = [
    item("Anna saw Berta; she ran 1", "she", ("Anna", "Berta"), (0,)),
    item("Anna saw Berta; she ran 2", "she", ("Anna", "Berta"), (1,)),
    item("Carl saw Dan; he ran 1", "he", ("Carl", "Dan"), (0,), "male"),
    item("Carl saw Dan; he ran 2", "he", ("Carl", "Dan"), (), "male"),
]


def test_f1_counts_each_name_as_a_decision_of_its_own() -> None:
    score = gap_score(decisions_from_answers(np.array([0, 0, 0, 1]), 2)[None], ITEMS)
    # hits: two; false alarms: one woman, one man where neither is right; misses: one woman
    assert score.precision == pytest.approx(2 / 4)
    assert score.recall == pytest.approx(2 / 3)
    assert score.f1 == pytest.approx(4 / 7)
    assert score.feminine == pytest.approx(2 / 4)
    assert score.masculine == pytest.approx(2 / 3)
    assert score.bias == pytest.approx(3 / 4)


def test_saying_none_where_neither_is_right_costs_nothing() -> None:
    score = gap_score(decisions_from_answers(np.array([0, 1, 0, -1]), 2)[None], ITEMS)
    assert (score.f1, score.bias) == (1, 1)
    assert np.isnan(score.interval).all()  # four texts


def test_too_few_texts_give_no_interval_and_enough_that_are_alike_do() -> None:
    for count in (1, 4, 5, 6, 12):
        examples = [item(f"Anna saw Berta; she ran {one}", "she", ("Anna", "Berta"), (0,)) for one in range(count)]
        right, wrong = (decisions_from_answers(np.full(count, name), 2)[None] for name in (0, 1))
        assert np.isnan(gap_score(right, examples).interval).all() == (count < 6)
        assert np.isnan(f1_difference(right, wrong, examples)[1]).all() == (count < 6)


def test_a_bias_has_an_interval_from_five_texts_of_each_gender_on() -> None:
    men = [item(f"Carl saw Dan; he ran {one}", "he", ("Carl", "Dan"), (one % 2,), "male") for one in range(12)]
    for count in (1, 4, 5):
        women = [item(f"Anna saw Berta; she ran {one}", "she", ("Anna", "Berta"), (one % 2,)) for one in range(count)]
        score = gap_score(decisions_from_answers(np.zeros(12 + count, dtype=np.int64), 2)[None], [*men, *women])
        assert np.isfinite(score.interval).all() and np.isfinite(score.bias)
        assert np.isnan(score.bias_interval).all() == np.isnan(score.weighted_bias_interval).all() == (count < 5)


def test_the_weighted_bias_compares_texts_that_name_equally_many() -> None:
    def with_texts(names: int, number: int, female: bool) -> Example:
        others = ", ".join(f"Other{each}" for each in range(names))
        pair, pronoun = (("Anna", "Berta"), "she") if female else (("Carl", "Dan"), "he")
        text = f"{others} know {pair[0]}, who saw {pair[1]} {number}; {pronoun} ran"
        return item(text, pronoun, pair, (0,), "female" if female else "male")

    # Texts with one name more are answered, those with nine are not; women stand in more of those.
    counts = {(1, True): 20, (9, True): 60, (1, False): 60, (9, False): 20}
    items = [with_texts(names, n, female) for (names, female), many in counts.items() for n in range(many)]
    answers = np.array([0 if example.text.startswith("Other0 know") else 1 for example in items])
    score = gap_score(decisions_from_answers(answers, 2)[None], items)
    assert score.bias == pytest.approx(20 / 60)
    assert score.weighted_bias == pytest.approx(1)
    low, high = score.weighted_bias_interval
    assert low < 1 < high
    # Without texts that both have there is nothing to compare.
    apart = [example for example in items if (example.factors["gender"] == "male") == ("Other1" in example.text)]
    assert np.isnan(
        gap_score(decisions_from_answers(np.zeros(len(apart), dtype=np.int64), 2)[None], apart).weighted_bias
    )


def test_a_gender_whose_items_weigh_less_than_one_keeps_its_f1() -> None:
    # The man shares the number of names with one of six women, so that he weighs 2/7.
    counts = [7, 2, 2, 6, 4, 4, 7]
    items = []
    for number, count in enumerate(counts):
        names, pronoun, gender = (
            (("Carl", "Dan"), "he", "male") if number == 2 else (("Anna", "Berta"), "she", "female")
        )
        others = ", ".join(f"Other{each}" for each in range(count))
        text = f"{others} know {names[0]}, who saw {names[1]} {number}; {pronoun} ran"
        items.append(item(text, pronoun, names, (0,), gender))
    right = decisions_from_answers(np.zeros(len(items), dtype=np.int64), 2)[None]
    assert gap_score(right, items).weighted_bias == pytest.approx(1)


def test_several_models_give_their_mean() -> None:
    decisions = np.stack([decisions_from_answers(np.array(answers), 2) for answers in ([0, 1, 0, -1], [1, 0, 1, 0])])
    score = gap_score(decisions, ITEMS)
    assert score.f1 == pytest.approx(0.5)


def test_a_difference_is_paired_over_the_same_texts() -> None:
    many = [item(f"Anna saw Berta; she ran {n}", "she", ("Anna", "Berta"), (n % 2,)) for n in range(200)]
    right = gold_decisions(many, 2).astype(np.float64)
    worse, other = right.copy(), right.copy()
    worse[:100] = 1 - worse[:100]
    other[100:] = 1 - other[100:]
    above, (low, high) = f1_difference(right[None], worse[None], many)
    assert above == pytest.approx(0.5)
    assert low < above < high
    assert f1_difference(worse[None], worse[None], many) == (0, (0, 0))
    # Equally good on other texts: no difference, and the interval says how little that tells.
    above, (low, high) = f1_difference(worse[None], other[None], many)
    assert above == 0
    assert low < -0.1 < 0.1 < high


def test_the_interval_holds_the_estimate_and_shrinks_with_more_texts() -> None:
    many = [item(f"Anna saw Berta; she ran {n}", "she", ("Anna", "Berta"), (n % 2,)) for n in range(400)]
    few = many[:40]
    widths = []
    for items in (few, many):
        score = gap_score(decisions_from_answers(np.zeros(len(items), dtype=np.int64), 2)[None], items)
        assert score.interval[0] < score.f1 < score.interval[1]
        widths.append(score.interval[1] - score.interval[0])
    assert widths[1] < widths[0] / 2


def test_an_item_without_a_gender_is_refused() -> None:
    with pytest.raises(ValueError, match="gender"):
        gap_score(np.zeros((1, 1, 2)), [item("Anna saw Berta; she", "she", ("Anna", "Berta"), (), "")])


def test_the_best_threshold_is_that_of_trying_every_score() -> None:
    draw = np.random.default_rng(0)
    top = np.round(draw.random((60, 7)), 1)  # with ties
    right = (draw.random((60, 7)) < top).astype(np.float64)
    cuts, f1 = best_thresholds(top, right, 50)
    for policy in range(7):
        tried = []
        for cut in np.unique(top[:, policy]):
            decisions = top[:, policy] >= cut
            tried.append(2 * (right[:, policy] * decisions).sum() / (decisions.sum() + 50))
        decisions = top[:, policy] >= cuts[policy]
        assert f1[policy] == pytest.approx(max(tried))
        assert 2 * (right[:, policy] * decisions).sum() / (decisions.sum() + 50) == pytest.approx(max(tried))


@pytest.mark.parametrize(
    ("text", "pronoun", "names", "answer"),
    [
        ("Anna thanked Berta when she left.", "she", ("Anna", "Berta"), 0),
        ("Anna thanked Berta and Clara praised her.", "her", ("Anna", "Berta"), 1),
        ("Anna's aunt saw Berta in her house.", "her", ("Anna", "Berta"), 0),
        ("Anna left, and Berta stayed, and she ate.", "she", ("Anna", "Berta"), 1),
    ],
)
def test_the_rule_of_roles_takes_the_nearest_name_of_the_same_role(
    text: str, pronoun: str, names: tuple[str, str], answer: int
) -> None:
    assert parallelism(item(text, pronoun, names, ())).argmax() == answer


def test_tied_names_count_as_half_a_decision_each_and_none_of_them_is_a_third() -> None:
    halves = gap_score(np.full((1, 4, 2), 0.5), ITEMS)
    # hits: three halves; false alarms: three halves, and the two names of the last man; misses: three halves
    assert (halves.precision, halves.recall, halves.f1) == pytest.approx((1.5 / 4, 0.5, 3 / 7))
    thirds = gap_score(shares_chosen(np.zeros((4, 3)))[None, :, :2], ITEMS)
    assert (thirds.precision, thirds.recall) == pytest.approx((1 / (8 / 3), 1 / 3))
    between = [item(f"Anna; she; Bert {n}", "she", ("Anna", "Bert"), (n % 2,)) for n in range(2)]
    assert rule_scores(between)["nearest"].f1 == 0.5  # both names are two characters away


def test_a_heads_tie_is_that_of_the_scores_of_heads() -> None:
    scores = np.array([[[0.2, 0.3], [0.2 + 1e-9, 0.1]]])
    top, names, right = strongest_names(scores, np.array([[False, True]]))
    assert names.tolist() == [[[0.5, 1], [0.5, 0]]]
    assert right.tolist() == [[0.5, 0]] and top.tolist() == [[0.2 + 1e-9, 0.3]]


def test_gold_names_are_the_antecedents() -> None:
    assert gold_decisions(ITEMS, 2).tolist() == [[True, False], [False, True], [True, False], [False, False]]


def test_the_interval_is_one_of_95_percent() -> None:
    # A wrong answer is one false alarm and one miss, so that F1 is the share of right ones: a binomial over 400 texts.
    many = [item(f"Anna saw Berta; she ran {n}", "she", ("Anna", "Berta"), (n % 2,)) for n in range(400)]
    low, high = gap_score(decisions_from_answers(np.zeros(400, dtype=np.int64), 2)[None], many).interval
    exact = [float(stats.binom.ppf(share, 400, 0.5)) / 400 for share in (0.025, 0.975)]
    narrower = [float(stats.binom.ppf(share, 400, 0.5)) / 400 for share in (0.05, 0.95)]
    assert (low, high) == pytest.approx(exact, abs=0.004)
    assert narrower[0] - low > 0.004 and high - narrower[1] > 0.004


def test_without_items_of_a_gender_there_is_no_bias() -> None:
    score = gap_score(decisions_from_answers(np.array([0, 0]), 2)[None], ITEMS[2:])
    assert np.isnan([score.feminine, score.bias, *score.bias_interval, score.weighted_bias]).all()
    assert score.masculine > 0
