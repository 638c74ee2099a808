from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.results.scores import Head
from anaphora.api import head_choices as module
from anaphora.base.errors import UserError
from anaphora.data.example import Example

TEXT = "Anna met Emma when she left"
SPANS = tuple((TEXT.index(word), TEXT.index(word) + len(word)) for word in TEXT.split())


def item(*right: int, gender: str = "female") -> Example:
    return Example(
        text=TEXT, language="en", pronoun=SPANS[4], candidates=((SPANS[0],), (SPANS[2],)), antecedents=right,
        factors={"gender": gender},
    )  # fmt: skip


def record(example: Example) -> AttentionRecord:
    """Return a record in which head 1 gives the antecedent 0.6, and names little if none is one; head 0 is wrong."""
    first, second = (0.02, 0.01) if not example.antecedents else (0.6, 0.1) if 0 in example.antecedents else (0.1, 0.6)
    knowing = np.array([first, 0.05, second, 0.05, 0, 0.05])
    knowing[4] = 1 - knowing.sum()
    wrong = knowing[[2, 1, 0, 3, 4, 5]]
    return AttentionRecord(example, SPANS, tuple(range(6)), np.stack([[wrong, knowing]]).astype(np.float32))


def test_a_heads_decisions_are_counted_as_gap_counts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(_: Any, examples: Sequence[Example]) -> tuple[list[AttentionRecord], None]:
        return [record(example) for example in examples], None

    monkeypatch.setattr(module, "pronoun_records", read)
    items = [item(0), item(1), item(), item(0, gender="male")]
    model: Any = SimpleNamespace(name="model", attending_layers=(0,), heads=2)
    rows = {row["policy"]: row for row in module.name_decisions(model, items, items, Head(0, 1), untrained=0)}
    assert set(rows) == {"random", "nearest", "first", "parallel roles", "head", "head with threshold"}
    assert rows["head"]["recall"] == 1 and rows["head"]["precision"] == 0.75  # it names one where neither is meant
    assert rows["head"]["masculine"] == 1 and rows["head"]["feminine"] == pytest.approx(0.8)
    assert rows["head"]["bias"] == pytest.approx(0.8)
    assert rows["head with threshold"]["f1"] == 1
    # Without a right decision on either gender there is no ratio, which JSON has no number for.
    (other,) = (row for row in module.name_decisions(model, items, items, Head(0, 0), 0) if row["policy"] == "head")
    assert other["f1"] == 0 and other["bias"] is None


def test_no_head_of_a_layer_without_attention_is_chosen_for_an_untrained_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without weights, both names count as half a choice, which is better than to be wrong as in these items."""

    def read(_: Any, examples: Sequence[Example]) -> tuple[list[AttentionRecord], None]:
        records = [record(example) for example in examples]
        wrong = [np.stack([np.zeros((1, 6)), one.weights[0, :1]]) for one in records]
        return [replace(one, weights=rows.astype(np.float32)) for one, rows in zip(records, wrong, strict=True)], None

    monkeypatch.setattr(module, "pronoun_records", read)
    model: Any = SimpleNamespace(name="model", attending_layers=(1,), heads=1)
    model.untrained = lambda seed: model
    items = [item(0), item(0, gender="male")]
    rows = {row["policy"]: row for row in module.name_decisions(model, items, items, Head(1, 0), untrained=1)}
    assert rows["head"]["f1"] == rows["untrained"]["f1"] == 0


def test_a_head_that_is_not_there_and_a_negative_number_are_refused() -> None:
    model: Any = SimpleNamespace(name="model", attending_layers=(0,), heads=2)
    with pytest.raises(UserError, match=r"head \(2\) must be from 0 to 1"):
        module.name_decisions(model, [item(0)], [item(0)], Head(0, 2), untrained=0)
    for name_or_select in (
        lambda: module.name_decisions(model, [item(0)], [item(0)], Head(0, 1), untrained=-1),
        lambda: module.select_antecedents(model, [item(0)], [item(0)], untrained=-1),
    ):
        with pytest.raises(UserError, match=r"untrained \(-1\) must be at least 0"):
            name_or_select()
