from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny import tiny, tokenizer

import anaphora
from anaphora.base.errors import UserError


@pytest.fixture
def items(tmp_path: Path) -> Path:
    """Forty sentences in which the pronoun means the first of two names, or the second."""
    lines = []
    for number in range(40):
        first, second = ("Anna", "Emma") if number % 2 else ("Emma", "Anna")
        text = f"{first} helped {second} because she was {'weak' if number % 4 < 2 else 'tired'} {number}."
        lines.append(
            {
                "text": text,
                "pronoun": [text.index(" she") + 1, text.index(" she") + 4],
                "candidates": [[0, 4], [12, 16]],
                "antecedents": [number % 4 // 2],
                "group": f"g{number // 2}",
                "language": "en",
            }
        )
    path = tmp_path / "items.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path


def test_heads_of_a_model_of_transformers_are_scored_on_ones_own_items(items: Path, tmp_path: Path) -> None:
    scores = anaphora.score(tiny("bert"), data="jsonl", path=items, tokenizer=tokenizer())
    table = scores.table()
    row = table[table["language"] == "en"].iloc[0]
    assert row["items"] > 0 and 0 <= row["candidate_accuracy"] <= 1 and row["chance"] == 0.5
    assert row["low"] <= row["candidate_accuracy"] <= row["high"]
    assert row["best_shortcut"]
    assert "BertModel, layer" in repr(scores)
    page = scores.page(tmp_path / "page.html").path.read_text(encoding="utf-8")
    assert "BertModel" in page and "https://" not in page


def test_a_run_is_scored_with_its_answers(finished: Path, items: Path) -> None:
    scores = anaphora.score(str(finished), data="jsonl", path=items)
    assert scores.table()["task_accuracy"].notna().all()


def test_what_cannot_be_scored_is_told(items: Path) -> None:
    with pytest.raises(UserError, match=r"data.kind \('dprr'\) must be one of"):
        anaphora.score(tiny("bert"), data="dprr", tokenizer=tokenizer())
    with pytest.raises(UserError, match="holds texts without pronoun questions"):
        anaphora.score(tiny("bert"), data="plain_text", path=items, tokenizer=tokenizer())
    with pytest.raises(UserError, match="nowhere"):
        anaphora.score(tiny("bert"), data="jsonl", path="nowhere.jsonl", tokenizer=tokenizer())
