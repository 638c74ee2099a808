"""Parts of a public corpus from the Hugging Face hub, a folder or a single file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anaphora.base.errors import UserError
from anaphora.base.hub import HUB_PREFIX, is_reachable
from anaphora.data.corpora.division import existing_path, is_hub
from anaphora.data.corpora.reading import Row

if TYPE_CHECKING:
    import datasets


def hub_data(path: str, instead: str) -> dict[str, datasets.Dataset]:
    """Load all splits of a data set on the Hugging Face hub, by their names there.

    If the hub cannot be reached, the local cache of `datasets` is used.

    Args:
        path: `data.path`, hf://owner/name or hf://owner/name/config.
        instead: local file or folder that the error suggests.

    Raises:
        UserError: `path` has another form, or the data set can be neither downloaded nor read from the cache.
    """
    from datasets import DatasetDict, load_dataset

    owner, _, rest = path.removeprefix(HUB_PREFIX).partition("/")
    name, _, configuration = rest.partition("/")
    if not owner or not name or "/" in configuration:
        raise UserError(f"data.path ({path}) must be hf://owner/name or hf://owner/name/config")
    try:
        with _offline_if_unreachable():
            loaded = load_dataset(f"{owner}/{name}", configuration or None)
    except Exception as error:  # the library lets those of its network and file layers through, which are unrelated
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise UserError(
            f"data.path ({path}): not available from the hub ({reason}); give data.path={instead}"
        ) from None
    assert isinstance(loaded, DatasetDict)
    return {str(split): data for split, data in loaded.items()}


@contextmanager
def _offline_if_unreachable() -> Iterator[None]:
    """Make `datasets` use its cache at once if the hub cannot be reached, as with HF_HUB_OFFLINE=1."""
    from datasets import config

    before = config.HF_HUB_OFFLINE
    config.HF_HUB_OFFLINE = before or not is_reachable()
    try:
        yield
    finally:
        config.HF_HUB_OFFLINE = before


def hub_rows(path: str, instead: str, needed: str) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """Return the rows of a hub data set by split: ("name, train row 1", row); class labels become names.

    Args:
        path, instead: as in `hub_data`.
        needed: the split that must be there.

    Raises:
        UserError: as `hub_data`, or the data set lacks the split.
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
    if needed not in by_split:
        raise UserError(f"data.path ({path}): it has no split {needed}; it has {', '.join(by_split)}")
    return by_split


def train_and_test_rows(
    path: str, files: str, train: Callable[[Path], Path], test: str, rows: Callable[[Path], Iterator[tuple[str, Row]]]
) -> tuple[Iterable[tuple[str, Row]], Iterable[tuple[str, Row]] | None]:
    """Return the training rows and the public test rows (None without any) of the hub, a folder or a file.

    The hub calls the two parts "train" and "validation". A single file is all to train on.

    Args:
        path: of the settings.
        files: the files that would do, for the error.
        train: the file to train on, of a folder.
        test: the name of the file of the test part in a folder, which need not be there.
        rows: of a file.

    Raises:
        UserError: the data set cannot be had, or the file to train on is not there; what is wrong in a row, as it is
            read.
    """
    if is_hub(path):
        parts = hub_rows(path, files, needed="train")
        return parts["train"], parts.get("validation")
    there = existing_path(path, files)
    if not there.is_dir():
        return rows(there), None
    if not train(there).exists():
        raise UserError(f"data.path ({path}): the folder has no {train(there).name}")
    return rows(train(there)), rows(there / test) if (there / test).exists() else None
