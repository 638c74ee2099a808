from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet

from anaphora.analysis.maps import rows as module
from anaphora.analysis.maps.record import AttentionRecord, from_arrays
from anaphora.analysis.maps.rows import COLUMNS, attention_table, write_attention_rows
from anaphora.data.example import from_record


def record(text: str, seed: int) -> AttentionRecord:
    spans = [(0, 0), *((place, place + 1) for place in range(len(text)))]
    maps = np.random.default_rng(seed).dirichlet(np.ones(len(spans)), size=(2, 3, len(spans)))
    last = len(text)
    return from_arrays(
        text, spans, maps, (last - 1, last), [(0, 1), (1, 2)], [0], language="zh", words=[-1, *range(last)]
    )


RECORDS = [record("甲乙遇她", 0), record("甲乙丙丁遇她", 1)]


def test_each_weight_stands_at_its_own_item_layer_head_and_token() -> None:
    frame = attention_table(RECORDS).to_pandas()
    assert len(frame) == sum(one.weights.size for one in RECORDS)
    for number, one in enumerate(RECORDS):
        for layer, head in np.ndindex(2, 3):
            row = frame[(frame["item"] == number) & (frame["layer"] == layer) & (frame["head"] == head)]
            assert row["token"].tolist() == list(range(len(one.spans)))
            assert list(zip(row["start"], row["end"], strict=True)) == list(one.spans)
            np.testing.assert_array_equal(row["weight"], one.weights[layer, head])


def test_the_file_explains_its_columns_and_lies_beside_its_items(tmp_path: Path) -> None:
    write_attention_rows(tmp_path / "test.parquet", RECORDS)
    schema = parquet.read_schema(tmp_path / "test.parquet")
    assert {field.name: field.metadata[b"description"].decode() for field in schema} == COLUMNS
    lines = [json.loads(line) for line in (tmp_path / "test_items.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line.pop("item") for line in lines] == [0, 1]
    assert [from_record(line) for line in lines] == [one.example for one in RECORDS]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["test.parquet", "test_items.jsonl"]


def test_a_failed_write_leaves_the_old_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "test.parquet"
    write_attention_rows(path, RECORDS)
    before = path.read_bytes()

    def broken(records: object) -> None:
        raise MemoryError

    monkeypatch.setattr(module, "attention_table", broken)
    with pytest.raises(MemoryError):
        write_attention_rows(path, RECORDS[:1])
    assert path.read_bytes() == before
    assert sorted(each.name for each in tmp_path.iterdir()) == ["test.parquet", "test_items.jsonl"]
