from __future__ import annotations

from dataclasses import replace

import numpy as np

from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.results.scores import Head
from anaphora.data.example import Example
from anaphora.report.figures import pictures

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
    """Return a record with candidates a and b and pronoun c; head 1 gives 0.6 to `points`, head 0 to the last word."""
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


def test_a_sentence_s_pictures_say_in_their_titles_what_gets_most_of_the_pronoun_s_weight() -> None:
    one = record(0, points=1)
    maps = np.zeros((1, 2, 5, 5), dtype=np.float32)
    maps[:, :, 3] = one.weights
    for figure in (pictures.sentence_pronoun_row(one, CHOSEN), pictures.sentence_heat_map(one, maps, CHOSEN)):
        words = " ".join(text.get_text() for text in figure.axes[0].texts)
        assert '"c" gives 60 % of its weight in layer 0 head 1 to "b" and 10 % to its antecedent "a"' in words


def test_a_quads_cells_stand_by_cue_and_then_by_order_with_the_chosen_heads_rows() -> None:
    cells = pictures.quad_cells(block(), CHOSEN)
    assert [cell.label for cell in cells] == [
        "cue: cue 0 · order 1", "cue: cue 0 · order 2", "cue: cue 1 · order 1", "cue: cue 1 · order 2",
    ]  # fmt: skip
    assert [cell.antecedents for cell in cells] == [[[1]], [[2]], [[2]], [[1]]]
    for cell in cells:
        heaviest = int(np.argmax(np.asarray(cell.weights)))
        assert [heaviest] == cell.antecedents[0]


def test_a_quad_without_labels_is_sorted_by_its_first_candidate_and_shows_no_cue() -> None:
    records = [replace(each, example=replace(each.example, factors={"kind": "role"})) for each in block()]
    swapped = [replace(each, example=replace(each.example, text="b a c d")) for each in records[:2]]
    cells = pictures.quad_cells([*swapped, *records[2:]], CHOSEN)
    assert [cell.label for cell in cells] == ["order 1", "order 1", "order 2", "order 2"]
    assert [cell.words[1] for cell in cells] == ["a", "a", "b", "b"]


def test_orders_may_have_any_names() -> None:
    records = block()
    named = [
        replace(one, example=replace(one.example, factors={**one.example.factors, "order": name}))
        for one, name in zip(records, ("Emma", "Emma", "Anna", "Anna"), strict=True)
    ]
    labels = [cell.label for cell in pictures.quad_cells(named, CHOSEN)]
    assert labels == [cell.label for cell in pictures.quad_cells(records, CHOSEN)]


def test_alignment_through_training_needs_two_validations_with_attention() -> None:
    one: dict[str, float] = {
        "step": 1,
        "validation/accuracy": 0.5,
        "attention_candidate_accuracy/layer_0_head_0": 0.4,
        "attention_candidate_accuracy/layer_0_head_1": 0.6,
    }
    assert pictures.alignment_through_training([one], CHOSEN, 0.5) is None
    assert pictures.alignment_through_training([{"step": 1.0}, {"step": 2.0}], CHOSEN, 0.5) is None
    figure = pictures.alignment_through_training([one, {**one, "step": 2}], CHOSEN, 0.5)
    assert figure is not None
