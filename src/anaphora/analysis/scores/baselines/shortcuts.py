"""Shortcut baselines: their correctness on N items, cached as JSON files, and their accuracies.

Results are cached because fitting the shortcuts, which do not depend on a model's weights, may take longer than all
other measurements of a run. A cache file is named after a hash of the items, the code and the library versions. A
damaged or unrelated file is ignored and rewritten; if a file cannot be written, a message is printed. Two processes
that start at the same time both fit the shortcuts and write the same content.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from anaphora.analysis.maps.answers import Floats
from anaphora.analysis.scores.baselines import order_models
from anaphora.analysis.scores.baselines.learned import learned_answers
from anaphora.analysis.scores.baselines.policies import POLICIES, focal_correctness, random_choice
from anaphora.analysis.scores.cells import clusters
from anaphora.analysis.scores.statistics import cluster_interval
from anaphora.base.code import code_digest
from anaphora.base.console import say
from anaphora.base.errors import UserError
from anaphora.base.files import read_json, write_text
from anaphora.data.example import Example, to_record
from anaphora.data.grouping import indices_by
from anaphora.data.store import cache_folder
from anaphora.data.tokens.tokenizer import Tokenizer

MAX_FACTOR_VALUES = 20
Split = tuple[Sequence[Example], Sequence[Example]]
"""Training items and test items."""
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "torch")
_SHAPE = {"key": str, "digest": str, "shortcuts": {str: list}}


@dataclass(frozen=True, kw_only=True)
class ShortcutAccuracy:
    """Accuracy of one shortcut on the test items of one language and cue category."""

    name: str
    language: str
    kind: str  # cue category, "set" or "role"; "" for items without one
    items: int
    accuracy: float
    low: float | None  # lower end of the 95 % interval over templates; None if there are too few templates
    high: float | None


def shortcut_correctness(train: Sequence[Example], test: Sequence[Example]) -> dict[str, Floats]:
    """Return the correctness of each shortcut on N test items, (N,), by name, as `fit_shortcuts` does, but cached."""
    [results] = _learned_once(__name__, "", [(train, test)], lambda splits: [fit_shortcuts(*one) for one in splits])
    return results


def order_shortcuts(splits: Sequence[Split], tokenizer: Tokenizer) -> list[dict[str, Floats]]:
    """Return the correctness of shortcuts for items with two names, as `fit_order_models` does, but cached."""
    module, settings = order_models.__name__, tokenizer.dumps()
    return _learned_once(module, settings, splits, lambda unknown: order_models.fit_order_models(unknown, tokenizer))


def _learned_once(
    module: str, settings: str, splits: Sequence[Split], learn: Callable[[Sequence[Split]], Sequence[dict[str, Floats]]]
) -> list[dict[str, Floats]]:
    """Return the shortcuts' correctness on the test items of each split.

    A split's results are read from its cache file; if there is none, `learn` computes them, and the file is written.
    The file is identified by a hash of the code of `module` and its imports, the library versions, `settings` and the
    items.
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
            say("{error}; the shortcuts will be learned again next time", error=error)
    return [stored for stored in results if stored is not None]


def _key(module: str, settings: str, split: Split) -> str:
    """Return the cache key of a split's results."""
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
    """Return the results stored under a key; None if the file is missing, damaged or has another number of items."""
    try:
        content = read_json(_path(key), _SHAPE)
    except (FileNotFoundError, UserError):
        return None
    shortcuts = content["shortcuts"]
    is_own = content["key"] == key and content["digest"] == _digest(shortcuts)
    if not is_own or not all(_are_scores(values, items) for values in shortcuts.values()):
        return None
    return {name: np.array(values, dtype=np.float64) for name, values in shortcuts.items()}  # None becomes NaN


def _are_scores(values: list[Any], items: int) -> bool:
    return len(values) == items and all(value is None or (type(value) is float and 0 <= value <= 1) for value in values)


def _digest(shortcuts: Mapping[str, list[Any]]) -> str:
    return hashlib.sha256(json.dumps(shortcuts).encode()).hexdigest()


def fit_shortcuts(train: Sequence[Example], test: Sequence[Example]) -> dict[str, Floats]:
    """Fit shortcuts on training items, and return the correctness of each shortcut on test items.

    A shortcut chooses among the candidates that the cue distinguishes (`Example.focal`). Learned shortcuts are fitted
    on the training items with the same language and cue category (`kind`) that have an antecedent. For a test item
    without an antecedent, every choice is wrong.

    Returns:
        Correctness (N,) by name of the shortcut; NaN if it does not apply to an item. Learned shortcuts need training
        items. `bag_by_place`, `words` and `words_and_pairs` apply only to items without a cue category, and the last
        two need training items with at most 10 candidates.
    """
    results = unfitted_correctness(test)
    for cell, items in indices_by(map(_cell, test)).items():
        known = [example for example in train if _cell(example) == cell and example.antecedents]
        for name, fit in learned_answers(cell[1], known).items():
            right = results.setdefault(name, np.full(len(test), np.nan))
            if known:
                right[items] = focal_correctness(fit(known), [test[item] for item in items])
    return results


def unfitted_correctness(test: Sequence[Example]) -> dict[str, Floats]:
    """Return the correctness of each shortcut that needs no fitting, (N,), keyed by the name of the shortcut.

    A shortcut chooses among the candidates that the cue distinguishes (`Example.focal`).
    """
    return {name: focal_correctness(policy, test) for name, policy in {"chance": random_choice, **POLICIES}.items()}


def accuracy_by_kind(results: Mapping[str, Floats], test: Sequence[Example]) -> list[ShortcutAccuracy]:
    """Return the accuracy of each shortcut by language and cue category (`kind`).

    A shortcut that does not apply to all items of a group has no entry there. Intervals are bootstrapped over templates
    or groups of items (`clusters`).
    """
    labels = clusters(test)
    cells = indices_by(map(_cell, test))
    rows = []
    for name, right in results.items():
        for (language, kind), items in cells.items():
            if np.isnan(right[items]).any():
                continue
            low, high = cluster_interval(right[items], labels[items], bounds=(0, 1)) or (None, None)
            accuracy = float(right[items].mean())
            row = ShortcutAccuracy(
                name=name, language=language, kind=kind, items=len(items), accuracy=accuracy, low=low, high=high
            )
            rows.append(row)
    return sorted(rows, key=lambda row: (row.language, row.kind))


def accuracy_by_factor(
    results: Mapping[str, Floats], test: Sequence[Example]
) -> list[dict[str, str | int | float | None]]:
    """Return the accuracy of each shortcut on natural text, by the values of each factor.

    There is a row for each value of each factor (`Example.factors`); the columns are "factor", "value", "items" and the
    names of the shortcuts. An accuracy is None if the shortcut does not apply to all items of the row. Factors with one
    value or with more than `MAX_FACTOR_VALUES` values are left out. Items with a cue category (`kind`) are not counted;
    `accuracy_by_kind` reports them.
    """
    items: dict[str, dict[str, list[int]]] = {}
    for item, example in enumerate(test):
        for factor, value in () if example.factors.get("kind") else example.factors.items():
            items.setdefault(factor, {}).setdefault(value, []).append(item)
    return [
        {
            "factor": factor,
            "value": value,
            "items": len(chosen),
            **{name: _mean(right[chosen]) for name, right in results.items()},
        }
        for factor, values in items.items()
        if 1 < len(values) <= MAX_FACTOR_VALUES
        for value, chosen in sorted(values.items())
    ]


def _mean(right: Floats) -> float | None:
    return None if np.isnan(right).any() else float(right.mean())


def _cell(example: Example) -> tuple[str, str]:
    return example.language, example.factors.get("kind", "")
