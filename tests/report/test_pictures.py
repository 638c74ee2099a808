from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from anaphora.analysis.record import AttentionRecord
from anaphora.analysis.scores import Head, score
from anaphora.analysis.words import word_weights
from anaphora.data.example import Example
from anaphora.report import pictures

SPANS = ((0, 0), (0, 1), (2, 3), (4, 5), (6, 7))
CHOSEN = Head(0, 1)


def record(
    right: int,
    order: int = 0,
    group: str = "g",
    language: str = "en",
    kind: str = "role",
    points: int | None = None,
    **factors: str,
) -> AttentionRecord:
    """Candidates a and b, pronoun c; head 1 gives 0.6 to the candidate `points`, head 0 to the last word."""
    example = Example(
        text="a b c d",
        language=language,
        pronoun=(4, 5),
        candidates=(((0, 1),), ((2, 3),)),
        antecedents=(right,),
        group=group,
        factors={"kind": kind, "type": "x", "cue": f"cue {right ^ order}", "order": str(order), **factors},
    )
    rows = np.full((1, 2, 5), 0.1, dtype=np.float32)
    rows[0, 0, 4] = 0.6
    rows[0, 1, 1 + (right if points is None else points)] = 0.6
    return AttentionRecord(example, SPANS, (-1, 0, 1, 2, 3), rows)


def block(group: str = "g", **rest: str) -> list[AttentionRecord]:
    return [record(right, order, group, **rest) for order in (1, 0) for right in (1, 0)]  # type: ignore[arg-type]


def test_roles_are_words_and_special_tokens_count() -> None:
    one = record(1)
    assert pictures.roles(one.example, word_weights(one)) == (3, [[2]], [[1]])


def test_the_first_right_and_wrong_items_are_taken_and_only_main_ones() -> None:
    records = [
        record(0, stratum="novel"),
        record(0, language="zh"),
        record(0, points=1),
        record(0),
        record(0, points=1),
    ]
    scores = score(records)
    assert pictures.right_and_wrong(scores, CHOSEN, "en") == {"wrong": 2, "right": 3}
    assert pictures.right_and_wrong(scores, CHOSEN, "zh") == {"right": 1}


def test_a_quad_is_the_first_whole_block_of_its_language_and_kind() -> None:
    records = [
        *block("broken")[:3],
        *block("zh", language="zh"),
        *block("set", kind="set"),
        *block("one"),
        *block("two"),
    ]
    scores = score(records)
    assert pictures.example_quad(scores, "en", "role") == [11, 12, 13, 14]
    assert pictures.example_quad(scores, "en", "set") == [7, 8, 9, 10]
    assert pictures.example_quad(scores, "zh", "set") == []
    # An item that could not be scored moves the numbers of the others, not the block that is found.
    shifted = score([Broken.record(), *records])
    assert pictures.example_quad(shifted, "en", "role") == [12, 13, 14, 15]


class Broken:
    """An item without an antecedent, which nobody can score."""

    @staticmethod
    def record() -> AttentionRecord:
        example = Example(text="a b c d", language="en", pronoun=(4, 5), candidates=(((0, 1),),), antecedents=())
        return AttentionRecord(example, SPANS, (-1, 0, 1, 2, 3), np.full((1, 2, 5), 0.2, dtype=np.float32))


def test_a_quads_cells_stand_by_cue_and_then_by_order_with_the_chosen_heads_rows() -> None:
    cells = pictures.quad_cells(block(), CHOSEN)
    assert [cell.label for cell in cells] == [
        "cue: cue 0 · order 1", "cue: cue 0 · order 2", "cue: cue 1 · order 1", "cue: cue 1 · order 2",
    ]  # fmt: skip
    assert [cell.antecedents for cell in cells] == [[[1]], [[2]], [[2]], [[1]]]
    for cell in cells:
        heaviest = int(np.argmax(np.asarray(cell.weights)))
        assert [heaviest] == cell.antecedents[0]


def test_orders_may_have_any_names() -> None:
    records = block()
    named = [
        replace(one, example=replace(one.example, factors={**one.example.factors, "order": name}))
        for one, name in zip(records, ("Emma", "Emma", "Anna", "Anna"), strict=True)
    ]
    labels = [cell.label for cell in pictures.quad_cells(named, CHOSEN)]
    assert labels == [cell.label for cell in pictures.quad_cells(records, CHOSEN)]


def accuracy(hits: Sequence[bool], kind: str) -> list[AttentionRecord]:
    return [record(0, group=f"{kind} {number}", kind=kind, points=0 if hit else 1) for number, hit in enumerate(hits)]


def test_every_type_of_cue_counts_the_same_in_the_grid() -> None:
    scores = score([*accuracy([True] * 9, "set"), *accuracy([False], "role"), record(0, points=1, stratum="novel")])
    found = pictures.head_accuracy(scores)
    assert found.shape == (1, 2)
    assert found[0, 1] == pytest.approx(0.5)
    assert pictures.mean_chance(scores) == pytest.approx(0.5)


def test_emergence_needs_two_validations_with_attention() -> None:
    one: dict[str, float] = {
        "step": 1,
        "validation/accuracy": 0.5,
        "attention_pointing/layer_0_head_0": 0.4,
        "attention_pointing/layer_0_head_1": 0.6,
    }
    assert pictures.emergence([one], CHOSEN, 0.5) is None
    assert pictures.emergence([{"step": 1.0}, {"step": 2.0}], CHOSEN, 0.5) is None
    figure = pictures.emergence([one, {**one, "step": 2}], CHOSEN, 0.5)
    assert figure is not None
