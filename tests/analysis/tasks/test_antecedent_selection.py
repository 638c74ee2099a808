from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.results.typed_json import table_row
from anaphora.analysis.tasks.antecedent_selection import (
    CHOICE_SETS,
    FORM_COLUMNS,
    Selections,
    SelectorAccuracy,
    collect_selections,
    form_of,
    has_preceding_antecedent,
    heads_table,
    selection_hits,
    selection_table,
)
from anaphora.base.errors import UserError
from anaphora.data.example import Example

TEXT = "Anna met Berta and she saw Cleo there"
WORDS = TEXT.split()
# Berta is cut in two pieces; a special token stands at either end.
PIECES = ["", "Anna", "met", "Ber", "ta", "and", "she", "saw", "Cleo", "there", ""]
NUMBERS = (-1, 0, 1, 2, 2, 3, 4, 5, 6, 7, -1)


def columns(row: SelectorAccuracy) -> dict[str, Any]:
    return dict(table_row(row))


def query(right: int = 1, **factors: str) -> Example:
    return Example(
        text=TEXT,
        language="en",
        pronoun=(19, 22),
        candidates=(((0, 4),), ((9, 14),), ((27, 31),)),
        antecedents=(right,),
        group=factors.pop("document", "d"),
        factors=factors,
    )


def spans() -> tuple[tuple[int, int], ...]:
    positions, place = [], 0
    for piece in PIECES:
        start = TEXT.index(piece, place) if piece else 0
        place = start + len(piece) if piece else place
        positions.append((start, start + len(piece)))
    return tuple(positions)


def record(example: Example, *rows: dict[str, float]) -> AttentionRecord:
    """Return a record of one layer; a row maps subwords to weights ("" is [CLS]), and [SEP] gets the rest."""
    weights = np.zeros((1, len(rows), len(PIECES)), dtype=np.float32)
    for head, row in enumerate(rows):
        for piece, weight in row.items():
            weights[0, head, PIECES.index(piece)] = weight
        weights[0, head, -1] += 1 - weights[0, head].sum()
    return AttentionRecord(example, spans(), NUMBERS, weights)


def judged(*rows: dict[str, float], right: int = 1) -> dict[str, list[float]]:
    hits = selection_hits(record(query(right), *rows))
    assert hits is not None
    return {name: hits[number, 0].tolist() for number, name in enumerate(CHOICE_SETS)}


def test_pieces_of_a_word_are_summed_before_the_heaviest_is_sought() -> None:
    assert judged({"Ber": 0.2, "ta": 0.2, "met": 0.3})["words"] == [1.0]


def test_special_tokens_and_the_mention_itself_do_not_count() -> None:
    assert judged({"": 0.4, "she": 0.3, "ta": 0.1})["words"] == [1.0]


def test_each_field_of_choice_leaves_out_more() -> None:
    later, between, wrong = {"there": 0.5, "ta": 0.1}, {"and": 0.5, "ta": 0.1}, {"Anna": 0.5, "ta": 0.1}
    assert judged(later, between, wrong) == {
        "words": [0.0, 0.0, 0.0],
        "preceding": [1.0, 0.0, 0.0],
        "mentions": [1.0, 1.0, 0.0],
    }


def test_mentions_after_the_asked_one_are_no_choice() -> None:
    assert judged({"Cleo": 0.5, "ta": 0.1})["mentions"] == [1.0]


def test_a_tie_counts_its_share() -> None:
    assert judged({"Anna": 0.25, "ta": 0.25})["words"] == [0.5]
    assert judged({})["mentions"] == [0.5]


def test_weights_that_differ_by_rounding_are_tied() -> None:
    assert np.float32(0.01) + np.float32(0.2) != np.float32(0.21)
    row = {"Ber": 0.01, "ta": 0.2, "Anna": 0.21}
    assert judged(row)["words"] == judged(row, right=0)["mentions"] == [0.5]


def test_any_mention_of_the_entity_counts() -> None:
    example = Example(text=TEXT, language="en", pronoun=(19, 22), candidates=(((0, 4), (9, 14)),), antecedents=(0,))
    hits = selection_hits(record(example, {"Anna": 0.5}, {"ta": 0.5}, {"saw": 0.5}))
    assert hits is not None and hits[0, 0].tolist() == [1.0, 1.0, 0.0]


def test_forms_of_other_corpora_are_pronouns_and_only_earlier_antecedents_can_be_asked() -> None:
    assert [form_of(query(form=form)) for form in ("proper", "nominal", "she", "")] == [
        "proper", "nominal", "pronoun", "pronoun",
    ]  # fmt: skip
    assert has_preceding_antecedent(query(0))
    assert not has_preceding_antecedent(query(2))
    assert not has_preceding_antecedent(
        Example(text="she ran", language="en", pronoun=(0, 3), candidates=(), antecedents=())
    )


def selections(right: NDArray[np.float64], forms: list[str], documents: list[str]) -> Selections:
    """Return selections with the given correctness, (N, heads), in all candidate sets."""
    examples = [query(0, form=form, document=name, genre=name[:1]) for form, name in zip(forms, documents, strict=True)]
    stacked = np.broadcast_to(right[:, None, None, :], (len(right), len(CHOICE_SETS), 1, right.shape[1]))
    return Selections(examples, stacked.astype(np.float32))


def test_records_are_gathered_by_their_number() -> None:
    examples = [query(0), query(1)]
    weights = {"ta": 0.5}
    selected = collect_selections(examples, [(1, record(examples[1], weights)), (0, record(examples[0], weights))])
    assert selected.hits[:, 0, 0, 0].tolist() == [0.0, 1.0]


def test_a_mention_is_left_out_if_its_antecedent_shares_a_token_with_it() -> None:
    text = "小红她去"
    example = Example(text=text, language="zh", pronoun=(2, 3), candidates=(((0, 2),),), antecedents=(0,))

    def cut(*ends: int) -> AttentionRecord:
        spans = tuple(zip((0, *ends), ends, strict=False))
        weights = np.full((1, 1, len(ends)), 1 / len(ends), dtype=np.float32)
        return AttentionRecord(example, spans, tuple(range(len(ends))), weights)

    apart, together = cut(2, 3, 4), cut(3, 4)
    selected = collect_selections([example] * 2, [(0, together), (1, apart)])
    assert len(selected.examples) == 1 and selected.hits[:, 1, 0, 0].tolist() == [1.0]
    with pytest.raises(
        UserError, match=r"all mentions of the split \(2\) are left out: no antecedent in a token of its own"
    ):
        collect_selections([example] * 2, [(0, together), (1, together)])


def test_heads_are_chosen_on_development_for_each_column_and_reported_elsewhere() -> None:
    forms = ["pronoun", "pronoun", "pronoun", "proper"]
    # Head 0 is right on pronouns in development, head 1 on names; on test head 2 would be best of all.
    development = selections(np.array([[1, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]), forms, ["a", "b", "c", "d"])
    measured = selections(np.array([[1, 0, 1], [0, 0, 1], [0, 0, 1], [0, 1, 1]]), forms, ["ae", "ae", "bf", "bf"])
    rows = {
        (row["subset"], row["selector"], row["column"]): row
        for row in map(columns, selection_table(development, measured, [(development, measured)], ["genre"]))
        if row["field"] == "words" or row["selector"] == "nearest"
    }
    best, one = rows["all", "best head", "proper"], rows["all", "one head", "proper"]
    assert (best["head"], best["development"], best["accuracy"]) == (1, 1.0, 1.0)
    assert (one["head"], one["development"], one["accuracy"]) == (0, 0.0, 0.0)
    pronoun = rows["all", "best head", "pronoun"]
    assert (pronoun["head"], pronoun["items"], pronoun["documents"]) == (0, 3, 2)
    assert pronoun["accuracy"] == pytest.approx(1 / 3, abs=1e-6)
    assert pronoun["low"] < pronoun["accuracy"] < pronoun["high"]
    assert rows["all", "untrained", "pronoun"]["accuracy"] == pronoun["accuracy"]
    assert rows["all", "nearest", "all"]["accuracy"] == 0.0
    assert pronoun["over_nearest"] == pronoun["accuracy"]
    assert rows["genre=a", "best head", "pronoun"]["accuracy"] == 0.5
    assert rows["genre=b", "best head", "pronoun"]["accuracy"] == 0.0
    assert rows["genre=b", "best head", "pronoun"]["low"] is None  # one document tells nothing of others
    assert ("all", "best head", "nominal") not in rows


def test_every_head_stands_in_the_table_of_heads() -> None:
    table = heads_table(selections(np.array([[1.0, 0.0]]), ["proper"], ["a"]), "dev")
    assert len(table) == len(CHOICE_SETS) * 2 * 2
    assert {row.column for row in table} == {"all", "proper"} < set(FORM_COLUMNS)
    assert [row.accuracy for row in table[:2]] == [1.0, 0.0]
