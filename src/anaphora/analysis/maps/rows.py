"""Attention rows as a table that other tools read: Parquet, one line for each item, layer, head and token."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.maps.record import AttentionRecord
from anaphora.base.files import write_parquet, write_text
from anaphora.data.example import to_record

if TYPE_CHECKING:
    import pyarrow

COLUMNS = {
    "item": "number of the item in its split",
    "layer": "layer, from 0",
    "head": "head of the layer, from 0",
    "token": "position of the attended token; 0 is [CLS]",
    "start": "first character of the token in the text",
    "end": "character after the token's last; equal to start for [CLS]",
    "weight": "share of the pronoun's attention; a row of one item, layer and head sums to 1",
}
"""What the columns of the table mean; stored in the file too."""


def write_attention_rows(path: Path, records: Sequence[AttentionRecord]) -> None:
    """Write rows as Parquet, and the items beside it as JSON lines (`<stem>_items.jsonl`); each whole or not at all."""
    write_parquet(path, attention_table(records), COLUMNS)
    items = (
        json.dumps({"item": number, **to_record(record.example)}, ensure_ascii=False)
        for number, record in enumerate(records)
    )
    write_text(path.with_name(f"{path.stem}_items.jsonl"), "\n".join(items) + "\n")


def attention_table(records: Sequence[AttentionRecord]) -> pyarrow.Table:
    """The rows of all records; columns as in `COLUMNS`."""
    import pyarrow

    sizes = [record.weights.size for record in records]
    item = np.repeat(np.arange(len(records), dtype=np.int32), sizes)
    layer, head, token, start, end = (np.empty(sum(sizes), dtype=np.int16) for _ in range(5))
    start, end = start.astype(np.int32), end.astype(np.int32)
    weight = np.empty(sum(sizes), dtype=np.float32)
    first = 0
    for record in records:
        layers, heads, tokens = record.weights.shape
        rows = slice(first, first + record.weights.size)
        layer[rows] = np.repeat(np.arange(layers), heads * tokens)
        head[rows] = np.tile(np.repeat(np.arange(heads), tokens), layers)
        token[rows] = np.tile(np.arange(tokens), layers * heads)
        spans = np.asarray(record.spans, dtype=np.int32)
        start[rows] = np.tile(spans[:, 0], layers * heads)
        end[rows] = np.tile(spans[:, 1], layers * heads)
        weight[rows] = record.weights.reshape(-1)
        first += record.weights.size
    arrays: dict[str, NDArray[Any]] = {
        "item": item,
        "layer": layer,
        "head": head,
        "token": token,
        "start": start,
        "end": end,
        "weight": weight,
    }
    return pyarrow.table(arrays)
