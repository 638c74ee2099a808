"""Calculations of attention, defined by matrices in YAML files: built-in examples and a user's own.

Vectors are rows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from omegaconf import DictConfig, OmegaConf

from anaphora.base.checks import one_among
from anaphora.base.errors import UserError, counted
from anaphora.base.language import LANGUAGES, WIDE_RANGES
from anaphora.explain import EXAMPLES
from anaphora.explain.walk import Erratum
from anaphora.settings.run import load_yaml

MAX_TOKENS = 96
"""Maximum number of rows in a matrix of tokens, and of tokens in a text, that a page can show."""
_MAX_FEATURES = 1024
_CHINESE_BLANK = re.compile(f"(?<=[{WIDE_RANGES}]) (?=[{WIDE_RANGES}])")
_MATRICES = ("X", "C", "W_Q", "W_K", "W_V", "W_O", "Q", "K", "V")
_ALLOWED_FIELDS = (
    *_MATRICES,
    *("tokens", "queries", "features", "value_features", "heads", "scale", "row"),
    *("title", "about", "notes", "slips"),
)


@dataclass(frozen=True, eq=False)
class Calculation:
    """Matrices from which attention is computed step by step, with compatible shapes.

    In shapes, Q is the number of queries, T of keys, W of features, H of heads and D of features per head.

    Attributes:
        name: name of the file, without suffix.
        matrices: the given matrices by name, in one of two forms. The first form is "Q", (Q, H * D) queries, "K",
            (T, H * D) keys, and "V", (T, any multiple of H) values. The second form is "X", (Q, W) input, and
            optionally the projections "W_Q", "W_K" and "W_V", with W rows each, and "C", (T, W), a second sequence for
            keys and values (without it, T = Q). Both may have "W_O", the output projection, with a row for each
            feature of the concatenated values of all heads.
        tokens, queries: labels of the T and Q rows.
        features, value_features: labels of the columns of X and of V; empty if columns are numbered.
        scale: factor of the scores; None to divide them by the square root of d_k.
        row: index of the query token whose attention row is highlighted in all steps.
        slips: errata of the published calculation, keyed by name of the step.
        sentence: a sentence for the walk-through of a trained run: `text`, and either `pronoun` and `candidates`, or
            `word`, whose attention row is highlighted; empty if there is no sentence.
    """

    name: str
    title: str
    about: str
    matrices: Mapping[str, NDArray[np.float64]]
    tokens: tuple[str, ...]
    queries: tuple[str, ...]
    features: tuple[str, ...]
    value_features: tuple[str, ...]
    heads: int
    scale: float | None
    row: int
    notes: tuple[str, ...] = ()
    slips: Mapping[str, tuple[Erratum, ...]] = field(default_factory=dict)
    sentence: Mapping[str, Any] = field(default_factory=dict)


def load_example(name: str, language: str) -> Calculation:
    """Load the built-in calculation with this name, with its texts in one language."""
    assert name in EXAMPLES
    return _load(Path(__file__).with_name("examples") / f"{name}.yaml", language, (*_ALLOWED_FIELDS, "sentence"))


def load_calculation(path: Path, language: str) -> Calculation:
    """Load a calculation from a YAML file, with its texts in one language.

    Each title, note or label in the file is a string, or a mapping from languages to strings. Without `W_Q`, the rows
    of X are the queries. Without `W_K`, the queries are also the keys, which is not allowed with a second sequence C.
    Without `W_V`, the values are the rows of C if there is a C, and the rows of X otherwise.

    Raises:
        UserError: the file is missing or not YAML, or a field is unknown, missing or invalid, such as a matrix of the
            wrong shape; the message names the file and the field.
    """
    return _load(path, language, _ALLOWED_FIELDS)


def _load(path: Path, language: str, allowed: tuple[str, ...]) -> Calculation:
    loaded = load_yaml(path, "there is no such file")
    plain = OmegaConf.to_container(loaded) if isinstance(loaded, DictConfig) else None
    try:
        if not isinstance(plain, Mapping):
            raise UserError("must hold matrices by name, for instance X: [[1, 0], [0, 1]]")
        for key in plain:
            if key not in allowed:
                raise UserError(f"unknown field {key!s}; allowed: {', '.join(allowed)}")
        return _checked(path.stem, {str(key): _in_language(value, language) for key, value in plain.items()})
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def _in_language(value: Any, language: str) -> Any:
    """Replace each mapping {en: ..., zh: ...}, at any depth of a value, by its text in the given language."""
    if isinstance(value, Mapping):
        if value and set(value) <= set(LANGUAGES):
            return _in_language(value.get(language, next(iter(value.values()))), language)
        return {str(key): _in_language(entry, language) for key, entry in value.items()}
    return [_in_language(entry, language) for entry in value] if isinstance(value, list) else value


def _checked(name: str, plain: dict[str, Any]) -> Calculation:
    matrices = {key: _matrix(key, plain[key]) for key in _MATRICES if plain.get(key) is not None}
    given = {key: matrix for key, matrix in matrices.items() if key in ("Q", "K", "V")}
    projections = {key: matrix for key, matrix in matrices.items() if key in ("W_Q", "W_K", "W_V")}
    x = matrices.get("X")
    if (x is None) == (not given):
        raise UserError("give either X (W_Q, W_K and W_V are optional) or all of Q, K and V")
    second = matrices.get("C")
    if x is not None:
        _check_projections(x, projections)
        if second is not None:
            _check_second(x, second, projections)
        count, features, query_count = len(x if second is None else second), x.shape[1], len(x)
        query, value = projections.get("W_Q", x), projections.get("W_V", x)
    else:
        if second is not None:
            raise UserError("C is the sequence that X reads: give X, not Q, K and V")
        if projections:
            raise UserError(f"{', '.join(projections)}: projections need X instead of Q, K and V")
        _check_given(given)
        (query_count, _), (count, features) = given["Q"].shape, given["V"].shape
        query, value = given["Q"], given["V"]
    heads = _heads(plain.get("heads", 1), query, value)
    if "W_O" in matrices and len(matrices["W_O"]) != value.shape[1]:
        raise UserError(
            f"W_O is {_shape(matrices['W_O'])}; expected {counted(value.shape[1], 'row')}, one for each feature of "
            "the values"
        )
    scale = plain.get("scale", True)
    if not isinstance(scale, bool):
        raise UserError(f"scale ({scale!r}) must be true or false")
    tokens = _labels("tokens", plain, count) or tuple(f"x{number + 1}" for number in range(count))
    queries = _labels("queries", plain, query_count) or (
        tokens if query_count == count and second is None else tuple(f"q{number + 1}" for number in range(query_count))
    )
    return Calculation(
        name=name,
        title=_text("title", plain.get("title", name)),
        about=_text("about", plain.get("about", "")),
        matrices=matrices,
        tokens=tokens,
        queries=queries,
        features=_labels("features", plain, features),
        value_features=_labels("value_features", plain, value.shape[1]),
        heads=heads,
        scale=None if scale else 1.0,
        row=row_index(plain.get("row", 0), queries),
        notes=_notes(plain.get("notes")),
        slips=_errata(plain.get("slips") or []),
        sentence=plain.get("sentence") or {},
    )


def _notes(notes: Any) -> tuple[str, ...]:
    if notes is None:
        return ()
    if not isinstance(notes, list):
        raise UserError(f"notes ({notes!r}) must be a list of texts")
    return tuple(_text("notes", note) for note in notes)


def row_index(name: Any, labels: tuple[str, ...]) -> int:
    """Return the index of the row with the label or index `name`; the label may be in upper or lower case.

    Raises:
        UserError: there is no such row.
    """
    text = str(name).strip()
    lowered = [label.lower() for label in labels]
    if text.lower() in lowered:
        return lowered.index(text.lower())
    if text.isdecimal() and int(text) < len(labels):
        return int(text)
    raise UserError(f"row ({text!r}) must be {one_among(labels)}, or a number from 0 to {len(labels) - 1}")


def _matrix(name: str, rows: Any) -> NDArray[np.float64]:
    if not isinstance(rows, list) or not rows or not all(isinstance(row, list) and row for row in rows):
        raise UserError(f"{name} must be a list of rows, each a list of numbers, for instance [[1, 0], [0, 1]]")
    if len(rows) > (MAX_TOKENS if not name.startswith("W") else _MAX_FEATURES) or len(rows[0]) > _MAX_FEATURES:
        raise UserError(
            f"{name} is {len(rows)} x {len(rows[0])}; at most {MAX_TOKENS} tokens and {_MAX_FEATURES} features fit"
        )
    for number, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise UserError(
                f"{name}: row {number} has {counted(len(row), 'number')}; expected {len(rows[0])}, as in row 0"
            )
        for column, value in enumerate(row):
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise UserError(f"{name}: row {number}, column {column} is {value!r}; expected a finite number")
            if abs(value) > 1e100:
                raise UserError(f"{name}: row {number}, column {column} is {value!r}; expected at most 1e100")
    return np.array(rows, dtype=np.float64)


def _check_projections(x: NDArray[np.float64], projections: dict[str, NDArray[np.float64]]) -> None:
    for name, matrix in projections.items():
        if len(matrix) != x.shape[1]:
            raise UserError(
                f"{name} is {_shape(matrix)}; expected {counted(x.shape[1], 'row')}, one for each column of X "
                f"({_shape(x)})"
            )
    query = projections.get("W_Q", x)
    key = projections.get("W_K", query)
    if query.shape[1] != key.shape[1]:
        compared = "W_Q" if "W_Q" in projections else "X"
        raise UserError(
            f"W_K is {_shape(key)}; expected {counted(query.shape[1], 'column')}, as {compared} ({_shape(query)}) has: "
            "queries and keys must have the same length to be compared"
        )


def _check_second(
    x: NDArray[np.float64], second: NDArray[np.float64], projections: dict[str, NDArray[np.float64]]
) -> None:
    if second.shape[1] != x.shape[1]:
        raise UserError(f"C is {_shape(second)}; expected {counted(x.shape[1], 'column')}, as X ({_shape(x)}) has")
    if "W_K" not in projections:
        raise UserError("W_K is missing; keys are made from C, so the queries cannot be used as keys")


def _check_given(given: dict[str, NDArray[np.float64]]) -> None:
    for name in ("Q", "K", "V"):
        if name not in given:
            raise UserError(f"{name} is missing; give all of Q, K and V, or X")
    query, key, value = given["Q"], given["K"], given["V"]
    if key.shape[1] != query.shape[1]:
        raise UserError(f"K is {_shape(key)}; expected {counted(query.shape[1], 'column')}, as Q ({_shape(query)}) has")
    if len(value) != len(key):
        raise UserError(
            f"V is {_shape(value)}; expected {counted(len(key), 'row')}, one for each row of K ({_shape(key)})"
        )


def _heads(heads: Any, query: NDArray[np.float64], value: NDArray[np.float64]) -> int:
    if isinstance(heads, bool) or not isinstance(heads, int) or heads < 1:
        raise UserError(f"heads ({heads!r}) must be a whole number, at least 1")
    for name, matrix in (("queries", query), ("values", value)):
        if matrix.shape[1] % heads:
            raise UserError(f"heads ({heads}) must divide the {matrix.shape[1]} features of the {name}")
    return heads


def _labels(name: str, plain: Mapping[str, Any], count: int) -> tuple[str, ...]:
    labels = plain.get(name)
    if labels is None:
        return ()
    if not isinstance(labels, list) or len(labels) != count:
        value = f"{len(labels)} entries" if isinstance(labels, list) else repr(labels)
        raise UserError(f"{name} ({value}) must be a list of {counted(count, 'label')}")
    return tuple(str(label) for label in labels)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise UserError(f"{name} ({value!r}) must be text, or text by language as {{en: ..., zh: ...}}")
    # YAML folds a line break into a space, which Chinese text does not have.
    return _CHINESE_BLANK.sub("", " ".join(value.split()))


def _errata(listed: Any) -> dict[str, tuple[Erratum, ...]]:
    errata: dict[str, tuple[Erratum, ...]] = {}
    if not isinstance(listed, list):
        raise UserError(f"slips ({listed!r}) must be a list of step, published and right")
    for entry in listed:
        if not isinstance(entry, Mapping) or set(entry) != {"step", "published", "right"}:
            raise UserError(f"slips: {entry!r} must hold step, published and right")
        slip = Erratum(_text("published", entry["published"]), _text("right", entry["right"]))
        errata[str(entry["step"])] = (*errata.get(str(entry["step"]), ()), slip)
    return errata


def _shape(matrix: NDArray[np.float64]) -> str:
    return " x ".join(str(size) for size in matrix.shape)
