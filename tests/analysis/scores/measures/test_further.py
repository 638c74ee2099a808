from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.results.scores import Head
from anaphora.analysis.results.typed_json import to_json
from anaphora.analysis.scores.heads import score_records
from anaphora.analysis.scores.measures.further import further_measures, maximum_attention_scores
from anaphora.data.example import Example

HEAD = Head(0, 0)


def item(rows: list[list[float]], gold: int = 0, wide: int = 1, **known: str) -> AttentionRecord:
    """Return an item of candidates (the first with `wide` tokens) and a pronoun, with the heads' weights `rows`."""
    count = len(rows[0])
    spans = tuple((3 * word, 3 * word + 2) for word in range(count))
    candidates = ((spans[0][0], spans[wide - 1][1]), *spans[wide:-1])
    example = Example(
        text=" ".join(["ab"] * count),
        language="en",
        pronoun=spans[-1],
        candidates=tuple((span,) for span in candidates),
        antecedents=(gold,),
        factors=known,
    )
    return AttentionRecord(example, spans, tuple(range(count)), np.array([rows], dtype=np.float32))


def cell(records: list[AttentionRecord], answers: list[int] | None, **rest: Any) -> dict[str, Any]:
    named = None if answers is None else np.array(answers)
    of_groups = further_measures(score_records(records), records, HEAD, named, **rest)
    measures: dict[str, Any] = to_json(of_groups["en"]["all"])
    return measures


def test_reciprocal_rank_and_mass_per_token_are_means_over_the_items() -> None:
    records = [item([[0.1, 0.2, 0.3, 0.4]]), item([[0.3, 0.3, 0.1, 0.3]], wide=2)]
    measures = cell(records, [0, 0])
    assert measures["mrr"] == pytest.approx((1 / 3 + 1) / 2, abs=1e-6)
    assert measures["mass_per_token"] == pytest.approx((0.1 + 0.3) / 2, abs=1e-6)


def test_a_candidate_keeps_its_weight_only_where_it_has_the_most() -> None:
    # Head by head 0.5 against 0.1, then 0.2 against 0.3: the sums would be 0.7 and 0.4.
    scores = score_records([item([[0.5, 0.1, 0.4], [0.2, 0.3, 0.5]])])
    np.testing.assert_allclose(maximum_attention_scores(scores), [[0.5 / 0.8, 0.3 / 0.8]], rtol=1e-6)


def test_mas_reads_all_heads_not_the_chosen_one() -> None:
    rows = [[0.2, 0.3, 0.5], [0.9, 0.05, 0.05]]
    assert cell([item(rows)], [0])["mas"] == 1
    assert cell([item(rows, gold=1)], [0])["mas"] == 0
    assert cell([item([[0.3, 0.3, 0.4], [0.1, 0.1, 0.8]])], [0])["mas"] == 0.5
    silenced = [item([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])]
    assert cell(silenced, [0])["mas"] == 0.5


def pointing(places: list[int], **known: Any) -> list[AttentionRecord]:
    return [
        item([[0.7 if place == number else 0.1 for place in range(4)]], template=f"t{index % 5}", **known)
        for index, number in enumerate(places)
    ]


def test_agreement_is_cohens_kappa_within_its_interval() -> None:
    random = np.random.default_rng(0)
    head = random.integers(0, 3, 60)
    model = np.where(random.random(60) < 0.7, head, random.integers(0, 3, 60))
    agreement = cell(pointing(head.tolist()), model.tolist())["agreement"]
    assert agreement["kappa"] == pytest.approx(cohen_kappa_score(head, model), abs=1e-6)
    low, high = agreement["interval"]
    assert low < agreement["kappa"] < high
    assert 0.05 < high - low < 0.6


def test_the_interval_of_kappa_covers_what_drawing_templates_gives() -> None:
    random = np.random.default_rng(1)
    labels = np.repeat(np.arange(40), 10)
    head = random.integers(0, 2, 400)
    noise = random.random(400) < np.repeat(random.random(40) * 0.5, 10)
    model = np.where(noise, 1 - head, head)
    records = [
        item([[0.7, 0.1, 0.2] if place == 0 else [0.1, 0.7, 0.2]], template=str(label))
        for place, label in zip(head, labels, strict=True)
    ]
    low, high = cell(records, model.tolist())["agreement"]["interval"]
    kappas = []
    for _ in range(300):
        items = np.concatenate([np.flatnonzero(labels == one) for one in random.integers(0, 40, 40)])
        kappas.append(cohen_kappa_score(head[items], model[items]))
    assert [low, high] == pytest.approx(np.quantile(kappas, [0.025, 0.975]), abs=0.03)


def test_a_head_that_always_follows_the_model_agrees_wholly_and_ties_agree_with_nothing() -> None:
    places = [0, 1, 2, 0, 1, 2]
    assert cell(pointing(places), places)["agreement"]["kappa"] == 1.0
    tied = [item([[0.3, 0.3, 0.2, 0.2]], template=f"t{number}") for number in range(6)]
    # A head that always picks the same has kappa 0 whatever the answers are, which is no sign of a precise 0.
    assert cell(tied, places)["agreement"] == {"kappa": 0, "interval": None}


def test_agreement_without_answers_or_without_variety_is_not_reported() -> None:
    nothing = {"kappa": None, "interval": None}
    assert cell(pointing([0, 1]), None)["agreement"] == nothing
    assert cell(pointing([0, 0]), [0, 0])["agreement"] == nothing


def test_the_other_direction_is_scored_at_the_same_head() -> None:
    records = [item([[0.7, 0.1, 0.2], [0.1, 0.7, 0.2]]) for _ in range(2)]
    reverse = np.zeros((2, 1, 2, 2))
    reverse[0, 0, 0] = [0.1, 0.9]
    reverse[1, 0, 0] = [0.9, 0.1]
    reverse[:, 0, 1] = [0.9, 0.1]
    assert cell(records, [0, 0], reverse=reverse)["reverse_candidate_accuracy"] == 0.5
    assert cell(records, [0, 0])["reverse_candidate_accuracy"] is None


def test_kinds_are_cells_and_only_main_items_count() -> None:
    records = [*pointing([0, 1], kind="set"), *pointing([1], kind="role"), *pointing([1] * 9, stratum="cataphora")]
    measures = to_json(further_measures(score_records(records), records, HEAD, np.zeros(12, dtype=np.int64)))["en"]
    missed = (1 / 2 + 1 / 3) / 2  # behind one distractor, tied with the other
    assert {kind: cell["mrr"] for kind, cell in measures.items()} == pytest.approx(
        {"set": (1 + missed) / 2, "role": missed, "all": (1 + 2 * missed) / 3}, abs=1e-6
    )


def test_wrong_shapes_are_reported() -> None:
    records = pointing([0, 1])
    with pytest.raises(ValueError, match=r"answers: the shape is \(1,\); expected \(2,\)"):
        cell(records, [0])
    with pytest.raises(ValueError, match=r"reverse: the shape is \(2, 1, 1, 2\); expected \(2, 1, 1, 3\)"):
        cell(records, [0, 1], reverse=np.zeros((2, 1, 1, 2)))
