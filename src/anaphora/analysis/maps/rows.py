"""Attention rows as a Parquet table for other tools, with one table row for each query word.

Axes are L (layers), H (heads) and T (tokens). Each attention row is divided by its largest weight, which is stored as
the row's scale, and the quotients are stored in float16. Quotients down to 1/16,000 keep the full precision of float16,
eleven significant bits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.maps.record import AttentionRecord
from anaphora.base.errors import UserError
from anaphora.base.files import atomic_write
from anaphora.data.example import Span, to_record
from anaphora.data.records import parquet_parts

if TYPE_CHECKING:
    import pyarrow

COLUMNS = {
    "item": "number of the item in its split",
    "query_start": "first character of the word that attends; the pronoun's, where the item has one",
    "query_end": "the character after its last",
    "layers": "L, the number of layers",
    "heads": "H, the number of heads of a layer",
    "starts": "for each of T tokens its first character in the text",
    "ends": "the character after its last; equal to its start for a special token such as [CLS]",
    "weights": "L x H x T shares of the attention, layer by layer and head by head, each divided by its row's scale",
    "scales": "L x H largest weights of the rows; the weights of a row times its scale sum to 1",
}
"""Descriptions of the columns of the table, also stored in its file."""

_PART = 1024  # number of table rows that are written at once


@dataclass(frozen=True, eq=False)
class QueryRow:
    """Attention rows of one query word, in every layer and head."""

    item: int  # index of the item, a text, that contains the word
    query: Span  # character span of the query word
    spans: Sequence[Span]  # character spans of the T tokens; (0, 0) marks a special token
    weights: NDArray[np.float32]  # means over the query's tokens, (L, H, T); rows sum to 1, or to 0 if ablated

    @classmethod
    def of_record(cls, item: int, record: AttentionRecord) -> QueryRow:
        """Return the attention rows of the pronoun of item number `item`."""
        return cls(item, record.example.pronoun, record.spans, record.weights)


WriteRows = Callable[[Sequence[QueryRow], Iterable[Mapping[str, Any]]], None]
"""Function that writes attention rows as a Parquet row group, and items as lines of JSON."""


@contextmanager
def attention_file(path: Path, about: Mapping[str, Any] | None = None) -> Iterator[WriteRows]:
    """Yield a function that writes attention rows to a Parquet file and their items to `<stem>_items.jsonl`.

    Both files appear when the `with` block ends, the Parquet file last, so that there is never a Parquet file without
    its items. `about` is stored in the Parquet file's metadata; `data.records.parquet_about` reads it.

    Raises:
        UserError: a file cannot be written, or `<stem>_items.jsonl` exists but is not a file of items.
    """
    items = items_path(path)
    if items.exists() and not path.exists() and not _holds_items(items):  # items without rows: writing was interrupted
        raise UserError(f"{items} would be written beside {path.name}, but is there already; choose another output=")
    with (
        parquet_parts(path, attention_schema(), COLUMNS, about, incompressible=("weights", "scales")) as write_table,
        atomic_write(items) as draft,
        draft.open("w", encoding="utf-8") as lines,
    ):

        def write(rows: Sequence[QueryRow], items: Iterable[Mapping[str, Any]]) -> None:
            lines.writelines(json.dumps(item, ensure_ascii=False) + "\n" for item in items)
            if rows:
                write_table(attention_table(rows))

        yield write


def items_path(path: Path) -> Path:
    """Return the path of the JSON lines file with the items of a Parquet file of attention rows."""
    return path.with_name(f"{path.stem}_items.jsonl")


def _holds_items(path: Path) -> bool:
    """Return whether the first line of a file is an item as `attention_file` writes it."""
    try:
        with path.open(encoding="utf-8") as lines:
            return bool(next(iter(json.loads(lines.readline()))) == "item")
    except (OSError, ValueError, TypeError, StopIteration):
        return False


def write_attention_rows(path: Path, records: Iterable[AttentionRecord]) -> None:
    """Write the pronouns' attention rows and their items to two files, as in `attention_file`."""
    numbered = enumerate(records)
    with attention_file(path) as write_rows:
        while part := list(islice(numbered, _PART)):
            rows = [QueryRow.of_record(number, record) for number, record in part]
            write_rows(rows, ({"item": number, **to_record(record.example)} for number, record in part))


def attention_schema() -> pyarrow.Schema:
    """Return the schema of the table of attention rows, whose columns are `COLUMNS`."""
    import pyarrow

    types = {
        **dict.fromkeys(("item", "query_start", "query_end"), pyarrow.int32()),
        **dict.fromkeys(("layers", "heads"), pyarrow.int16()),
        **dict.fromkeys(("starts", "ends"), pyarrow.list_(pyarrow.int32())),
        "weights": pyarrow.list_(pyarrow.float16()),
        "scales": pyarrow.list_(pyarrow.float32()),
    }
    return pyarrow.schema([(name, types[name]) for name in COLUMNS])


def attention_table(rows: Sequence[QueryRow]) -> pyarrow.Table:
    """Return attention rows as a table with the columns `COLUMNS`."""
    import pyarrow

    spans = np.concatenate([np.asarray(row.spans, dtype=np.int32).reshape(-1, 2) for row in rows])
    scaled = [_scaled(row.weights) for row in rows]
    queries = np.array([row.query for row in rows], dtype=np.int32)
    shapes = np.array([row.weights.shape for row in rows], dtype=np.int64)  # (n, 3): L, H, T
    columns: dict[str, Any] = {
        "item": np.array([row.item for row in rows], dtype=np.int32),
        "query_start": queries[:, 0],
        "query_end": queries[:, 1],
        "layers": shapes[:, 0].astype(np.int16),
        "heads": shapes[:, 1].astype(np.int16),
        "starts": _lists(spans[:, 0], shapes[:, 2]),
        "ends": _lists(spans[:, 1], shapes[:, 2]),
        "weights": _lists(np.concatenate([weights.reshape(-1) for weights, _ in scaled]), shapes.prod(axis=1)),
        "scales": _lists(np.concatenate([scales.reshape(-1) for _, scales in scaled]), shapes[:, :2].prod(axis=1)),
    }
    return pyarrow.table(columns, schema=attention_schema())


def _scaled(weights: NDArray[np.float32]) -> tuple[NDArray[np.float16], NDArray[np.float32]]:
    """Return weights divided by their row's largest weight, and the largest weights: (L, H, T) -> (L, H, T), (L, H)."""
    scales = weights.max(axis=2).astype(np.float32)
    shares = np.divide(weights, scales[..., None], out=np.zeros_like(weights), where=scales[..., None] > 0)
    return shares.astype(np.float16), scales


def _lists(values: NDArray[Any], sizes: NDArray[np.int64]) -> pyarrow.Array:
    import pyarrow

    offsets = np.concatenate(([0], sizes.cumsum())).astype(np.int32)
    return pyarrow.ListArray.from_arrays(pyarrow.array(offsets), pyarrow.array(values))
