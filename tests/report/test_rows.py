from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet

from anaphora.analysis.maps import rows as module
from anaphora.analysis.maps.record import AttentionRecord, from_arrays
from anaphora.analysis.maps.rows import COLUMNS, QueryRow, attention_table, write_attention_rows
from anaphora.base.errors import UserError
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
    table = attention_table([QueryRow.of_record(number, one) for number, one in enumerate(RECORDS)])
    assert table.column_names == list(COLUMNS)
    assert len(table) == len(RECORDS)
    for number, (row, one) in enumerate(zip(table.to_pylist(), RECORDS, strict=True)):
        assert row["item"] == number
        assert (row["query_start"], row["query_end"]) == one.example.pronoun
        assert list(zip(row["starts"], row["ends"], strict=True)) == list(one.spans)
        assert (row["layers"], row["heads"]) == one.weights.shape[:2]
        shares = np.array(row["weights"], dtype=np.float32).reshape(one.weights.shape)
        assert shares.max(axis=2).tolist() == [[1, 1, 1], [1, 1, 1]]
        weights = shares * np.reshape(row["scales"], (2, 3, 1))
        np.testing.assert_allclose(weights, one.weights, rtol=2**-11, atol=1e-8)


def test_a_row_of_zeros_and_a_tiny_weight_are_kept() -> None:
    weights = np.array([[[0, 0, 0], [1 - 2e-4, 1e-4, 1e-4]]], dtype=np.float32)
    row = attention_table([QueryRow(3, (0, 1), ((0, 0), (0, 1), (1, 2)), weights)]).to_pylist()[0]
    assert row["weights"][:3] == [0, 0, 0]
    assert row["scales"][0] == 0
    np.testing.assert_allclose(np.array(row["weights"][3:]) * row["scales"][1], weights[0, 1], rtol=2**-10)


def test_the_file_explains_its_columns_and_lies_beside_its_items(tmp_path: Path) -> None:
    write_attention_rows(tmp_path / "test.parquet", RECORDS)
    schema = parquet.read_schema(tmp_path / "test.parquet")
    assert {field.name: field.metadata[b"description"].decode() for field in schema} == COLUMNS
    lines = [json.loads(line) for line in (tmp_path / "test_items.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line.pop("item") for line in lines] == [0, 1]
    assert [from_record(line) for line in lines] == [one.example for one in RECORDS]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["test.parquet", "test_items.jsonl"]


def test_data_that_are_called_as_the_items_would_be_are_not_replaced(tmp_path: Path) -> None:
    own = tmp_path / "test_items.jsonl"
    for mine in ("mine", "", "7\n", "[]\n", '{"text": "She left.", "item": 0}\n'):
        own.write_text(mine)
        with pytest.raises(
            UserError, match=r"test_items.jsonl would be written beside test.parquet, but is there already"
        ):
            write_attention_rows(tmp_path / "test.parquet", RECORDS)
        assert own.read_text() == mine
    own.unlink()
    for _ in range(2):  # those of an earlier call are
        write_attention_rows(tmp_path / "test.parquet", RECORDS)


def test_items_without_rows_are_those_of_an_interrupted_command(tmp_path: Path) -> None:
    path = tmp_path / "test.parquet"
    write_attention_rows(path, RECORDS)
    whole = path.read_bytes()
    path.unlink()
    write_attention_rows(path, RECORDS)
    assert path.read_bytes() == whole


def test_a_part_at_a_time_is_the_whole_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PART", 1)
    write_attention_rows(tmp_path / "test.parquet", iter(RECORDS))
    assert parquet.ParquetFile(tmp_path / "test.parquet").num_row_groups == 2
    whole = attention_table([QueryRow.of_record(number, one) for number, one in enumerate(RECORDS)])
    assert parquet.read_table(tmp_path / "test.parquet").to_pylist() == whole.to_pylist()


def test_a_failed_write_leaves_the_old_table(tmp_path: Path) -> None:
    path = tmp_path / "test.parquet"
    write_attention_rows(path, RECORDS)
    before = path.read_bytes()

    def broken() -> Iterator[AttentionRecord]:
        yield RECORDS[1]
        raise MemoryError

    with pytest.raises(MemoryError):
        write_attention_rows(path, broken())
    assert path.read_bytes() == before
    assert sorted(each.name for each in tmp_path.iterdir()) == ["test.parquet", "test_items.jsonl"]
