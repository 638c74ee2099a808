"""Conversion of examples and texts to and from Arrow tables, and atomic writing of Parquet files."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import accumulate, pairwise
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anaphora.base.files import atomic_write
from anaphora.data.example import Example, unchecked_examples
from anaphora.data.offsets import cut_words
from anaphora.data.text import Text
from anaphora.settings import data as data_settings

if TYPE_CHECKING:
    import pyarrow

_GROUPS_AT_ONCE = 128  # few, so that their objects fit into the processor's cache
_MEMBERS_KEPT = 4096
_AS_JSON = json.JSONEncoder(ensure_ascii=False).encode
ITEM_COLUMNS = {
    "text": "sentence or passage",
    "language": "en or zh",
    "pronoun": "character span [start, end] of the pronoun, from 0, end exclusive",
    "candidates": "character spans [start, end] of the mentions of each candidate",
    "antecedents": "indices of the candidates that the pronoun refers to, from 0; empty for none of them",
    "group": "key shared by items that must stay in one split; empty for an item on its own",
    "minimal_pair": "key shared by items that differ only in the cue; empty without a minimal pair",
    "factors": "properties of the item, such as kind and type of cue or template, as JSON",
}
"""Description of each column of a split of examples."""
TEXT_COLUMNS = {
    "text": "text, one paragraph per line",
    "language": "en or zh",
    "label": "label for classification, if any",
    "group": "key shared by texts that must stay in one split; empty for a text on its own",
    "title": "title of the page or book, if known",
}
"""Description of each column of a split of texts."""
_ABOUT = b"anaphora"


def item_columns(settings: data_settings.Data) -> dict[str, str]:
    """Return a description of each column in the tables of a corpus's splits."""
    return TEXT_COLUMNS if isinstance(settings, data_settings.TextCorpus) else ITEM_COLUMNS


def schema_of(columns: Iterable[str] = ITEM_COLUMNS) -> pyarrow.Schema:
    """Return an Arrow schema with columns of the given names; factors (attributes, which vary) are JSON strings."""
    import pyarrow

    index = pyarrow.int32()
    span = pyarrow.list_(index, 2)
    lists = {"pronoun": span, "candidates": pyarrow.list_(pyarrow.list_(span)), "antecedents": pyarrow.list_(index)}
    return pyarrow.schema({name: lists.get(name, pyarrow.string()) for name in columns})


def table_of(items: Sequence[Example] | Sequence[Text] | pyarrow.Table, schema: pyarrow.Schema) -> pyarrow.Table:
    """Convert items to an Arrow table with the given column types; return a table unchanged."""
    import pyarrow

    if isinstance(items, pyarrow.Table):
        return items
    return pyarrow.table(columns_of(items), schema=schema) if items else schema.empty_table()


class GroupRows:
    """Collection of groups of examples, stored as Arrow rows, which take a fifth of the memory of Python objects.

    No span of the examples may start or end inside a word.
    """

    def __init__(self) -> None:
        self._groups: list[list[Example]] = []  # not converted yet
        self._tables: list[pyarrow.Table] = []
        self._sizes: list[int] = []

    def __len__(self) -> int:
        return len(self._sizes)

    def append(self, group: list[Example]) -> None:
        """Add the examples of one group."""
        self._groups.append(group)
        self._sizes.append(len(group))
        if len(self._groups) == _GROUPS_AT_ONCE:
            self._convert()

    def table(self, order: Sequence[int]) -> pyarrow.Table:
        """Return the rows of the groups with the given indices, in the given order, and delete the stored rows."""
        import pyarrow

        if self._groups:
            self._convert()
        starts = [0, *accumulate(self._sizes)]
        rows = pyarrow.array(
            [row for group in order for row in range(starts[group], starts[group + 1])], pyarrow.int64()
        )
        schema = schema_of()
        whole = pyarrow.concat_tables([schema.empty_table(), *self._tables])
        self._tables.clear()
        columns = []
        for name in whole.column_names:  # one at a time, to limit memory
            columns.append(whole.column(name).combine_chunks().take(rows))
            whole = whole.drop_columns(name)
        return pyarrow.table(columns, schema=schema)

    def _convert(self) -> None:
        import pyarrow

        columns = columns_of([example for group in self._groups for example in group], has_whole_words=True)
        self._tables.append(pyarrow.table(columns, schema=schema_of()))
        self._groups.clear()


def columns_of(items: Sequence[Example] | Sequence[Text], has_whole_words: bool = False) -> dict[str, list[Any]]:
    """Convert items to a list of values for each column, with factors (attributes) as JSON strings.

    `has_whole_words` states that no span starts or ends inside a word, so that this need not be tested.
    """
    columns = {field.name: list(map(attrgetter(field.name), items)) for field in dataclasses.fields(items[0])}
    if "factors" in columns:
        if not has_whole_words:
            columns["factors"] = [_factors(item) for item in items if isinstance(item, Example)]
        columns["factors"] = _written_factors(columns["factors"])
    return columns


def _factors(item: Example) -> dict[str, str]:
    """Return the factors (attributes) of an item; `word_parts` is added if spans start or end inside a word.

    The factor `word_parts` lists the starts of these spans. `check_offsets` rejects such a span if its start is not in
    this list.
    """
    parts = cut_words(item.text, item.spans)
    return {**item.factors, "word_parts": ",".join(map(str, parts))} if parts else dict(item.factors)


def _written_factors(factors: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the factors of each item as a JSON string.

    The JSON code of each pair of a factor's name and value is cached, since most pairs occur in many items.
    """
    member = lru_cache(_MEMBERS_KEPT)(lambda name, value: f"{_AS_JSON(name)}: {_AS_JSON(value)}")
    return [f"{{{', '.join(map(member, each, each.values()))}}}" for each in factors]


def rows_of(table: pyarrow.Table, numbers: Sequence[int]) -> pyarrow.Table:
    """Return the rows of a table with the given indices, in the given order, without reading other rows from disk."""
    import pyarrow

    runs: list[list[int]] = []  # first and past-the-last row
    for number in numbers:
        if runs and runs[-1][1] == number:
            runs[-1][1] += 1
        else:
            runs.append([number, number + 1])
    slices = pyarrow.concat_tables([table.slice(0, 0), *(table.slice(first, end - first) for first, end in runs)])
    # A slice refers to the values of the whole table, all of which `decoded` would convert; `take` copies the rows.
    return slices.take(pyarrow.array(range(len(slices)), pyarrow.int64()))


def decoded(table: pyarrow.Table) -> list[Example]:
    """Convert a table to examples column by column, which is ten times as fast as value by value."""
    if not len(table):
        return []

    def flat(name: str) -> pyarrow.Array:
        return table.column(name).combine_chunks()

    pronouns = _span_pairs(flat("pronoun"))
    entities = flat("candidates")
    mentions = entities.values
    spans = _span_pairs(mentions.values)
    grouped = [tuple(spans[start:end]) for start, end in _list_bounds(mentions)]
    candidates = [tuple(grouped[start:end]) for start, end in _list_bounds(entities)]
    listed = flat("antecedents")
    indices = listed.values.to_pylist()
    antecedents = [tuple(indices[start:end]) for start, end in _list_bounds(listed)]
    # One call of the JSON parser for all items takes half as long as one call per item. Items share the objects of
    # equal values, which saves two thirds of the memory.
    known: dict[str, str] = {}
    factors = json.loads(
        f"[{','.join(flat('factors').to_pylist())}]",
        object_pairs_hook=lambda pairs: {name: known.setdefault(value, value) for name, value in pairs},
    )
    columns = {name: flat(name).to_pylist() for name in ("text", "language", "group", "minimal_pair")}
    columns |= {"pronoun": pronouns, "candidates": candidates, "antecedents": antecedents, "factors": factors}
    return unchecked_examples(columns)


def _list_bounds(lists: pyarrow.Array) -> Iterator[tuple[int, int]]:
    return pairwise(lists.offsets.to_numpy().tolist())


def _span_pairs(spans: pyarrow.Array) -> list[tuple[int, int]]:
    values = spans.flatten().to_numpy().tolist()
    known: dict[tuple[int, int], tuple[int, int]] = {}
    return [known.setdefault(pair, pair) for pair in zip(values[::2], values[1::2], strict=True)]


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
    """Create a Parquet file inside the `with` block; the yielded function appends one part of a table as a row group.

    Args:
        path: path of the file, which appears there when the `with` block ends without an error.
        schema: schema of every part.
        descriptions: description of each column, stored in the file.
        about: description of the table, stored as JSON; read by `parquet_about`.
        incompressible: names of columns with mostly distinct values, which are stored without dictionary encoding.
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
    """Return the description of the table in a file written by `parquet_parts` (its argument `about`).

    The result is None if the file contains no description or is unreadable.
    """
    from pyarrow import ArrowException, parquet

    try:
        metadata = parquet.read_schema(path).metadata or {}
        return json.loads(metadata.get(_ABOUT, b"null"))
    except (OSError, ArrowException, ValueError):
        return None
