from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import special

from anaphora.analysis.evidence.comparison import divergences, row_divergence
from anaphora.analysis.evidence.headline import Measurement
from anaphora.analysis.maps.answers import Answers
from anaphora.analysis.maps.capture import Capture
from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.results.scores import Head
from anaphora.analysis.scores.heads import score_records
from anaphora.base.errors import UserError
from anaphora.data.example import Example

SPANS = ((0, 2), (2, 4), (5, 7), (8, 10))


def record(*rows: list[float], text: str = "abab cd ef", words: tuple[int, ...] = (0, 0, 1, 2)) -> AttentionRecord:
    """Return a record of four tokens, two of which form one word, with one head for each row."""
    example = Example(text=text, language="en", pronoun=(8, 10), candidates=(((0, 4),), ((5, 7),)), antecedents=(0,))
    return AttentionRecord(example, SPANS, words, np.array([rows], dtype=np.float32))


def test_rows_that_are_the_same_over_words_do_not_diverge_and_disjoint_ones_do_wholly() -> None:
    one = [record([0.5, 0.0, 0.5, 0.0]), record([1.0, 0.0, 0.0, 0.0])]
    other = [record([0.2, 0.3, 0.5, 0.0]), record([0.0, 0.0, 0.4, 0.6])]
    np.testing.assert_allclose(row_divergence([one, other], [Head(0, 0)] * 2), [[0, 1]], atol=1e-6)


def test_the_divergence_is_that_of_its_definition_at_each_runs_own_head() -> None:
    rows = np.array([[0.6, 0.3, 0.1], [0.1, 0.2, 0.7], [0.3, 0.3, 0.4]])
    nothing = [0.0, 0.0, 0.0, 1.0]
    runs = [
        [record([row[0], 0.0, *row[1:]], nothing)] if number != 1 else [record(nothing, [row[0], 0.0, *row[1:]])]
        for number, row in enumerate(rows)
    ]
    divergence = row_divergence(runs, [Head(0, 0), Head(0, 1), Head(0, 0)])
    by_hand = []
    for first, second in ((0, 1), (0, 2), (1, 2)):
        middle = (rows[first] + rows[second]) / 2
        by_hand.append(sum(special.rel_entr(rows[each], middle).sum() for each in (first, second)) / 2 / np.log(2))
    np.testing.assert_allclose(divergence[:, 0], by_hand, rtol=1e-5)


def test_rows_that_differ_by_rounding_have_a_divergence_of_0_and_only_an_ablated_head_has_none() -> None:
    random = np.random.default_rng(0)
    rows = random.dirichlet([0.3] * 4, 100).astype(np.float32)
    near = rows * (1 + random.normal(0, 1e-7, rows.shape)).astype(np.float32)
    runs = [[record(row.tolist()) for row in each] for each in (rows, near)]
    divergence = row_divergence(runs, [Head(0, 0)] * 2)
    assert (divergence >= 0).all() and divergence.max() < 1e-12
    ablated = [record([0.0] * 4)]
    assert np.isnan(row_divergence([runs[0][:1], ablated], [Head(0, 0)] * 2)).all()


def test_runs_that_cannot_be_compared_are_reported() -> None:
    run = [record([0.25] * 4)]
    head = Head(0, 0)
    with pytest.raises(UserError, match="expected two or more, a head for each"):
        row_divergence([run], [head])
    with pytest.raises(UserError, match="they have 1, 2 items"):
        row_divergence([run, run * 2], [head, head])
    for other in (record([0.25] * 4, text="abab cd eg"), record([0.25] * 4, words=(0, 1, 2, 3))):
        with pytest.raises(UserError, match="item 0: the runs differ in its text or its words"):
            row_divergence([run, [other]], [head, head])


def measured(one: list[AttentionRecord], head: Head) -> Measurement:
    scores = score_records(one)
    nothing = np.zeros(len(one))
    return Measurement(
        split="test",
        head=head,
        development=scores,
        measured=scores,
        capture=Capture(one, Answers(nothing.astype(np.int64), nothing, nothing)),
        baselines={},
        untrained=np.zeros((0, len(one)), dtype=np.float32),
    )


def test_runs_are_compared_pair_by_pair_and_language_by_language_over_main_items() -> None:
    same, apart, novel = (record([1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.4, 0.6]) for _ in range(3))
    chinese = replace(apart, example=replace(apart.example, language="zh"))
    other = replace(novel, example=replace(novel.example, factors={"stratum": "novel"}))
    items = [same, chinese, chinese, other]
    rows = divergences(
        {"a": measured(items, Head(0, 0)), "b": measured(items, Head(0, 0)), "c": measured(items, Head(0, 1))}
    )
    table = [(row.run, row.other, row.language, row.items, row.divergence) for row in rows]
    assert table == [
        ("a", "b", "en", 1, 0), ("a", "b", "zh", 2, 0), ("a", "c", "en", 1, 1), ("a", "c", "zh", 2, 1),
        ("b", "c", "en", 1, 1), ("b", "c", "zh", 2, 1),
    ]  # fmt: skip
    assert rows[0].interval is None and rows[3].interval is None  # two items, both alike
    with pytest.raises(UserError, match="they have 4, 3 items"):
        divergences({"a": measured(items, Head(0, 0)), "b": measured(items[1:], Head(0, 0))})


def test_an_interval_of_a_divergence_has_no_end_below_zero() -> None:
    same, apart = record([1.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]), record([1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.4, 0.6])
    items = [replace(one, example=replace(one.example, group=name)) for one, name in ((same, "p"), (apart, "q"))]
    (row,) = divergences({"a": measured(items, Head(0, 0)), "b": measured(items, Head(0, 1))})
    assert row.interval is not None and (row.interval.low, row.interval.high) == (0, 1)
