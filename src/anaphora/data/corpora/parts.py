"""Access to the training and test parts of a corpus on the Hugging Face Hub, in a folder or in a single file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from anaphora.base.errors import UserError
from anaphora.base.hub import HUB_PREFIX, is_reachable
from anaphora.data.corpora.division import existing_path, is_hub
from anaphora.data.corpora.reading import Row

if TYPE_CHECKING:
    import datasets


def hub_data(path: str, instead: str, setting: str = "data.path") -> dict[str, datasets.Dataset]:
    """Load a data set from the Hugging Face Hub; return its splits, keyed by the names that they have on the Hub.

    The data set is downloaded into the cache of `datasets`, or read from there if the Hub cannot be reached.

    Raises:
        UserError: `path` is not hf://owner/name or hf://owner/name/config, or the data set is not available.
    """
    from datasets import DatasetDict, load_dataset

    owner, _, rest = path.removeprefix(HUB_PREFIX).partition("/")
    name, _, configuration = rest.partition("/")
    if not owner or not name or "/" in configuration:
        raise UserError(f"{setting} ({path}) must be hf://owner/name or hf://owner/name/config")
    try:
        with _offline_if_unreachable():
            loaded = load_dataset(f"{owner}/{name}", configuration or None)
    except Exception as error:  # the errors of the library's network and file layers have no common class
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise UserError(
            f"{setting} ({path}): not available from the hub ({reason}); give {setting}={instead}"
        ) from None
    assert isinstance(loaded, DatasetDict)
    return {str(split): data for split, data in loaded.items()}


@contextmanager
def _offline_if_unreachable() -> Iterator[None]:
    """Let `datasets` use only its cache in the `with` block if the Hub cannot be reached, as with HF_HUB_OFFLINE=1."""
    from datasets import config

    before = config.HF_HUB_OFFLINE
    config.HF_HUB_OFFLINE = before or not is_reachable()
    try:
        yield
    finally:
        config.HF_HUB_OFFLINE = before


def _hub_rows(path: str, instead: str) -> dict[str, list[tuple[str, Row]]]:
    """Return (location, row) for each row of a hub data set, by split; a location is "hf://owner/name, train row 1".

    Indices of class labels become names, and -1 becomes None.
    """
    from datasets import ClassLabel

    by_split = {}
    for split, data in hub_data(path, instead).items():
        labels = {column: kind for column, kind in data.features.items() if isinstance(kind, ClassLabel)}
        rows = []
        for number, row in enumerate(data, start=1):
            for column, kind in labels.items():
                row[column] = None if row[column] in (None, -1) else kind.int2str(row[column])
            rows.append((f"{path}, {split} row {number}", row))
        by_split[split] = rows
    if "train" not in by_split:
        raise UserError(f"data.path ({path}): it has no split train; it has {', '.join(by_split)}")
    return by_split


def train_and_test_rows(
    path: str, files: str, train: Callable[[Path], Path], test: str, rows: Callable[[Path], Iterator[tuple[str, Row]]]
) -> tuple[Iterable[tuple[str, Row]], Iterable[tuple[str, Row]] | None]:
    """Return the (location, row) pairs of a corpus's training part, and those of its test part (None if missing).

    On the Hugging Face Hub, these parts are the splits "train" and "validation". In a folder, `train` returns the path
    of the training file, and `test` is the name of the test file. A single file is the training part. `files` describes
    the needed files in error messages.

    Raises:
        UserError: the data set cannot be loaded, or the file, the folder or its training file is missing.
    """
    if is_hub(path):
        parts = _hub_rows(path, files)
        return parts["train"], parts.get("validation")
    there = existing_path(path, files)
    if not there.is_dir():
        return rows(there), None
    if not train(there).exists():
        raise UserError(f"data.path ({path}): the folder has no {train(there).name}")
    return rows(train(there)), rows(there / test) if (there / test).exists() else None
