"""Parquet tables with descriptions of their columns, written atomically at once or in parts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anaphora.base.files import atomic_write

if TYPE_CHECKING:
    import pyarrow

_ABOUT = b"anaphora"


def write_parquet(path: Path, table: pyarrow.Table, descriptions: Mapping[str, str]) -> None:
    """Write a table as Parquet atomically, with the meaning of each column."""
    with parquet_parts(path, table.schema, descriptions) as write:
        write(table)


@contextmanager
def parquet_parts(
    path: Path,
    schema: pyarrow.Schema,
    descriptions: Mapping[str, str],
    about: Mapping[str, Any] | None = None,
    incompressible: Sequence[str] = (),
) -> Iterator[Callable[[pyarrow.Table], None]]:
    """Open a function that writes one part of a table at a time as a row group.

    Args:
        path: of the file, which is there when the block has ended well.
        schema: of every part.
        descriptions: what each column means; stored in the file.
        about: what the whole table is about, as JSON; `parquet_about` reads it.
        incompressible: lists of numbers of which hardly two are alike, for which a dictionary is a waste.
    """
    import pyarrow
    from pyarrow import parquet

    fields = [field.with_metadata({"description": descriptions[field.name]}) for field in schema]
    metadata = {**(schema.metadata or {}), **({_ABOUT: json.dumps(about)} if about is not None else {})}
    described = pyarrow.schema(fields, metadata=metadata or None)
    dictionaries = [field.name for field in schema if field.name not in incompressible] if incompressible else True
    with (
        atomic_write(path) as draft,
        parquet.ParquetWriter(draft, described, compression="zstd", use_dictionary=dictionaries) as writer,
    ):
        yield lambda part: writer.write_table(pyarrow.table(part.columns, schema=described))


def parquet_about(path: Path) -> Any:
    """Return the description of a table written in parts; None if there is no such file or description."""
    from pyarrow import ArrowException, parquet

    try:
        metadata = parquet.read_schema(path).metadata or {}
        return json.loads(metadata.get(_ABOUT, b"null"))
    except (OSError, ArrowException, ValueError):
        return None
