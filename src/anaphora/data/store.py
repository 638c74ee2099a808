"""Arrow cache of corpora, each of which is generated or read only once.

The cache is the folder $ANAPHORA_CACHE, or ~/.cache/anaphora. Its keys are hashes of the settings, the corpus files and
the code that makes examples. Data from the Hugging Face Hub are not updated after the first download.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anaphora.base.checks import one_among
from anaphora.base.code import code_digest
from anaphora.base.errors import UserError, counted, one_line
from anaphora.base.files import atomic_directory, check_writable, file_digest, read_json, remove_leftovers, write_json
from anaphora.data.corpora.division import (
    ReadingReport,
    Splits,
    digests_of,
    files_of,
    fold_numbers,
    group_key,
    reader_module,
)
from anaphora.data.example import Example, Question
from anaphora.data.records import decoded, item_columns, rows_of, schema_of, table_of, write_parquet
from anaphora.data.text import Text
from anaphora.settings import data as data_settings
from anaphora.settings.data import SPLITS
from anaphora.settings.registered import REGISTERED, source_of

if TYPE_CHECKING:
    import pyarrow


DECODED_AT_ONCE = 16_384  # number of rows converted to Python objects at a time, to limit memory
_ABOUT = "about.json"
_ABOUT_SHAPE = {"rows": int, "dropped": [[str]], "words": [str], "digests": {str: str}}


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """Splits of a corpus as Arrow tables, memory-mapped from the cache.

    The methods raise a `UserError` if a split is unknown, or if examples are requested from a corpus of plain texts or
    vice versa. If `numbers` is given, only the items with these indices are read.
    """

    splits: Mapping[str, pyarrow.Table]  # empty splits included
    words: tuple[str, ...]  # words that a tokenizer should not split; () except for the built-in corpus
    report: ReadingReport
    fingerprint: str  # hash of settings, code and local files that determine the items; suffix of the cache folder

    def examples(self, split: str, numbers: Sequence[int] | None = None) -> list[Example]:
        """Return the examples of a split ("train", "dev", "test"), or only those with the given indices."""
        table = self._pronoun_table(split)
        if numbers is not None:
            return decoded(rows_of(table, numbers))
        starts = range(0, len(table), DECODED_AT_ONCE)
        parts = (rows_of(table, range(start, min(start + DECODED_AT_ONCE, len(table)))) for start in starts)
        return [example for part in parts for example in decoded(part)]

    def texts(self, split: str, numbers: Sequence[int] | None = None) -> list[Text]:
        """Return the texts of a split ("train", "dev", "test"), or only those with the given indices."""
        table = self._table(split)
        if "pronoun" in table.column_names:
            raise UserError(
                "this corpus holds pronoun questions, and no plain or labelled texts: read them with Corpus.examples"
            )
        columns = (table if numbers is None else rows_of(table, numbers)).to_pydict()
        return [Text(**dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]

    def questions(self, split: str, numbers: Sequence[int] | None = None) -> list[Question]:
        """Return (text, character offset of the pronoun) for each example of a split.

        If `numbers` is given, only the examples with these indices are read.
        """
        from pyarrow import compute

        texts, pronouns = self._columns(split, ("text", "pronoun"), numbers)
        return list(zip(texts.to_pylist(), compute.list_element(pronouns, 0).to_pylist(), strict=True))

    def counts(self, split: str, numbers: Sequence[int] | None = None) -> list[tuple[int, int]]:
        """Return (number of candidates, number of antecedents) for each example of a split.

        If `numbers` is given, only the examples with these indices are read.
        """
        from pyarrow import compute

        columns = self._columns(split, ("candidates", "antecedents"), numbers)
        return list(zip(*(compute.list_value_length(column).to_pylist() for column in columns), strict=True))

    def groups(self, split: str) -> list[str]:
        """Return the group of each item, a key shared by items that must stay in the same split; "" without a group."""
        return list(self._table(split).column("group").to_pylist())

    def characters(self, split: str) -> NDArray[np.int64]:
        """Return the number of characters of each text of a split: (N,); raise UserError for an unknown split."""
        from pyarrow import compute

        return np.asarray(compute.utf8_length(self._table(split).column("text")), dtype=np.int64)

    @property
    def asks_about_pronouns(self) -> bool:
        """Return whether the items are examples (pronouns with candidates) rather than plain or labelled texts."""
        return "pronoun" in next(iter(self.splits.values())).column_names

    def training_digest(self) -> str:
        """Return a hash of the training split, with which a run identifies its training data.

        The hash depends on the texts, spans, and antecedents or labels, but not on the order of the items.
        """
        import pyarrow.compute as compute

        table = self._table("train")
        known = ("text", "pronoun", "candidates", "antecedents", "label")
        names = [name for name in known if name in table.column_names]
        texts, keys = table.select(["text"]), [("text", "ascending")]
        if "pronoun" in names:  # a text may have several pronouns
            texts = texts.append_column("start", compute.list_element(table.column("pronoun"), 0))
            keys.append(("start", "ascending"))
        order = compute.sort_indices(texts, sort_keys=keys)
        digest = hashlib.sha256()
        for content in chain.from_iterable(_contents(table.column(name).take(order)) for name in names):
            digest.update(content)
        return digest.hexdigest()[:16]

    @property
    def filled_splits(self) -> list[str]:
        """Return the names of the splits that are not empty."""
        return [split for split in self.splits if len(self._table(split))]

    def write_items(self, folder: Path, descriptions: Mapping[str, str]) -> None:
        """Write each non-empty split to <folder>/<split>.parquet, with a description of each column."""
        for split in self.filled_splits:
            write_parquet(folder / f"{split}.parquet", self._table(split), descriptions)

    def _table(self, split: str) -> pyarrow.Table:
        if split not in self.splits:
            raise UserError(f"split ({split!r}) must be {one_among(list(self.splits))}")
        return self.splits[split]

    def _columns(self, split: str, names: Sequence[str], numbers: Sequence[int] | None) -> list[pyarrow.ChunkedArray]:
        table = self._pronoun_table(split).select(names)
        return list((table if numbers is None else rows_of(table, numbers)).columns)

    def _pronoun_table(self, split: str) -> pyarrow.Table:
        table = self._table(split)
        if "pronoun" not in table.column_names:
            raise UserError("data: it holds texts without pronoun questions; name others, such as data=gap")
        return table


def _contents(column: pyarrow.ChunkedArray) -> Iterator[bytes]:
    """Yield the contents of a column as bytes: list lengths per nesting level, then the innermost values."""
    import pyarrow
    import pyarrow.compute as compute

    values = pyarrow.chunked_array(column.chunks, column.type).combine_chunks()
    while hasattr(values.type, "value_type"):
        yield compute.list_value_length(values).to_numpy(zero_copy_only=False).tobytes()
        values = compute.list_flatten(values)
    if pyarrow.types.is_integer(values.type):
        yield values.to_numpy(zero_copy_only=False).tobytes()
    else:
        yield compute.binary_length(values).fill_null(-1).to_numpy(zero_copy_only=False).tobytes()
        for start in range(0, len(values), DECODED_AT_ONCE):
            texts = values.slice(start, DECODED_AT_ONCE).to_pylist()
            yield "".join(filter(None, texts)).encode("utf-8", "surrogatepass")


def load(settings: data_settings.Data) -> Corpus:
    """Load a corpus from the cache; if the cache lacks it, build it and write it there.

    A new corpus is built without groups of items, or paragraphs of plain text, that share eight consecutive words with
    the data in `data.without`. With `data.folds`, the splits train and dev are divided into folds, one of which becomes
    dev. Incomplete files of interrupted writes are removed from the cache.

    Raises:
        UserError: no data are set, a file is missing or invalid, no item is left, or the cache is damaged or read-only.
    """
    if isinstance(settings, data_settings.NoData):
        raise UserError(
            "pretrained weights come without data; name a corpus, for instance data=gap data.path=... (report and "
            "evidence need a run that was trained here)"
        )
    fingerprint = _fingerprint(settings)
    directory = cache_folder() / f"{settings.kind}-{fingerprint}"
    remove_leftovers(cache_folder(), depth=0)  # even if nothing is written: another process may have built the corpus
    about: dict[str, Any] | None = None
    if not directory.exists():
        reader = reader_module(settings)
        with cache_advice():
            check_writable(directory)
        splits, report = settings.build()
        if type(settings) in REGISTERED:
            _check_splits(REGISTERED[type(settings)].option, settings, splits)
        if not any(splits.values()):
            raise UserError(_why_nothing(settings, report))
        if isinstance(settings, data_settings.ExternalCorpus):
            if not reader.get("DECONTAMINATES"):
                splits, report = _decontaminated(splits, report, settings)
            if settings.folds:
                splits = _with_fold_as_dev(splits, settings, settings.folds)
        words = reader["known_words"](settings) if "known_words" in reader else []
        try:
            with cache_advice():
                about = _write(directory, splits, report, words, schema_of(item_columns(settings)))
        except UserError:
            # Another process may have built the same corpus meanwhile.
            if not directory.exists():
                raise
    return _open(directory, fingerprint, about)


def cache_folder() -> Path:
    """Return the folder of the cache, $ANAPHORA_CACHE or ~/.cache/anaphora, which may not exist yet."""
    return Path(os.environ.get("ANAPHORA_CACHE") or "~/.cache/anaphora").expanduser()


@contextmanager
def cache_advice() -> Iterator[None]:
    """Add advice on how to move the cache to the message of any `UserError` that the `with` block raises."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{error}; the cache is there, so set ANAPHORA_CACHE to another folder") from None


def _why_nothing(settings: data_settings.Data, report: ReadingReport) -> str:
    place = f"data.path ({settings.path})" if isinstance(settings, data_settings.ExternalCorpus) else "data"
    reasons = [f"{reason} ({counted(rows, 'row')})" for reason, rows in report.reasons.items()]
    return f"{place}: it has no items for data={settings.kind}" + (f": {'; '.join(reasons[:3])}" if reasons else "")


def _check_splits(option: str, settings: data_settings.Data, splits: Any) -> None:
    """Check that a reader from outside the package returned examples (or texts) by split."""
    wanted = Text if isinstance(settings, data_settings.TextCorpus) else Example
    if not isinstance(splits, Mapping) or sorted(splits) != sorted(SPLITS):
        raise UserError(f"{option}: build must return items by split ({', '.join(SPLITS)}), and a ReadingReport")
    for name, items in splits.items():
        for number, item in enumerate(items):
            if not isinstance(item, wanted):
                raise UserError(
                    f"{option}: item {number} of its {name} split must be a {wanted.__module__}.{wanted.__name__}, "
                    f"not a {type(item).__name__}"
                )


def _decontaminated(
    splits: Mapping[str, Sequence[Any]], report: ReadingReport, settings: data_settings.ExternalCorpus
) -> tuple[Mapping[str, Sequence[Any]], ReadingReport]:
    """Drop groups of items that overlap with evaluation data; return the other items, and a report on dropped items.

    A group is dropped if one of its items shares eight consecutive words with the data listed in `data.without`.
    """
    if not settings.without:
        return splits, report
    from anaphora.data import contamination

    items = [item for split in splits.values() for item in split]
    shared = contamination.EvaluationNgrams(settings.without).shared_with([item.text for item in items])
    groups = {group_key(item): name for item, name in zip(items, shared, strict=True) if name}
    kept = {name: [item for item in split if group_key(item) not in groups] for name, split in splits.items()}
    if not any(kept.values()):
        raise UserError(
            f"data.without ({', '.join(settings.without)}): every item of data.path ({settings.path}) shares "
            f"{contamination.NGRAM_LENGTH} words in a row with it"
        )
    reason = f"it or one of its group shares {contamination.NGRAM_LENGTH} words in a row with"
    left_out = [(item, groups[group_key(item)]) for item in items if group_key(item) in groups]
    dropped = [(repr(item.text[:60]), f"{reason} {name}") for item, name in left_out]
    return kept, ReadingReport(report.rows, (*report.dropped, *dropped))


def _with_fold_as_dev(
    splits: Mapping[str, Sequence[Any]], settings: data_settings.ExternalCorpus, folds: int
) -> dict[str, list[Any]]:
    """Divide the items of train and dev into folds; fold `settings.fold` becomes dev, the other folds become train."""
    rest = [*splits["train"], *splits["dev"]]
    parts: dict[str, list[Any]] = {"train": [], "dev": [], "test": list(splits["test"])}
    for item, number in zip(rest, fold_numbers(rest, folds, settings.seed), strict=True):
        parts["dev" if number == settings.fold else "train"].append(item)
    return parts


def files_read(settings: data_settings.Data) -> dict[str, Path]:
    """Return the local files that determine the content of a corpus, keyed by name, without opening them.

    Raises:
        UserError: a path does not exist, or a folder has no file of a supported format.
    """
    from anaphora.data import contamination

    evaluation = settings.without if isinstance(settings, data_settings.ExternalCorpus) else []
    without = contamination.evaluation_files(evaluation) if evaluation else []
    return {**files_of(settings), **{f"without {path}": path for path in without}}


def _fingerprint(settings: data_settings.Data) -> str:
    """Return a hash of the settings, code and local files that determine the items."""
    total = hashlib.sha256(json.dumps(dataclasses.asdict(settings), sort_keys=True).encode())
    total.update(source_of(settings).encode())
    # It is unknown which modules of this package a reader from outside imports, so all data code is hashed.
    is_own = type(settings) in REGISTERED
    reading = ("anaphora.data", "anaphora.settings.variants") if is_own else (settings.reader,)
    total.update(code_digest(__name__, *reading).encode())
    total.update(digests_of(files_read(settings)))
    return total.hexdigest()[:16]


def _write(
    directory: Path, splits: Splits, report: ReadingReport, words: Sequence[str], schema: pyarrow.Schema
) -> dict[str, Any]:
    from pyarrow import ipc

    with atomic_directory(directory) as draft:
        for name in SPLITS:
            with (draft / f"{name}.arrow").open("wb") as sink, ipc.new_file(sink, schema) as file:
                file.write_table(table_of(splits[name], schema))
        about = {"rows": report.rows, "dropped": list(map(list, report.dropped)), "words": list(words)}
        write_json(draft / _ABOUT, {**about, "digests": _digests(draft, about)})
    return about


def _open(directory: Path, fingerprint: str, written: Mapping[str, Any] | None) -> Corpus:
    """Open a cached corpus.

    `written` is the description of a corpus that this process has just written. If `written` is None, the description
    is read from the cache, and the hashes of the files are checked.
    """
    from pyarrow import ipc, memory_map

    try:
        about = written or _checked_description(directory)
        splits = {name: ipc.open_file(memory_map(str(directory / f"{name}.arrow"))).read_all() for name in SPLITS}
    except (OSError, ValueError) as error:
        reason = one_line(error)[:200]
        raise UserError(
            f"{directory}: the cache is damaged ({reason}); delete this folder and it will be made again"
        ) from None

    return Corpus(
        splits=splits,
        words=tuple(about["words"]),
        report=ReadingReport(about["rows"], tuple((where, reason) for where, reason in about["dropped"])),
        fingerprint=fingerprint,
    )


def _checked_description(directory: Path) -> dict[str, Any]:
    """Return the description of a cached corpus; raise UserError if a cached file has changed since it was written."""
    about: dict[str, Any] = read_json(directory / _ABOUT, _ABOUT_SHAPE)
    digests = about.pop("digests")
    if _digests(directory, about) != digests:
        raise UserError("its contents are not what was written")
    return about


def _digests(folder: Path, about: Mapping[str, Any]) -> dict[str, str]:
    """Return the hash of each file of a cached corpus, keyed by file name.

    The hashes are stored in about.json beside the corpus's description `about`. The hash for about.json itself is
    computed from this description alone.
    """
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != _ABOUT)
    known = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()
    return {_ABOUT: known, **{path.relative_to(folder).as_posix(): file_digest(path) for path in files}}
