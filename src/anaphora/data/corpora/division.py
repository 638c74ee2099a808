"""Functions shared by all corpus readers: report, whole words, and splits by group."""

from __future__ import annotations

import gzip
import io
import random
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from anaphora.base.errors import UserError
from anaphora.base.hub import HUB_PREFIX
from anaphora.base.language import NUL
from anaphora.data.example import Example, Span
from anaphora.data.text import Text
from anaphora.settings.data import SPLITS

Item = TypeVar("Item", Example, Text)
Splits = Mapping[str, Sequence[Example]] | Mapping[str, Sequence[Text]]
"""The items of a corpus by split."""


@dataclass(frozen=True)
class Origin:
    """The files that a reader needs, and the terms on which they were published.

    Attributes:
        files: the file or folder that `data.path` may name.
        licence: as the source of the files states it, in the words of docs/corpora.md; "" where the files are anyone's.
    """

    files: str
    licence: str = ""


@dataclass(frozen=True)
class ReadingReport:
    """The number of rows read from a corpus, and of those dropped, by reason."""

    rows: int
    dropped: tuple[tuple[str, str], ...] = ()  # (where, reason)

    @property
    def reasons(self) -> dict[str, int]:
        """Count the rows dropped for each reason."""
        return dict(Counter(reason for _, reason in self.dropped))


def is_hub(path: str) -> bool:
    """Check whether a `data.path` names a data set on the hub: hf://owner/name or hf://owner/name/config."""
    return path.startswith(HUB_PREFIX)


def existing_path(path: str, files: str = "", setting: str = "data.path") -> Path:
    """Return an existing path of the settings, with "~" expanded.

    Args:
        path: of the settings.
        files: what should be there, for the error; "" where only a reader from outside knows it.
        setting: its name.

    Raises:
        UserError: nothing is there.
    """
    needed = f"; needed: {files}" if files else ""
    if is_hub(path):
        raise UserError(f"{setting} ({path}): this corpus is only read from a file or folder{needed}")
    expanded = Path(path).expanduser()
    if not expanded.exists():
        raise UserError(f"{setting} ({path}): there is no such file or folder{needed}")
    return expanded


def files_below(path: Path) -> dict[str, Path]:
    """Return a file by its name, or all files of a folder by relative path, sorted, without hidden ones."""
    if not path.is_dir():
        return {path.name: path}
    inside = {str(file.relative_to(path)): file for file in sorted(path.rglob("*")) if file.is_file()}
    return {name: file for name, file in inside.items() if not name.startswith(".") and "/." not in name}


def read_lines(path: Path) -> list[str]:
    """Return the lines of a UTF-8 file, or of a gzipped one, without their ends, LF, CRLF or CR, and without BOMs.

    A BOM may also begin a line in the middle, if files with one were put together.

    Raises:
        UserError: it is a folder, empty, not UTF-8, or not whole.
    """
    return re.split("(?:\r\n|\r|\n)\ufeff?", read_text(path))


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file, or of a gzipped one, its line ends as they are; a byte-order mark is left out.

    Raises:
        UserError: it is a folder, empty, not UTF-8, not whole, or holds a NUL character.
    """
    if path.is_dir():
        inside = ", ".join(sorted(one.name for one in path.iterdir())[:5]) or "nothing"
        raise UserError(f"{path} is a folder, not a file; it holds {inside}")
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


def unknown_format(path: Path, suffixes: Sequence[str]) -> UserError:
    """Return the message that a path has an unsupported format."""
    allowed = ", ".join(suffixes)
    if path.is_dir():
        inside = ", ".join(sorted(one.name for one in path.iterdir())[:5]) or "nothing"
        return UserError(f"data.path ({path}) is a folder; name one file of {allowed} (it holds {inside:.60})")
    if not path.suffix:
        return UserError(f"data.path ({path}): the file's name must end in one of {allowed}")
    return UserError(f"data.path ({path}): {path.suffix!r} must be one of {allowed}")


def occurrences(words: str, text: str) -> list[Span]:
    """Find the occurrences of some words in a text, never inside another word."""
    return [match.span() for match in re.finditer(rf"(?<!\w){re.escape(words)}(?!\w)", text)]


def whole_number(written: str) -> int | None:
    """Return the value of a text that is a whole number of at least 0 in the digits 0 to 9; None for any other."""
    return int(written) if written.isascii() and written.isdecimal() and len(written) < 10 else None


def non_overlapping(spans: Iterable[Span], taken: Sequence[Span]) -> list[Span]:
    """Return the spans that overlap none of the taken ones."""
    return [(start, end) for start, end in spans if all(end <= low or high <= start for low, high in taken)]


def split_by_group(items: Sequence[Item], dev_share: float, test_share: float, seed: int) -> dict[str, list[Item]]:
    """Split items by group, so that items with the same `group_key` stay together.

    Both shares are of the number of groups, rounded.
    """
    keys, groups = _shuffled_groups(items, seed)
    test = round(test_share * len(groups))
    dev = test + round(dev_share * len(groups))
    place = {
        group: "test" if number < test else "dev" if number < dev else "train" for number, group in enumerate(groups)
    }
    splits: dict[str, list[Item]] = {split: [] for split in SPLITS}
    for key, item in zip(keys, items, strict=True):
        splits[place[key]].append(item)
    return splits


def in_two_splits(where: str, name: str, value: str, split: str | None, earlier: str, its_split: str | None) -> str:
    """Return the message that a row shares a group, or a minimal pair, with an earlier row of another split."""
    return (
        f"{where}, {name}: {value[:60]!r} is in split {split} here and in split {its_split} at {earlier}; "
        "what belongs together must be in one split"
    )


def fold_numbers(items: Sequence[Item], folds: int, seed: int) -> list[int]:
    """Return the fold of every item for cross-validation, from 0; items of one group share a fold."""
    keys, groups = _shuffled_groups(items, seed)
    numbers = {group: place % folds for place, group in enumerate(groups)}
    return [numbers[key] for key in keys]


def group_key(item: Example | Text) -> str:
    """Return the key that items of one split share: a group, else a minimal pair, else a text."""
    return item.group or (item.minimal_pair if isinstance(item, Example) else "") or item.text


def _shuffled_groups(items: Sequence[Item], seed: int) -> tuple[list[str], list[str]]:
    """Return the group key of each item, and all different keys in random order."""
    keys = [group_key(item) for item in items]
    groups = sorted(set(keys))
    random.Random(f"{seed}/division").shuffle(groups)
    return keys, groups
