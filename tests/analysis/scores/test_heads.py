from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.maps.words import mention_mass, word_weights
from anaphora.analysis.results.scores import Head, existing_head
from anaphora.analysis.scores import heads
from anaphora.analysis.scores.heads import (
    CANDIDATE_IN_PRONOUN,
    CANDIDATE_WITHOUT_TOKEN,
    MEASURES,
    NO_ANTECEDENT,
    NO_DISTRACTOR,
    TOO_FEW_CANDIDATES,
    choose_head,
    head_accuracy,
    mean_chance,
    ranked_heads,
    score_records,
    strongest_candidates,
)
from anaphora.analysis.scores.quads import minimal_pair_accuracy, quads_of, set_products
from anaphora.base.errors import UserError
from anaphora.data.example import Example


def record(
    weights: Sequence[Any],
    candidates: tuple[int, ...] = (0, 1),
    antecedents: tuple[int, ...] = (0,),
    pronoun: int = -1,
    specials: int = 0,
    **rest: Any,
) -> AttentionRecord:
    """Return a record of two-letter words, one token each, after special tokens; arguments are word indices."""
    array = np.array(weights, dtype=np.float32)
    array = array.reshape((1,) * (3 - array.ndim) + array.shape)
    count = array.shape[2] - specials
    text = " ".join(["ab"] * count)
    spans = [(3 * word, 3 * word + 2) for word in range(count)]
    example = Example(
        text=text,
        language=rest.pop("language", "en"),
        pronoun=spans[pronoun],
        candidates=tuple((spans[word],) for word in candidates),
        antecedents=tuple(antecedents),
        **rest,
    )
    return AttentionRecord(example, ((0, 0),) * specials + tuple(spans), (-1,) * specials + tuple(range(count)), array)


def only(measure: str, *records: AttentionRecord) -> list[float]:
    values: list[float] = getattr(score_records(records), measure)[:, 0, 0].tolist()
    return values


def cell(order: int, gold: int, chosen: int, **rest: Any) -> AttentionRecord:
    """Return one cell of a quad, whose head picks the candidate `chosen`."""
    row = [0.8, 0.1, 0.1] if chosen == 0 else [0.1, 0.8, 0.1]
    factors = {"order": str(order), "cue": f"cue {gold ^ order}"} | rest.pop("factors", {})
    return record(row, antecedents=(gold,), factors=factors, **rest)


Policy = Callable[[int, int], int]


def quad(policy: Policy, name: str = "q") -> list[AttentionRecord]:
    """Return the four cells of a quad of two cues and two orders, answered by `policy(order, gold)`."""
    return [
        cell(order, gold, policy(order, gold), group=name, minimal_pair=f"{name}{order}")
        for order in (0, 1)
        for gold in (0, 1)
    ]


def test_the_heaviest_candidate_decides_even_where_other_words_are_heavier() -> None:
    assert only("candidate_accuracy", record([0.2, 0.1, 0.5, 0.2]), record([0.1, 0.2, 0.5, 0.2])) == [1, 0]


def test_a_tie_among_k_counts_one_kth() -> None:
    three: dict[str, Any] = {"candidates": (0, 1, 2)}
    assert only("candidate_accuracy", record([0.25] * 4, **three)) == pytest.approx([1 / 3])
    assert only("candidate_accuracy", record([0.3, 0.3, 0.1, 0.3], **three)) == [0.5]
    assert only("candidate_accuracy", record([0.0] * 4, **three)) == pytest.approx([1 / 3])
    assert only("candidate_accuracy", record([0.25] * 4, antecedents=(0, 2), **three)) == pytest.approx([2 / 3])


def test_rounding_does_not_break_a_tie() -> None:
    above = float(np.nextafter(np.float32(0.3), np.float32(1)))
    assert only("candidate_accuracy", record([0.3, above, 0.4])) == [0.5]


def test_any_of_several_antecedents_is_right() -> None:
    several: dict[str, Any] = {"candidates": (0, 1, 2), "antecedents": (0, 2)}
    rows = ([0.5, 0.2, 0.1, 0.2], [0.1, 0.2, 0.5, 0.2], [0.2, 0.5, 0.1, 0.2])
    assert only("candidate_accuracy", *(record(row, **several) for row in rows)) == [1, 1, 0]


def test_fillers_count_for_all_candidates_and_not_for_focal_ones() -> None:
    item = record([0.3, 0.2, 0.4, 0.1], candidates=(0, 1, 2), factors={"focal": "0,1"})
    assert only("candidate_accuracy", item) == [0]
    assert only("focal_accuracy", item) == [1]


def test_a_focal_set_without_the_antecedent_is_refused() -> None:
    with pytest.raises(UserError, match=r"factors\.focal: '1,2' holds no antecedent; its antecedents: 0"):
        score_records([record([0.25] * 4, candidates=(0, 1, 2), factors={"focal": "1,2"})])


def test_open_accuracy_ignores_the_pronoun_itself_and_special_tokens() -> None:
    assert only("open_accuracy", record([0.4, 0.2, 0.1, 0.0, 0.3], specials=1)) == [1]
    assert only("open_accuracy", record([0.1, 0.2, 0.1, 0.3, 0.3], specials=1)) == [0]


def test_open_accuracy_compares_words_and_not_tokens() -> None:
    text, spans = "kitten cat it", ((0, 3), (3, 6), (7, 10), (11, 13))
    example = Example(text=text, language="en", pronoun=(11, 13), candidates=(((0, 6),), ((7, 10),)), antecedents=(0,))
    item = AttentionRecord(example, spans, (0, 0, 1, 2), np.array([[[0.2, 0.2, 0.3, 0.3]]], dtype=np.float32))
    assert only("open_accuracy", item) == [1]


def test_lift_is_one_for_uniform_attention_and_grows_with_the_mass() -> None:
    assert only("lift", record([0.2] * 5), record([0.6, 0.1, 0.1, 0.1, 0.1])) == pytest.approx([1, 3])


def test_share_weighs_the_antecedent_against_the_distractors_alone() -> None:
    assert only("share", record([0.3, 0.1, 0.6])) == pytest.approx([0.75])
    assert only("share", record([0.0, 0.0, 1.0])) == [0.5]


def test_reciprocal_rank_is_the_mean_over_the_orders_of_a_tie() -> None:
    four: dict[str, Any] = {"candidates": (0, 1, 2, 3)}
    rows = ([0.1, 0.2, 0.3, 0.0, 0.4], [0.2, 0.2, 0.5, 0.1, 0.0], [0.2] * 5)
    expected = [1 / 3, (1 / 2 + 1 / 3) / 2, (1 + 1 / 2 + 1 / 3 + 1 / 4) / 4]
    assert only("reciprocal_rank", *(record(row, **four) for row in rows)) == pytest.approx(expected)


def test_items_that_cannot_be_scored_are_left_out_and_counted() -> None:
    row = [0.5, 0.2, 0.3]
    cut = record(row)
    cut = AttentionRecord(cut.example, cut.spans[1:], cut.words[1:], np.array([[[0.5, 0.5]]], dtype=np.float32))
    scored = score_records(
        [record(row, antecedents=()), record(row), record(row, candidates=(0,)), record(row, antecedents=(0, 1)), cut]
    )
    assert scored.kept.tolist() == [1]
    assert scored.dropped == {NO_ANTECEDENT: 1, TOO_FEW_CANDIDATES: 1, NO_DISTRACTOR: 1, CANDIDATE_WITHOUT_TOKEN: 1}


def test_an_item_with_a_candidate_in_a_token_of_the_pronoun_is_left_out_and_counted() -> None:
    text, spans = "他对李四说王五", ((0, 1), (1, 2), (2, 4), (4, 5), (5, 7))
    example = Example(text=text, language="zh", pronoun=(0, 1), candidates=(((2, 4),), ((5, 7),)), antecedents=(0,))
    apart = np.array([[[0.1, 0.2, 0.3, 0.2, 0.2]]], dtype=np.float32)
    merged = np.array([[[0.6, 0.2, 0.2]]], dtype=np.float32)  # the first token has the pronoun and a candidate
    scored = score_records(
        [
            AttentionRecord(example, spans, (0, 1, 2, 3, 4), apart),
            AttentionRecord(example, ((0, 4), (4, 5), (5, 7)), (0, 1, 2), merged),
        ]
    )
    assert scored.kept.tolist() == [0] and scored.dropped == {CANDIDATE_IN_PRONOUN: 1}
    np.testing.assert_allclose(scored.antecedent_mass, [[[0.3]]])


def test_nothing_to_score_and_records_of_two_models_are_refused() -> None:
    with pytest.raises(UserError, match="records: there are none"):
        score_records([])
    with pytest.raises(UserError, match=r"one record has \(1, 2\) layers and heads; expected \(1, 1\)"):
        score_records([record([0.5, 0.2, 0.3]), record([[[0.5, 0.2, 0.3]] * 2])])


def test_scores_where_every_item_was_dropped_are_empty_and_choose_no_head() -> None:
    empty = score_records([record([0.5, 0.2, 0.3], antecedents=())])
    assert empty.candidate_accuracy.shape == (0, 1, 1)
    assert empty.kept.shape == (0,) and empty.kept.dtype.kind == "i"  # they can be indices still
    with pytest.raises(UserError, match=r"no item to choose a head on; .* items left out: no antecedent \(1\)$"):
        choose_head(empty)


def by_hand(record: AttentionRecord) -> list[dict[str, float]]:
    """Compute all measures of one record without array operations."""
    example, scores = record.example, []
    row, masses = word_weights(record), mention_mass(record)
    for layer, head in np.ndindex(record.weights.shape[:2]):
        mass = masses[layer, head].tolist()
        gold = set(example.antecedents)

        def accuracy(among: Iterable[int], mass: list[float] = mass, gold: set[int] = gold) -> float:
            tied = {index for index in among if mass[index] == max(mass[other] for other in among)}
            return len(gold & tied) / len(tied)

        of_gold = {span for index in gold for span in example.candidates[index]}  # here mentions are whole words
        words = [
            (weight, span in of_gold)
            for weight, span in zip(row.weights[layer, head].tolist(), row.spans, strict=True)
            if span not in ((0, 0), example.pronoun)
        ]
        hits = [hit for weight, hit in words if weight == max(other for other, _ in words)]
        on_gold = sum(mass[index] for index in gold)
        tokens = sum(
            start <= left and right <= end for left, right in record.spans if left < right for start, end in of_gold
        )
        best = max(mass[index] for index in gold)
        others = [mass[index] for index in range(len(mass)) if index not in gold]
        scores.append(
            {
                "candidate_accuracy": accuracy(range(len(mass))),
                "focal_accuracy": accuracy(example.focal),
                "open_accuracy": sum(hits) / len(hits),
                "antecedent_mass": on_gold,
                "lift": on_gold / (tokens / len(record.spans)),
                "share": on_gold / sum(mass),
                "reciprocal_rank": 1 / (1 + sum(other > best for other in others)),
            }
        )
    return scores


def random_record(random: np.random.Generator) -> AttentionRecord:
    """Return a random record with words of one to three tokens, several mentions and one or more antecedents."""
    pieces = random.integers(1, 4, size=random.integers(6, 12))
    spans, words, mentions, place = [(0, 0)], [-1], [], 0
    for word, count in enumerate(pieces):
        mentions.append((place, place + 2 * int(count)))
        spans += [(place + 2 * piece, place + 2 * piece + 2) for piece in range(count)]
        words += [word] * int(count)
        place += 2 * int(count) + 1
    spans.append((0, 0))
    words.append(-1)
    chosen = random.permutation(len(pieces))
    size = int(random.integers(2, 5))
    groups = [[mentions[word]] for word in chosen[1 : size + 1]]
    if size + 1 < len(chosen):
        groups[0].append(mentions[chosen[size + 1]])
    candidates = tuple(sorted(tuple(sorted(group)) for group in groups))
    antecedents = tuple(sorted(random.permutation(size)[: random.integers(1, size)].tolist()))
    focal = sorted({antecedents[0], *random.permutation(size)[:2].tolist()})
    example = Example(
        text=" ".join("a" * 2 * int(count) for count in pieces),
        language="en",
        pronoun=mentions[chosen[0]],
        candidates=candidates,
        antecedents=antecedents,
        factors={"focal": ",".join(map(str, focal))},
    )
    weights = random.dirichlet(np.ones(len(spans)), size=(2, 3)).astype(np.float32)
    return AttentionRecord(example, tuple(spans), tuple(words), weights)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_many_records_at_once_score_as_each_does_by_hand(seed: int) -> None:
    random = np.random.default_rng(seed)
    records = [random_record(random) for _ in range(8)]
    scored = score_records(records)
    for item, single in enumerate(records):
        expected = by_hand(single)
        for name in MEASURES:
            given_values = getattr(scored, name)[item].reshape(-1)
            np.testing.assert_allclose(given_values, [each[name] for each in expected], rtol=1e-4, err_msg=name)


def test_the_size_of_a_batch_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    records = [random_record(random) for _ in range(20)]
    together = score_records(records)
    monkeypatch.setattr(heads, "_BATCH_WEIGHTS", 100)
    apart = score_records(iter(records))
    for name in (*MEASURES, "candidate_mass", "present", "gold", "kept"):
        np.testing.assert_array_equal(getattr(together, name), getattr(apart, name))
    assert {together.candidate_mass.dtype, together.candidate_accuracy.dtype} == {np.dtype(np.float32)}


def test_a_batch_ends_with_the_record_that_fills_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "_BATCH_WEIGHTS", 6)
    batches = heads._batches([record([0.5, 0.2, 0.3])] * 5)
    assert [(first, len(batch)) for first, batch in batches] == [(0, 2), (2, 2), (4, 1)]


def test_picks_sum_to_one_and_give_the_accuracy() -> None:
    random = np.random.default_rng(1)
    scored = score_records([random_record(random) for _ in range(20)])
    pointed = strongest_candidates(scored)
    np.testing.assert_allclose(pointed.sum(axis=-1), 1, rtol=1e-6)
    np.testing.assert_allclose((pointed * scored.gold[:, None, None]).sum(axis=-1), scored.candidate_accuracy)


def test_selected_items_keep_their_scores() -> None:
    random = np.random.default_rng(2)
    scored = score_records([random_record(random) for _ in range(5)])
    some = scored.select(np.array([True, False, False, True, False]))
    assert some.examples == (scored.examples[0], scored.examples[3])
    np.testing.assert_array_equal(some.lift, scored.lift[[0, 3]])
    np.testing.assert_array_equal(some.kept, [0, 3])


RIGHT, WRONG, TIED = [0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.3, 0.3, 0.4]


def two_heads(first: list[float], second: list[float], **factors: str) -> AttentionRecord:
    return record([[first, second]], factors=factors)


def test_no_large_type_dominates_the_choice_of_a_head() -> None:
    items = [two_heads(RIGHT, WRONG, kind="set", type="gender") for _ in range(9)]
    items += [two_heads(WRONG, RIGHT, kind="role", type="voice"), two_heads(WRONG, RIGHT, kind="role", type="winograd")]
    assert choose_head(score_records(items)) == Head(0, 1)
    assert score_records(items).candidate_accuracy.mean(axis=0).tolist() == [
        [pytest.approx(9 / 11), pytest.approx(2 / 11)]
    ]


def test_equal_heads_are_distinguished_by_mass_and_then_by_place() -> None:
    more = [0.9, 0.05, 0.05]
    assert choose_head(score_records([two_heads(RIGHT, more)])) == Head(0, 1)
    assert choose_head(score_records([two_heads(RIGHT, RIGHT)])) == Head(0, 0)


def test_accuracy_comes_before_mass() -> None:
    low, high, none = [0.3, 0.2, 0.5], [0.9, 0.0, 0.1], [0.4, 0.5, 0.1]
    scores = score_records([two_heads(low, high), two_heads(low, none)])
    assert scores.antecedent_mass.mean(axis=0).tolist() == [[pytest.approx(0.3), pytest.approx(0.65)]]
    assert ranked_heads(scores) == [Head(0, 0), Head(0, 1)]


def test_layers_without_attention_are_never_chosen() -> None:
    zeros = [0.0, 0.0, 0.0]
    scores = score_records([record([[zeros, zeros], [WRONG, RIGHT]])])
    assert scores.attending_layers == (1,)
    assert ranked_heads(scores) == [Head(1, 1), Head(1, 0)]


def test_heads_that_differ_by_rounding_alone_are_ranked_by_mass() -> None:
    scores = score_records([record([[RIGHT, [0.9, 0.05, 0.05], WRONG]]) for _ in range(2)])
    accuracy = np.zeros((2, 1, 3), dtype=np.float32)
    accuracy[..., :2] = 1 / 1024  # 0.0009765625, in the middle between two numbers of nine digits
    accuracy[1, 0, 0] += 2**-33
    ranked = ranked_heads(replace(scores, candidate_accuracy=accuracy))
    assert ranked == [Head(0, 1), Head(0, 0), Head(0, 2)]


def test_only_main_items_choose_the_head() -> None:
    items = [two_heads(RIGHT, WRONG), *(two_heads(WRONG, RIGHT, stratum="cataphora") for _ in range(5))]
    assert choose_head(score_records(items)) == Head(0, 0)


def quad_accuracy(correct: NDArray[np.floating], examples: Sequence[Example]) -> NDArray[np.float64]:
    """Return the share of quads that are right as a whole; NaN without quads."""
    whole, _ = set_products(correct, quads_of(examples))
    return np.asarray(whole.mean(axis=0) if len(whole) else np.full(whole.shape[1:], np.nan))


@pytest.mark.parametrize(
    "policy",
    [lambda order, gold: 0, lambda order, gold: 1, lambda order, gold: order, lambda order, gold: 1 - order],
    ids=["first", "last", "entity", "other entity"],
)
def test_a_policy_of_position_or_entity_is_right_half_the_time_and_never_for_minimal_pairs_or_quads(
    policy: Policy,
) -> None:
    scored = score_records([*quad(policy, "p"), *quad(policy, "q")])
    correct = scored.candidate_accuracy[:, 0, 0]
    assert correct.mean() == 0.5
    assert minimal_pair_accuracy(correct, scored.examples) == 0
    assert quad_accuracy(correct, scored.examples) == 0


def test_a_quad_counts_only_where_all_four_cells_are_right() -> None:
    one_wrong = quad(lambda order, gold: 0 if (order, gold) == (1, 1) else gold, "p")
    scored = score_records([*one_wrong, *quad(lambda order, gold: gold, "q")])
    correct = scored.candidate_accuracy
    assert quad_accuracy(correct, scored.examples).tolist() == [[0.5]]
    assert minimal_pair_accuracy(correct, scored.examples).tolist() == [[0.75]]


def test_a_tie_in_a_quad_counts_as_a_fair_coin_would() -> None:
    cells = quad(lambda order, gold: gold)
    tied = record(TIED, group="q", minimal_pair="q1", antecedents=(1,), factors={"order": "1"})
    scored = score_records([*cells[:3], tied])
    assert quad_accuracy(scored.candidate_accuracy[:, 0, 0], scored.examples) == 0.5


@pytest.mark.parametrize(
    ("rows", "is_quad"),
    [
        ("Anna Emma 0, Anna Emma 1, Emma Anna 0, Emma Anna 1", True),
        ("Anna Emma 0, Anna Emma 1, Anna Emma 0, Anna Emma 1", False),  # one order
        ("Anna Emma 0, Anna Emma 0, Emma Anna 1, Emma Anna 1", False),  # one answer for each order
        ("Anna Emma 0, Anna Emma 1, Emma Ruth 0, Emma Ruth 1", False),  # other candidates
        ("Anna Emma 0, Anna Emma 1, Emma Anna 0", False),
    ],
)
def test_four_items_of_your_own_are_a_quad_by_their_words(rows: str, is_quad: bool) -> None:
    examples = []
    for row in rows.split(", "):
        first, second, antecedent = row.split()
        spans = (((0, 4),), ((9, 13),))
        text = f"{first} met {second} and she sang."
        examples.append(
            Example(
                text=text, language="en", pronoun=(18, 21), candidates=spans, antecedents=(int(antecedent),), group="g"
            )
        )
    assert set(quads_of(examples)) == ({"g"} if is_quad else {""})


@pytest.mark.parametrize(
    ("orders", "antecedents", "is_quad"),
    [
        ("aabb", "0101", True),
        ("abab", "0011", True),
        ("aabb", "0000", False),  # whoever always picks the first is right in all of it
        ("aaab", "0101", False),
        ("abcd", "0101", False),
        ("aa--", "0101", False),  # two rows name no order
    ],
)
def test_a_quad_with_named_orders_has_two_of_each_and_two_answers(orders: str, antecedents: str, is_quad: bool) -> None:
    examples = [
        record(RIGHT, group="g", antecedents=(int(meant),), factors={} if order == "-" else {"order": order}).example
        for order, meant in zip(orders, antecedents, strict=True)
    ]
    assert set(quads_of(examples)) == ({"g"} if is_quad else {""})


def test_blocks_of_two_pronouns_are_quads_of_eight_items() -> None:
    cells = [
        cell(order, gold, gold, group="q", minimal_pair=f"{order}{pronoun}", factors={"pronouns": "2"})
        for order in (0, 1)
        for pronoun in (1, 2)
        for gold in (0, 1)
    ]
    scored = score_records(cells)
    correct = scored.candidate_accuracy[:, 0, 0].copy()
    assert quad_accuracy(correct, scored.examples) == 1
    correct[7] = 0
    assert quad_accuracy(correct, scored.examples) == 0
    assert np.isnan(quad_accuracy(correct[:7], scored.examples[:7]))  # an incomplete block is no quad


def test_larger_blocks_and_lone_items_are_no_quads() -> None:
    row, three = [0.4, 0.3, 0.2, 0.1], (0, 1, 2)
    items = [
        record(row, three, (gold,), group="b", minimal_pair=f"t{order}", factors={"order": str(order)})
        for order in three
        for gold in three
    ]
    scored = score_records([*items, record(RIGHT), record(RIGHT)])
    correct = np.ones(len(scored.examples))
    assert np.isnan(quad_accuracy(correct, scored.examples))
    assert np.isnan(minimal_pair_accuracy(correct[-2:], scored.examples[-2:]))


def test_every_type_of_cue_counts_the_same_in_the_grid_of_heads() -> None:
    def item(kind: str, right: bool, **factors: str) -> AttentionRecord:
        return record(RIGHT if right else WRONG, factors={"kind": kind, "type": "x", **factors})

    scored = score_records([*[item("set", True)] * 9, item("role", False), item("role", True, stratum="novel")])
    assert head_accuracy(scored).tolist() == [[pytest.approx(0.5)]]
    assert mean_chance(scored) == pytest.approx(0.5)


def test_four_items_of_one_order_are_no_quad() -> None:
    cells = [cell(0, gold, gold, group="q", minimal_pair=f"q{pair}") for pair in (0, 1) for gold in (0, 1)]
    both = [cell(order, gold, gold, group="p", minimal_pair=f"p{order}") for order in (0, 1) for gold in (0, 1)]
    assert quads_of(score_records([*cells, *both]).examples) == [*[""] * 4, *["p"] * 4]


@pytest.mark.parametrize(
    ("head", "there"), [((0, 0), True), ((1, 2), True), ((2, 0), False), ((0, 3), False), ((-1, 0), False)]
)
def test_heads_count_from_0_and_from_there_alone(head: tuple[int, int], there: bool) -> None:
    if there:
        assert existing_head(Head(*head), layers=range(2), heads=3) == Head(*head)
    else:
        with pytest.raises(UserError, match=r"(layer|head) \(-?\d\) must be from 0 to [12]"):
            existing_head(Head(*head), layers=range(2), heads=3)
