from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from sklearn import linear_model

from anaphora.analysis.scores.baselines import learned, policies, shortcuts
from anaphora.analysis.scores.baselines.learned import LEARNED
from anaphora.analysis.scores.baselines.policies import POLICIES, focal_correctness
from anaphora.analysis.scores.baselines.shortcuts import accuracy_by_factor, accuracy_by_kind, fit_shortcuts
from anaphora.data.controlled import corpus
from anaphora.data.example import Example, Span
from anaphora.settings.data import ControlledCorpus


@pytest.fixture(scope="module")
def splits() -> dict[str, list[Example]]:
    return corpus.generate(ControlledCorpus(train_items=1000, test_items=200))


def example(
    text: str, pronoun: str, names: list[list[str]], antecedents: tuple[int, ...] = (0,), **factors: str
) -> Example:
    """Return an example with names in text order; each mention is the next occurrence of its words."""
    at: dict[str, int] = defaultdict(int)
    candidates: list[tuple[Span, ...]] = []
    for mentions in names:
        spans = []
        for mention in mentions:
            start = text.index(mention, at[mention])
            at[mention] = start + len(mention)
            spans.append((start, start + len(mention)))
        candidates.append(tuple(spans))
    start = text.index(f" {pronoun} ") + 1
    return Example(
        text=text,
        language="en",
        pronoun=(start, start + len(pronoun)),
        candidates=tuple(candidates),
        antecedents=antecedents,
        factors=factors,
    )


ITEM = example("Al met Bertram, and Al said he left for Clemens .", "he", [["Al", "Al"], ["Bertram"], ["Clemens"]])


@pytest.mark.parametrize(
    ("name", "best"), [("nearest", {0}), ("first", {0}), ("longest", {1, 2}), ("most_mentioned", {0})]
)
def test_a_policy_picks_what_its_name_says(name: str, best: set[int]) -> None:
    scores = POLICIES[name](ITEM)
    assert set(np.flatnonzero(scores == scores.max())) == best


def test_the_subject_policy_follows_the_factor_and_has_no_opinion_without_it() -> None:
    marked = example("Al met Bo and he left .", "he", [["Al"], ["Bo"]], subject="1")
    assert policies.subject(marked).tolist() == [0, 1]
    assert policies.subject(ITEM).tolist() == [0, 0, 0]


def test_a_tie_counts_its_share_and_several_or_no_antecedents_are_counted_so() -> None:
    tie = example("Al met Bo and he left .", "he", [["Al"], ["Bo"]], antecedents=(1,))
    both = example("Al met Bo and he left .", "he", [["Al"], ["Bo"]], antecedents=(0, 1))
    none = example("Al met Bo and he left .", "he", [["Al"], ["Bo"]], antecedents=())
    assert focal_correctness(policies.longest, [tie, both, none]).tolist() == [0.5, 1.0, 0.0]


def test_fillers_are_not_chosen_among_the_focal_candidates() -> None:
    item = example("Al met Bo and Cy , he left .", "he", [["Al"], ["Bo"], ["Cy"]], antecedents=(1,), focal="0,1")
    assert policies.nearest(item).argmax() == 2
    assert focal_correctness(policies.nearest, [item]).tolist() == [1.0]
    assert focal_correctness(policies.random_choice, [item]).tolist() == [0.5]


def test_policies_of_position_and_entity_score_exactly_chance_in_every_block(splits: dict[str, list[Example]]) -> None:
    blocks = defaultdict(list)
    for each in splits["test"]:
        blocks[each.group].append(each)
    frequent = learned.most_frequent(splits["train"])
    for policy in (policies.nearest, policies.first, policies.longest, frequent):
        for block in blocks.values():
            assert focal_correctness(policy, block).mean() == pytest.approx(1 / len(block[0].focal))


def test_no_learned_shortcut_without_interactions_beats_chance_on_the_controlled_corpus(
    splits: dict[str, list[Example]],
) -> None:
    results = fit_shortcuts(splits["train"], splits["test"])
    assert results.keys() == {"chance", *POLICIES, *LEARNED}
    main = np.array([each.factors["stratum"] == "main" for each in splits["test"]])
    for name in ("most_frequent", "odd_one_out", "bag_of_words", "entity_cue", "best_offset"):
        np.testing.assert_allclose(results[name][main].mean(), results["chance"][main].mean(), atol=0.02)


def taught(cue: str, answer: int) -> Example:
    text = f"the cat met the lamp and it was {cue} ."
    return example(text, "it", [["cat"], ["lamp"]], antecedents=(answer,), cue=cue, kind="set")


def test_the_memoriser_and_the_bag_with_interactions_solve_pairs_that_training_shows() -> None:
    items = [taught("hungry", 0), taught("bright", 1)] * 40
    for name in ("entity_cue", "bag_with_interactions"):
        assert focal_correctness(LEARNED[name](items), items).mean() == 1
    for name in ("bag_of_words", "odd_one_out", "most_frequent"):
        assert focal_correctness(LEARNED[name](items), items).mean() == 0.5


def test_the_memoriser_knows_nothing_of_unseen_pairs() -> None:
    scores = learned.entity_cue([taught("hungry", 0)])(taught("thirsty", 0))
    assert scores.tolist() == [0.5, 0.5]


def test_the_best_offset_is_learned_from_training() -> None:
    second = [example("Al met Bo and he left Cy .", "he", [["Al"], ["Bo"], ["Cy"]], antecedents=(1,))] * 3
    last = [example("Al met Bo and he left Cy .", "he", [["Al"], ["Bo"], ["Cy"]], antecedents=(2,))] * 3
    assert focal_correctness(learned.best_offset(second), second).mean() == 1
    assert focal_correctness(learned.best_offset(last), last).mean() == 1
    assert focal_correctness(learned.best_offset(last), second).mean() == 0


def test_positional_policies_together_are_as_right_as_each_alone(splits: dict[str, list[Example]]) -> None:
    def only(number: int) -> policies.Policy:
        return lambda item: policies.positional_scores(item)[number]

    items = [ITEM, *splits["test"]]
    together = np.stack([policies.focal_shares(policies.positional_scores(item), item) for item in items], axis=1)
    assert len(together) == 3 * 6 + 81
    for number, shares in enumerate(together):
        assert np.array_equal(shares, focal_correctness(only(number), items))
    # Rank 0 of Al, Bertram and Clemens: from the first, from the last, and outwards from the pronoun.
    assert policies.positional_scores(ITEM)[:3].tolist() == [[0, -1, -2], [-2, -1, 0], [0, -2, -1]]


def test_many_examples_at_once_get_the_scores_of_each(splits: dict[str, list[Example]]) -> None:
    policy = learned.bag_with_interactions(splits["train"])
    test = splits["test"]
    at_once = list(policies.scores_of_each(policy, test))
    assert isinstance(policy, policies.PolicyOfMany) and len(at_once) == len(test)
    assert all(np.array_equal(scores, policy(item)) for scores, item in zip(at_once, test, strict=True))


def test_texts_at_once_get_the_ranks_of_each() -> None:
    def natural_text(number: int, names: list[str]) -> Example:
        text = f"{' met '.join(names)} {number} times and he {('ran', 'wept')[number % 2]} ."
        return example(text, "he", [[name] for name in names], antecedents=(number % 2,))

    policy = learned.order_classifier([natural_text(number, ["Al", "Bo"]) for number in range(60)], 2)
    test = [natural_text(number, ["Al", "Bo", "Cy"][: 2 + number % 3 // 2]) for number in range(70)]
    at_once = list(policies.scores_of_each(policy, test))
    assert isinstance(policy, policies.PolicyOfMany) and {len(scores) for scores in at_once} == {2, 3}
    assert all(np.array_equal(scores, policy(item)) for scores, item in zip(at_once, test, strict=True))
    assert {float(scores[2]) for scores in at_once if len(scores) == 3} == {0.0}


def test_the_odd_one_out_is_found_where_training_has_the_habit() -> None:
    def odd(common: str, other: str) -> Example:
        text = f"the {common} , the {other} and it moved ."
        return example(text, "it", [[common], [other]], antecedents=(1,))

    items = [odd("cat", "lamp"), odd("dog", "lamp"), odd("cat", "cup"), odd("dog", "cup")] * 20
    assert focal_correctness(learned.odd_one_out(items), items).mean() == 1


def test_found_text_is_measured_with_places_too_and_clustered_by_group() -> None:
    def natural_text(verb: str, answer: int) -> Example:
        return example(f"Al met Bo and he {verb} .", "he", [["Al"], ["Bo"]], antecedents=(answer,))

    items = [natural_text("ran", 0), natural_text("wept", 1)] * 30
    train = [replace(item, group=str(number)) for number, item in enumerate(items)]
    rows = {row.name: row for row in accuracy_by_kind(fit_shortcuts(train, train[:10]), train[:10])}
    assert rows["bag_by_place"].accuracy == 1
    assert rows["words"].accuracy == rows["words_and_pairs"].accuracy == 1
    assert rows["bag_of_words"].accuracy == 0.5
    assert rows["chance"].low == rows["chance"].high == 0.5
    assert (rows["nearest"].language, rows["nearest"].kind, rows["nearest"].items) == ("en", "", 10)


def test_the_order_classifier_may_take_the_steps_that_thousands_of_texts_need(monkeypatch: pytest.MonkeyPatch) -> None:
    built, whole = [], linear_model.LogisticRegressionCV

    def recorded(**options: Any) -> Any:
        built.append(options)
        return whole(**options)

    monkeypatch.setattr(linear_model, "LogisticRegressionCV", recorded)
    items = [
        example(f"Al met Bo and he {verb} {number} .", "he", [["Al"], ["Bo"]], antecedents=(answer,))
        for number in range(20)
        for answer, verb in enumerate(("ran", "wept"))
    ]
    learned.order_classifier(items, 1)
    # With 5,000 short texts, pairs of words need between 100 and 1,000; sklearn's own limit is 100, and it warns.
    assert [options["max_iter"] for options in built] == [1000]


def test_words_tell_places_and_pairs_tell_what_single_words_do_not() -> None:
    def natural_text(number: int, first: str, second: str) -> Example:
        text = f"Al met Bo {number} times and he {first} {second} ."
        return example(text, "he", [["Al"], ["Bo"]], antecedents=(int((first, second) in second_after),))

    words = ("ran", "wept", "sat", "ate")
    second_after = {("ran", "wept"), ("wept", "sat"), ("sat", "ate"), ("ate", "ran")}
    items = [natural_text(10 * n + k, *pair) for n in range(20) for k, pair in enumerate(permutations(words, 2))]
    measured = [natural_text(1000 + k, *pair) for k, pair in enumerate(permutations(words, 2))]
    assert focal_correctness(learned.order_classifier(items, 2), measured).mean() == 1
    # Every word stands as often with either answer; 4 of 12 orders have the second.
    assert focal_correctness(learned.order_classifier(items, 1), measured).mean() == pytest.approx(8 / 12)
    always = [item for item in items if item.antecedents == (1,)]
    assert focal_correctness(learned.order_classifier(always, 1), measured).mean() == pytest.approx(4 / 12)
    three = example("Al met Bo and Cy 3 times and he ran wept .", "he", [["Al"], ["Bo"], ["Cy"]], antecedents=(1,))
    assert learned.order_classifier(items, 2)(three).tolist()[2] == 0
    # A place that one item has teaches nothing, and does not keep the penalty from being chosen.
    with_one = learned.order_classifier([*items, replace(three, antecedents=(2,))], 2)
    assert with_one(three).tolist()[2] == 0
    assert focal_correctness(with_one, measured).mean() == 1


def test_places_are_learned_where_candidates_are_few() -> None:
    def natural_text(number: int, count: int) -> Example:
        names = [f"n{place}" for place in range(count)]
        text = f"{' met '.join(names)} and he {('ran', 'wept')[number % 2]} ."
        return example(text, "he", [[name] for name in names], antecedents=(number % 2,))

    assert "words_and_pairs" in fit_shortcuts([natural_text(n, 10) for n in range(40)], [natural_text(0, 10)])
    assert "words_and_pairs" not in fit_shortcuts([natural_text(n, 11) for n in range(40)], [natural_text(0, 11)])


def test_results_are_reported_by_factor_where_a_few_values_distinguish_items_of_found_text() -> None:
    items = [
        example(
            "Al met Bo and he left .", "he", [["Al"], ["Bo"]], antecedents=(number % 2,), corpus="x", number=str(number)
        )
        for number in range(30)
    ]
    items_with_side = [
        replace(item, factors={**item.factors, "side": "ab"[number % 2]}) for number, item in enumerate(items)
    ]
    rows = accuracy_by_factor(shortcuts.unfitted_correctness(items_with_side), items_with_side)
    assert [(row["factor"], row["value"], row["items"], row["first"], row["nearest"]) for row in rows] == [
        ("side", "a", 15, 1.0, 0.0),
        ("side", "b", 15, 0.0, 1.0),
    ]
    with_kind = [replace(item, factors={**item.factors, "kind": "set"}) for item in items_with_side]
    assert accuracy_by_factor(shortcuts.unfitted_correctness(with_kind), with_kind) == []


def test_a_learned_shortcut_without_training_items_does_not_apply() -> None:
    items = [example("Al met Bo and he left .", "he", [["Al"], ["Bo"]], antecedents=(0,))]
    results = fit_shortcuts([], items)
    assert all(np.isnan(results[name]).all() for name in LEARNED)
    assert {row.name for row in accuracy_by_kind(results, items)} == {"chance", *POLICIES}


def test_shortcuts_are_reported_by_language_and_kind(splits: dict[str, list[Example]]) -> None:
    rows = accuracy_by_kind(fit_shortcuts(splits["train"][:800], splits["test"]), splits["test"])
    cells = {(row.language, row.kind) for row in rows}
    assert cells == {("en", "set"), ("en", "role"), ("zh", "set"), ("zh", "role")}
    assert len(rows) == 4 * (1 + len(POLICIES) + len(LEARNED))
    for row in rows:
        assert row.low is not None and row.high is not None
        assert row.low - 1e-9 <= row.accuracy <= row.high + 1e-9
