"""Cache of the shortcuts' correctness on each item, as JSON files.

Shortcuts do not depend on a model's weights, and fitting them may take longer than all other measurements of a run. A
file is named after a digest of the items, the code and the library versions. A damaged or unrelated file is ignored and
rewritten; if a file cannot be written, a message is printed. Two processes that start at the same time both fit the
shortcuts and write the same content.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from anaphora.analysis.scores.baselines import accuracy, order_models
from anaphora.analysis.scores.baselines.policies import Floats
from anaphora.base.code import code_digest
from anaphora.base.console import say
from anaphora.base.errors import UserError
from anaphora.base.files import read_json, write_text
from anaphora.base.locale.translation import _
from anaphora.data.example import Example, to_record
from anaphora.data.store import cache_folder
from anaphora.data.tokens.tokenizer import Tokenizer

Split = tuple[Sequence[Example], Sequence[Example]]
"""Training items and test items."""
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "torch")
_SHAPE = {"key": str, "digest": str, "shortcuts": {str: list}}


def shortcut_correctness(train: Sequence[Example], test: Sequence[Example]) -> dict[str, Floats]:
    """Return the result of `accuracy.shortcut_correctness`, cached."""
    [results] = _learned_once(
        accuracy.__name__, "", [(train, test)], lambda splits: [accuracy.shortcut_correctness(*one) for one in splits]
    )
    return results


def order_shortcuts(splits: Sequence[Split], tokenizer: Tokenizer) -> list[dict[str, Floats]]:
    """Return the result of `order_models.order_shortcuts`, cached for each language."""
    return _learned_once(
        order_models.__name__,
        tokenizer.dumps(),
        splits,
        lambda unknown: order_models.order_shortcuts(unknown, tokenizer),
    )


def _learned_once(
    module: str, settings: str, splits: Sequence[Split], learn: Callable[[Sequence[Split]], Sequence[dict[str, Floats]]]
) -> list[dict[str, Floats]]:
    """Return the results for each split from its cache file, and compute missing ones.

    Args:
        module: name of the module that fits the shortcuts; its code and its imports are part of the key.
        settings: other settings that are part of the key.
        splits: the splits, each with its own file.
        learn: function that computes the results of the splits without a file.
    """
    keys = [_key(module, settings, split) for split in splits]
    results = [_read(key, len(test)) for key, (_, test) in zip(keys, splits, strict=True)]
    unknown = [number for number, stored in enumerate(results) if stored is None]
    learned = learn([splits[number] for number in unknown]) if unknown else []
    for number, shortcuts in zip(unknown, learned, strict=True):
        results[number] = shortcuts
        try:
            _write(keys[number], shortcuts)
        except UserError as error:  # the results are complete without the file
            say(_("{error}; the shortcuts will be learned again the next time").format(error=error))
    return [stored for stored in results if stored is not None]


def _key(module: str, settings: str, split: Split) -> str:
    """Return a digest of everything on which the results depend, in half a second for 50,000 items."""
    libraries = [version(name) for name in _LIBRARIES]
    about = [module, code_digest(module), libraries, settings, *map(len, split)]
    total = hashlib.sha256(json.dumps(about).encode())
    for examples in split:
        for example in examples:
            total.update(json.dumps(to_record(example), sort_keys=True).encode())
    return total.hexdigest()


def _path(key: str) -> Path:
    return cache_folder() / f"shortcuts-{key[:16]}.json"


def _write(key: str, shortcuts: Mapping[str, Floats]) -> None:
    plain = {
        name: [None if missing else value for value, missing in zip(right.tolist(), np.isnan(right), strict=True)]
        for name, right in shortcuts.items()
    }
    content = {"key": key, "digest": _digest(plain), "shortcuts": plain}
    write_text(_path(key), json.dumps(content, allow_nan=False) + "\n")


def _read(key: str, items: int) -> dict[str, Floats] | None:
    """Return the results stored under a key; None if the file is missing, damaged or about another number of items."""
    try:
        content = read_json(_path(key), _SHAPE)
    except (FileNotFoundError, UserError):
        return None
    shortcuts = content["shortcuts"]
    if content["key"] != key or content["digest"] != _digest(shortcuts):
        return None
    if not all(_are_scores(values, items) for values in shortcuts.values()):
        return None
    return {name: np.array(values, dtype=np.float64) for name, values in shortcuts.items()}  # None becomes NaN


def _are_scores(values: list[Any], items: int) -> bool:
    return len(values) == items and all(value is None or (type(value) is float and 0 <= value <= 1) for value in values)


def _digest(shortcuts: Mapping[str, list[Any]]) -> str:
    return hashlib.sha256(json.dumps(shortcuts).encode()).hexdigest()
