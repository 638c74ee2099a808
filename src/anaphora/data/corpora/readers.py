"""The properties that the module of a corpus reader declares; the settings name the module."""

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
    """The properties of a corpus reader.

    Attributes:
        origin: the files that `data.path` may name, and their licence; `ORIGIN` of the module.
        files: settings -> the files that decide what is read, by name; the cache is keyed by their content.
        words: settings -> words that a tokenizer should know whole; `known_words` of the module.
        decontaminates: whether it leaves out itself what shares words with `data.without`; `DECONTAMINATES`.
    """

    origin: Origin
    files: Callable[[Any], dict[str, Path]]
    words: Callable[[Any], list[str]]
    decontaminates: bool


def reader_of(settings: Data) -> Reader:
    """Return the description of the reader of some settings; names that its module lacks have defaults."""
    module = vars(import_module(settings.reader)) if settings.reader else {}
    return Reader(
        origin=origin_of(settings),
        files=module.get("files", files_at_path),
        words=module.get("known_words", lambda _: []),
        decontaminates=module.get("DECONTAMINATES", False),
    )


def origin_of(settings: Data) -> Origin:
    """Return the files that `data.path` may name, and their licence.

    Both are "" for a generated corpus, and for one from outside, which may read other files than its base class.
    """
    if type(settings) in REGISTERED or not settings.reader:
        return Origin(files="")
    module = vars(import_module(settings.reader))
    origin: Origin = module["ORIGINS"][settings.kind] if "ORIGINS" in module else module.get("ORIGIN", Origin(files=""))
    return origin


def files_at_path(settings: Data) -> dict[str, Path]:
    """Return the file that `data.path` names, or all below the folder; none for a hub name or without a path."""
    if not isinstance(settings, ExternalCorpus) or is_hub(settings.path):
        return {}
    return files_below(existing_path(settings.path, origin_of(settings).files))
