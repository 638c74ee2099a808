"""Properties that the module of a corpus reader declares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from anaphora.data.corpora.division import Origin, existing_path, files_below, is_hub
from anaphora.settings.data import Data, ExternalCorpus
from anaphora.settings.variants import REGISTERED


@dataclass(frozen=True)
class Reader:
    """Properties of a corpus reader, from names in its module.

    Attributes:
        origin: files that `data.path` may name, and their licence; from `ORIGIN`, or `ORIGINS` by kind.
        files: function from the settings to the files that determine the items, by name, whose content is part of the
            cache's key; from `files`, by default `files_at_path`.
        words: function from the settings to words that a tokenizer should not divide; from `known_words`, by default
            none.
        decontaminates: whether the reader itself drops items that share words with `data.without`; from
            `DECONTAMINATES`, by default False.
    """

    origin: Origin
    files: Callable[[Any], dict[str, Path]]
    words: Callable[[Any], list[str]]
    decontaminates: bool


def reader_of(settings: Data) -> Reader:
    """Return the properties of the reader that the settings name."""
    module = vars(import_module(settings.reader)) if settings.reader else {}
    return Reader(
        origin=origin_of(settings),
        files=module.get("files", files_at_path),
        words=module.get("known_words", lambda _: []),
        decontaminates=module.get("DECONTAMINATES", False),
    )


def origin_of(settings: Data) -> Origin:
    """Return the files that `data.path` may name, and their licence.

    Both are "" for a generated corpus, and for a reader outside the package, which may need other files than its base
    class.
    """
    if type(settings) in REGISTERED or not settings.reader:
        return Origin(files="")
    module = vars(import_module(settings.reader))
    origin: Origin = module["ORIGINS"][settings.kind] if "ORIGINS" in module else module.get("ORIGIN", Origin(files=""))
    return origin


def files_at_path(settings: Data) -> dict[str, Path]:
    """Return the file or all files of the folder at `data.path`, by name; none for the hub or a corpus without a path.

    Raises:
        UserError: the path does not exist.
    """
    if not isinstance(settings, ExternalCorpus) or is_hub(settings.path):
        return {}
    return files_below(existing_path(settings.path, origin_of(settings).files))
