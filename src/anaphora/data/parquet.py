"""Atomic writing of Parquet files with column descriptions, as a whole or in parts."""

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
    """Write a table atomically as a Parquet file, compressed with zstd, with a description of each column."""
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
    """Return a context manager that yields a function to append one part of a table as a row group.

    Args:
        path: path of the file, which is created when the block ends without an error.
        schema: schema of every part.
        descriptions: description of each column, stored in the file.
        about: description of the table, stored as JSON; read by `parquet_about`.
        incompressible: names of columns with mostly distinct numbers, which are stored without dictionary encoding.
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
    """Return the `about` of a file written by `parquet_parts`; None if file or description is missing or unreadable."""
    from pyarrow import ArrowException, parquet

    try:
        metadata = parquet.read_schema(path).metadata or {}
        return json.loads(metadata.get(_ABOUT, b"null"))
    except (OSError, ArrowException, ValueError):
        return None
