from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from anaphora.analysis.record import AttentionRecord
from anaphora.analysis.scores import Head
from anaphora.analysis.seeds import row_divergence
from anaphora.data.example import Example
from anaphora.errors import UserError

SPANS = ((0, 2), (2, 4), (5, 7), (8, 10))


def record(*rows: list[float], text: str = "abab cd ef", words: tuple[int, ...] = (0, 0, 1, 2)) -> AttentionRecord:
    """Four tokens, of which two make one word; a head a row."""
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
    found = row_divergence(runs, [Head(0, 0), Head(0, 1), Head(0, 0)])
    by_hand = []
    for first, second in ((0, 1), (0, 2), (1, 2)):
        middle = (rows[first] + rows[second]) / 2
        by_hand.append(sum(special.rel_entr(rows[each], middle).sum() for each in (first, second)) / 2 / np.log(2))
    np.testing.assert_allclose(found[:, 0], by_hand, rtol=1e-5)


def test_runs_that_cannot_be_compared_are_told() -> None:
    run = [record([0.25] * 4)]
    head = Head(0, 0)
    with pytest.raises(UserError, match="expected two or more, a head for each"):
        row_divergence([run], [head])
    with pytest.raises(UserError, match="they have 1, 2 items"):
        row_divergence([run, run * 2], [head, head])
    for other in (record([0.25] * 4, text="abab cd eg"), record([0.25] * 4, words=(0, 1, 2, 3))):
        with pytest.raises(UserError, match="item 0: the runs differ in its text or its words"):
            row_divergence([run, [other]], [head, head])
