from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest

from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.results.scores import Head
from anaphora.analysis.results.typed_json import to_json
from anaphora.analysis.scores.heads import head_accuracy, score_records
from anaphora.analysis.scores.summary import heads_frame, summarise, template_rows
from anaphora.data.example import Example

SPANS = ((0, 2), (3, 5), (6, 8), (9, 11))
HEAD = Head(0, 1)
MEANS = [
    "task_accuracy",
    "candidate_accuracy",
    "quad_accuracy",
    "minimal_pair_accuracy",
    "open_accuracy",
    "focal_accuracy",
    "antecedent_mass",
    "lift",
]


def item(
    right: int, language: str = "en", gold: int = 0, group: str = "", minimal_pair: str = "", **factors: str
) -> AttentionRecord:
    """Return an item of two candidates; head 1 picks the antecedent if `right`, and head 0 always picks the first."""
    rows = np.full((1, 2, 4), 0.1, dtype=np.float32)
    rows[0, 0, 0] = rows[0, 1, gold if right else 1 - gold] = 0.7
    example = Example(
        text="ab ab ab ab",
        language=language,
        pronoun=SPANS[3],
        candidates=((SPANS[0],), (SPANS[1],)),
        antecedents=(gold,),
        group=group,
        minimal_pair=minimal_pair,
        factors=factors,
    )
    return AttentionRecord(example, SPANS, (0, 1, 2, 3), rows)


def quad(name: str, rights: list[int], **factors: str) -> list[AttentionRecord]:
    cells = [(order, gold) for order in (0, 1) for gold in (0, 1)]
    return [
        item(right, gold=gold, group=name, minimal_pair=f"{name}{order}", order=str(order), **factors)
        for right, (order, gold) in zip(rights, cells, strict=True)
    ]


@pytest.fixture(scope="module")
def records() -> list[AttentionRecord]:
    return [
        *quad("a", [1, 1, 1, 1], kind="set", type="gender", template="en/gender/0", stratum="main"),
        *quad("b", [1, 1, 1, 0], kind="set", type="number", template="en/number/0", stratum="main"),
        *quad("c", [0, 0, 1, 1], kind="role", type="voice", template="en/voice/0"),
        *quad("d", [0, 0, 0, 0], kind="role", type="voice", template="en/voice/9", stratum="cataphora"),
        item(1, "zh", group="e"),
        item(0, "zh", group="f"),
    ]


@pytest.fixture(scope="module")
def summary(records: list[AttentionRecord]) -> dict[str, Any]:
    scored = score_records(records)
    count = len(scored.examples)
    models = np.tile([[0.0], [1.0], [0.5]], count)
    first = {"first": scored.gold[:, 0].astype(float)}
    summary: dict[str, Any] = to_json(summarise(scored, HEAD, np.ones(count), first, models))
    return summary


def test_a_cell_is_the_mean_over_its_main_items(summary: dict[str, Any]) -> None:
    english = summary["languages"]["en"]
    assert english["items"] == 12
    assert english["candidate_accuracy"] == round(9 / 12, 6)
    assert english["quad_accuracy"] == round(1 / 3, 6)
    assert english["minimal_pair_accuracy"] == round(4 / 6, 6)
    assert english["antecedent_mass"] == round((9 * 0.7 + 3 * 0.1) / 12, 6)
    assert english["lift"] == round((9 * 0.7 + 3 * 0.1) / 12 * 4, 6)
    assert english["chance"] == 0.5
    assert english["task_accuracy"] == 1


def test_kinds_types_and_strata_are_cells_of_their_own(summary: dict[str, Any]) -> None:
    english = summary["languages"]["en"]
    assert (english["set"]["items"], english["set"]["candidate_accuracy"]) == (8, 0.875)
    assert (english["role"]["items"], english["role"]["candidate_accuracy"]) == (4, 0.5)
    assert {name: cell["items"] for name, cell in english["types"].items()} == {"gender": 4, "number": 4, "voice": 4}
    cataphora = summary["strata"]["en"]["cataphora"]
    assert (cataphora["items"], cataphora["candidate_accuracy"]) == (4, 0)
    assert summary["strata"]["zh"] == {}


def test_every_cell_has_the_same_keys_in_the_same_order(summary: dict[str, Any]) -> None:
    english = summary["languages"]["en"]
    keys = ["items", *MEANS, "chance", "intervals"]
    for cell in (english["set"], english["role"], summary["strata"]["en"]["cataphora"]):
        assert list(cell) == [*keys, "baselines"]
        assert list(cell["intervals"]) == MEANS
    assert all(list(cell) == keys for cell in english["types"].values())
    assert list(english) == [*keys, "baselines", "set", "role", "types", "worst_template"]


def test_baselines_are_taken_over_the_items_of_the_cell(summary: dict[str, Any]) -> None:
    english = summary["languages"]["en"]["baselines"]
    assert english == {"first": 0.5, "random_init": 0.5, "random_init_95": 0.95}
    assert summary["languages"]["zh"]["baselines"]["first"] == 1


def test_the_worst_template_is_named_with_its_numbers(summary: dict[str, Any]) -> None:
    assert summary["languages"]["en"]["worst_template"] == {
        "template": "en/voice/0",
        "items": 4,
        "task_accuracy": 1.0,
        "candidate_accuracy": 0.5,
    }


def test_data_without_kinds_templates_or_blocks_leave_them_out(summary: dict[str, Any]) -> None:
    chinese = summary["languages"]["zh"]
    assert "set" not in chinese
    assert "role" not in chinese
    assert "types" not in chinese
    assert "worst_template" not in chinese
    assert chinese["quad_accuracy"] is None
    assert chinese["intervals"]["quad_accuracy"] is None
    assert chinese["intervals"]["candidate_accuracy"] == [0, 1]  # two groups, one right


def test_intervals_hold_the_mean_and_need_two_templates(summary: dict[str, Any]) -> None:
    english = summary["languages"]["en"]
    low, high = english["intervals"]["candidate_accuracy"]
    assert low <= english["candidate_accuracy"] <= high
    assert low < high
    assert english["types"]["gender"]["intervals"]["candidate_accuracy"] is None


def test_a_minimal_pair_or_a_quad_counts_only_in_cells_that_hold_all_of_it() -> None:
    whole, cut = quad("a", [1, 1, 1, 1], kind="set"), quad("b", [1, 1, 1, 0], kind="set", stratum="main")
    example = cut[-1].example
    aside = replace(example, factors={**example.factors, "stratum": "other"})
    scored = score_records([*whole, *cut[:-1], replace(cut[-1], example=aside)])
    summary = summarise(scored, HEAD, np.ones(8), {}, np.zeros((0, 8)))
    main, other = summary.languages["en"], summary.strata["en"]["other"]
    assert (main.items, main.quad_accuracy, main.minimal_pair_accuracy) == (7, 1, 1)  # one quad, and three pairs
    assert (other.items, other.quad_accuracy, other.minimal_pair_accuracy) == (1, None, None)


def test_the_summary_is_strict_json_even_where_nothing_is_known(records: list[AttentionRecord]) -> None:
    scored = score_records(records)
    count = len(scored.examples)
    bare = to_json(summarise(scored, HEAD, np.full(count, np.nan), {}, np.zeros((0, count))))
    assert json.loads(json.dumps(bare, allow_nan=False)) == bare
    english = bare["languages"]["en"]
    assert english["task_accuracy"] is None
    assert english["intervals"]["task_accuracy"] is None
    assert english["baselines"] == {"random_init": None, "random_init_95": None}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"task_correct": np.ones(3)}, r"task_correct: the shape is \(3,\); expected \(18,\)"),
        ({"baselines": {"nearest": np.ones((18, 2))}}, r"nearest: the shape is \(18, 2\); expected \(18,\)"),
        ({"random_init": np.ones(18)}, r"random_init: the shape is \(18,\); expected \(models, 18\)"),
    ],
)
def test_correctness_of_another_length_is_refused(
    records: list[AttentionRecord], change: dict[str, Any], message: str
) -> None:
    arguments: dict[str, Any] = {
        "task_correct": np.ones(18),
        "baselines": {},
        "random_init": np.zeros((0, 18)),
    } | change
    with pytest.raises(ValueError, match=message):
        summarise(score_records(records), HEAD, **arguments)


def test_every_template_has_a_row_for_each_stratum(records: list[AttentionRecord]) -> None:
    rows = [asdict(row) for row in template_rows(score_records(records), HEAD, np.ones(18))]
    assert [(row["template"], row["stratum"], row["items"]) for row in rows] == [
        ("en/gender/0", "main", 4),
        ("en/number/0", "main", 4),
        ("en/voice/0", "main", 4),
        ("en/voice/9", "cataphora", 4),
    ]
    assert rows[1]["candidate_accuracy"] == 0.75
    assert rows[1]["antecedent_mass"] == pytest.approx(0.55)


def test_the_table_of_heads_holds_means_by_language(records: list[AttentionRecord]) -> None:
    frame = heads_frame(score_records(records)).set_index(["language", "layer", "head"])
    assert frame["items"].to_dict() == {("en", 0, 0): 12, ("en", 0, 1): 12, ("zh", 0, 0): 2, ("zh", 0, 1): 2}
    english = score_records([record for record in records if record.example.language == "en"])
    assert frame.loc["en"]["macro_candidate_accuracy"].tolist() == pytest.approx(head_accuracy(english)[0].tolist())
    assert frame["candidate_accuracy"].to_dict() == {
        ("en", 0, 0): 0.5,
        ("en", 0, 1): 0.75,  # main items; those with cataphora are all wrong
        ("zh", 0, 0): 1.0,
        ("zh", 0, 1): 0.5,
    }
