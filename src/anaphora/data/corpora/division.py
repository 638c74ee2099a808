"""Functions shared by the corpus readers: input files, licences, reports, occurrences of words, and splits by group."""

from __future__ import annotations

import gzip
import hashlib
import io
import math
import random
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from anaphora.base.errors import UserError
from anaphora.base.files import file_digest
from anaphora.base.hub import HUB_PREFIX
from anaphora.base.language import NUL
from anaphora.data.example import Example, Span
from anaphora.data.text import Text
from anaphora.settings.data import SPLITS, Data, ExternalCorpus
from anaphora.settings.registered import REGISTERED

if TYPE_CHECKING:
    import pyarrow

Item = TypeVar("Item", Example, Text)
Splits: TypeAlias = "Mapping[str, Sequence[Example]] | Mapping[str, Sequence[Text]] | Mapping[str, pyarrow.Table]"
"""Items of a corpus by split, or Arrow tables of their rows."""


@dataclass(frozen=True)
class Origin:
    """Description of the files that a reader needs, and their licence."""

    files: str  # description of the file or folder that `data.path` may name, for messages
    licence: str = ""  # as its source states it, in the words of docs/corpora.md; "" for a user's own files
    names: tuple[str, ...] = ()  # patterns of the files that are read from a folder; () for all, also in subfolders


@dataclass(frozen=True)
class ReadingReport:
    """Number of rows (items, mentions or paragraphs) read from a corpus, and the dropped rows with reasons."""

    rows: int  # including dropped ones
    dropped: tuple[tuple[str, str], ...] = ()  # (location, reason) of each

    @property
    def reasons(self) -> dict[str, int]:
        """Return the number of dropped rows for each reason."""
        return dict(Counter(reason for _, reason in self.dropped))


def is_hub(path: str) -> bool:
    """Return whether a `data.path` names a data set on the Hugging Face Hub."""
    return path.startswith(HUB_PREFIX)


def existing_path(path: str, files: str = "", setting: str = "data.path") -> Path:
    """Return the path of an existing file or folder, with "~" expanded.

    Raises:
        UserError: the path does not exist, or is on the Hugging Face Hub; the message names setting and needed files.
    """
    needed = f"; needed: {files}" if files else ""
    if is_hub(path):
        raise UserError(f"{setting} ({path}): this corpus is only read from a file or folder{needed}")
    expanded = Path(path).expanduser()
    if not expanded.exists():
        raise UserError(f"{setting} ({path}): there is no such file or folder{needed}")
    return expanded


def files_below(path: Path) -> dict[str, Path]:
    """Return the files in a folder and its subfolders by relative path, sorted, without hidden files and folders.

    If the path names a file, only this file is returned, keyed by its name.
    """
    if not path.is_dir():
        return {path.name: path}
    inside = {str(file.relative_to(path)): file for file in sorted(path.rglob("*")) if file.is_file()}
    return {name: file for name, file in inside.items() if not name.startswith(".") and "/." not in name}


def path_digest(path: Path, files: Iterable[Path] | None = None) -> str:
    """Return a hash of the content of a file or folder, independent of the path of this file or folder.

    Hidden files are ignored. If `files` is given, only the content of these files is hashed.

    Raises:
        UserError: a file cannot be read.
    """
    counted = files_below(path).values() if files is None else sorted(files)
    return hashlib.sha256(digests_of({str(file.relative_to(path)): file for file in counted})).hexdigest()[:16]


def digests_of(files: Mapping[str, Path]) -> bytes:
    """Return bytes that identify files: the name and the content hash of each file.

    Raises:
        UserError: a file cannot be read.
    """
    try:
        return b"".join(name.encode() + bytes.fromhex(file_digest(path)) for name, path in files.items())
    except OSError as error:
        raise UserError(f"{error.filename}: cannot be read ({error.strerror})") from None


def read_lines(path: Path) -> list[str]:
    """Return the lines of the text that `read_text` returns, without line ends (LF, CRLF or CR).

    A byte-order mark at the start of any line is removed, since concatenated files have several. The last line is empty
    if the file ends with a line end.

    Raises:
        UserError: `read_text` cannot read the file.
    """
    return re.split("(?:\r\n|\r|\n)\ufeff?", read_text(path))


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file, plain or gzipped (.gz); keep its line endings, and remove a byte-order mark.

    Raises:
        UserError: the path is a folder, or the file is empty, not UTF-8, an incomplete gzip file, or contains a NUL
            character.
    """
    if path.is_dir():
        raise UserError(f"{path} is a folder, not a file; it holds {_inside(path)}")
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="").read()
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise UserError(f"{path}: not a whole gzip file") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8") from None
    if not text:
        raise UserError(f"{path}: the file is empty")
    before, nul, _ = text.partition(NUL)
    if nul:
        line = len(re.findall("\r\n|\r|\n", before)) + 1
        raise UserError(f"{path}, line {line}: it holds a NUL character, which no text has: the file is damaged")
    return text


def lines_with_ends(text: str) -> Iterator[str]:
    """Yield the lines of a text with their ends (LF, CRLF or CR); unlike `StringIO`, do not copy the whole text."""
    return (line.group() for line in re.finditer("[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text))


def unknown_format(path: Path, suffixes: Sequence[str]) -> UserError:
    """Return the error for a `data.path` that does not name a file with one of the given suffixes.

    For data that the library `datasets` has stored, the message says how to convert them.
    """
    allowed, place = ", ".join(suffixes), repr(str(path))
    to_parquet = "to_parquet('items.parquet')"
    if (path / "dataset_dict.json").exists() or (path / "dataset_info.json").exists():
        split = "['train']" if (path / "dataset_dict.json").exists() else ""
        return UserError(
            f"data.path ({path}) is a folder of the library datasets; name one file of {allowed}, as "
            f"datasets.load_from_disk({place}){split}.{to_parquet} writes it"
        )
    if path.is_dir():
        return UserError(f"data.path ({path}) is a folder; name one file of {allowed} (it holds {_inside(path):.60})")
    if not path.suffix:
        return UserError(f"data.path ({path}): the file's name must end in one of {allowed}")
    way_out = f", as datasets.Dataset.from_file({place}).{to_parquet} writes it" if path.suffix == ".arrow" else ""
    return UserError(f"data.path ({path}): {path.suffix!r} must be one of {allowed}{way_out}")


def _inside(folder: Path) -> str:
    return ", ".join(sorted(one.name for one in folder.iterdir())[:5]) or "nothing"


def occurrences(words: str, text: str) -> list[Span]:
    """Return the spans of all whole-word, case-sensitive occurrences of a phrase in a text."""
    return [match.span() for match in re.finditer(rf"(?<!\w){re.escape(words)}(?!\w)", text)]


def whole_number(written: str) -> int | None:
    """Return the value of a string of one to nine ASCII digits; None for any other string."""
    return int(written) if written.isascii() and written.isdecimal() and len(written) < 10 else None


def non_overlapping(spans: Iterable[Span], taken: Sequence[Span]) -> list[Span]:
    """Return the spans that share no character with any span in `taken`."""
    return [(start, end) for start, end in spans if all(end <= low or high <= start for low, high in taken)]


def split_by_group(items: Sequence[Item], dev_share: float, test_share: float, seed: int) -> dict[str, list[Item]]:
    """Divide items into train, dev and test at random; items with the same `group_key` stay together.

    The shares, from 0 to 1, refer to the number of groups, and are rounded to whole groups. Items keep their order.
    """
    keys, groups = _shuffled_groups(items, seed)
    test = round(test_share * len(groups))
    # Rounding both shares must not leave a group for training if the shares leave none.
    dev = len(groups) if math.isclose(dev_share + test_share, 1) else test + round(dev_share * len(groups))
    place = {
        group: "test" if number < test else "dev" if number < dev else "train" for number, group in enumerate(groups)
    }
    splits: dict[str, list[Item]] = {split: [] for split in SPLITS}
    for key, item in zip(keys, items, strict=True):
        splits[place[key]].append(item)
    return splits


def check_one_split(
    first_of: dict[tuple[str, str], tuple[str, str | None]], where: str, name: str, value: str, split: str | None
) -> None:
    """Check that a row is in the same split as earlier rows with the same group or the same minimal pair.

    Args:
        first_of: location and split of the first row with each (name, value); a new (name, value) is added.
        where: location of the row.
        name: "group" or "minimal_pair".
        value: group or minimal pair of the row; "" if there is none.
        split: split of the row.

    Raises:
        UserError: the first row with this value is in another split.
    """
    earlier, its_split = first_of.setdefault((name, value), (where, split))
    if value and split != its_split:
        raise UserError(
            f"{where}, {name}: {value[:60]!r} is in split {split} here and in split {its_split} at {earlier}; "
            "what belongs together must be in one split"
        )


def fold_numbers(items: Sequence[Item], folds: int, seed: int) -> list[int]:
    """Return the random fold of each item; items with the same `group_key` share a fold.

    The number of groups per fold differs by at most one.
    """
    keys, groups = _shuffled_groups(items, seed)
    numbers = {group: place % folds for place, group in enumerate(groups)}
    return [numbers[key] for key in keys]


def group_key(item: Example | Text) -> str:
    """Return the key of items that must stay in one split: the group, or else the minimal pair, or else the text."""
    return item.group or (item.minimal_pair if isinstance(item, Example) else "") or item.text


def _shuffled_groups(items: Sequence[Item], seed: int) -> tuple[list[str], list[str]]:
    """Return the group key of each item, and the distinct keys in random order."""
    keys = [group_key(item) for item in items]
    groups = sorted(set(keys))
    random.Random(f"{seed}/division").shuffle(groups)
    return keys, groups


def reader_module(settings: Data) -> Mapping[str, Any]:
    """Return the namespace of the corpus reader's module; empty for a corpus without a reader.

    Besides `read`, the module may have:

    - `ORIGIN`: description of the files that the reader needs, and their licence; a reader of several corpora has
      `ORIGINS`, keyed by `data.kind`. A generated corpus has neither.
    - `files`: function that maps the settings to the files that determine the items, keyed by name. The content of
      these files is part of the cache key. The default is `files_at_path`.
    - `known_words`: function from the settings to words that a tokenizer should not split.
    - `DECONTAMINATES`: whether the reader itself drops items that share words with `data.without`.
    """
    return vars(import_module(settings.reader)) if settings.reader else {}


def origin_of(settings: Data) -> Origin:
    """Return a description of the files that `data.path` may name, and their licence.

    Both are "" for a generated corpus, and for a corpus that is registered from outside the package. The reader of a
    registered corpus may extend a built-in reader and yet need other files.
    """
    module = {} if type(settings) in REGISTERED else reader_module(settings)
    origin: Origin = module["ORIGINS"][settings.kind] if "ORIGINS" in module else module.get("ORIGIN", Origin(files=""))
    return origin


def files_at_path(settings: Data) -> dict[str, Path]:
    """Return the file at `data.path`, or the files of the folder that the reader may open, keyed by name.

    Other files in the folder, such as the results of a command, do not belong to the corpus. The result is empty for a
    data set on the Hugging Face Hub and for a corpus without a path.

    Raises:
        UserError: the path does not exist.
    """
    if not isinstance(settings, ExternalCorpus) or is_hub(settings.path):
        return {}
    origin = origin_of(settings)
    there = existing_path(settings.path, origin.files)
    if not (origin.names and there.is_dir()):
        return files_below(there)
    return {path.name: path for name in origin.names for path in sorted(there.glob(name)) if path.is_file()}


def files_of(settings: Data) -> dict[str, Path]:
    """Return the files that a corpus is read from, keyed by name."""
    files: dict[str, Path] = reader_module(settings).get("files", files_at_path)(settings)
    return files
