"""Data classes of a walk-through of attention: steps, each with a formula of matrices and operators.

The attention map has a row for each query token; one of them, the current row, is highlighted in all steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anaphora.base.checks import one_among
from anaphora.base.errors import UserError


@dataclass(frozen=True, eq=False)
class Matrix:
    """Matrix in a step of a walk-through, with a name and labelled axes.

    Attributes:
        name: name in formulas; text after an underscore is a subscript.
        values: (rows, columns); or (queries, rows, columns) if there is a matrix for each query token.
        rows, columns: labels of the rows and of the columns.
        axes: what rows and columns stand for: "tokens", "features" or "one"; equal axes are drawn at the same length.
        followed: whether the rows stand for query tokens, so that the current row is highlighted.
        weights: whether the values are attention weights, from 0 to 1.
    """

    name: str
    values: NDArray[np.float64]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    axes: tuple[str, str]
    followed: bool = True
    weights: bool = False

    def of(self, row: int) -> NDArray[np.float64]:
        """Return the values, (rows, columns); if each query token has its own matrix, return that of token `row`."""
        chosen: NDArray[np.float64] = self.values[row] if self.values.ndim == 3 else self.values
        return chosen

    def plain(self) -> dict[str, Any]:
        """Return the matrix as a JSON-serialisable dictionary."""
        return {
            "matrix": self.name,
            "values": self.values.tolist(),
            "rows": list(self.rows),
            "columns": list(self.columns),
            "axes": list(self.axes),
            "followed": self.followed,
            "weights": self.weights,
        }


@dataclass(frozen=True)
class Erratum:
    """Published value that is wrong, and the right value."""

    published: str
    right: str


@dataclass(frozen=True)
class Step:
    """Step of a walk-through, with an explanation and a formula.

    Attributes:
        name: name of the step, the same in every language.
        parts: matrices and operators in reading order. The sign "×" is the matrix product, and "|" is concatenation;
            other signs are elementwise operators. Words such as "softmax" are names of functions.
        slips: errata of the published calculation in this step.
    """

    name: str
    title: str
    text: str
    parts: tuple[Matrix | str, ...]
    slips: tuple[Erratum, ...] = ()

    @property
    def result(self) -> Matrix:
        """Return the last matrix of the step's formula, which is its result."""
        last = self.parts[-1]
        assert isinstance(last, Matrix)
        return last

    def matrix(self, name: str) -> Matrix:
        """Return the step's first matrix with the given name; raise UserError if there is none."""
        matrices = [part for part in self.parts if isinstance(part, Matrix)]
        for matrix in matrices:
            if matrix.name == name:
                return matrix
        raise UserError(f"matrix ({name!r}) must be {one_among([matrix.name for matrix in matrices])}")

    def plain(self) -> dict[str, Any]:
        """Return the step as a JSON-serialisable dictionary."""
        parts = [part if isinstance(part, str) else part.plain() for part in self.parts]
        return {**vars(self), "parts": parts, "slips": [vars(slip) for slip in self.slips]}


class Steps(list[Step]):
    """List of the steps of a walk-through, in order."""

    def add(self, name: str, title: str, text: str, parts: tuple[Matrix | str, ...]) -> Matrix:
        """Add a step, and return its last matrix, which is its result."""
        self.append(Step(name, title, text, parts))
        return self[-1].result


@dataclass(frozen=True)
class Walkthrough:
    """Walk-through of an attention computation, step by step.

    Attributes:
        name: name of the walk-through, used in file names.
        title, about: heading and introduction.
        queries: labels of the query tokens, each of which has a row in the attention map.
        row: index of the current row, which is highlighted in all steps.
        units: label of each word or candidate, and indices of its columns in the map; empty if each column is a unit.
        word_rows: word of the current row and indices of all its rows, which a summary averages; None for one row.
        step_notes: notes about the steps, which a summary leaves out.
        is_read_out: whether the model's answer is read from the current row.
    """

    name: str
    title: str
    about: str
    language: str
    queries: tuple[str, ...]
    row: int
    steps: tuple[Step, ...]
    notes: tuple[str, ...] = ()
    units: tuple[tuple[str, tuple[int, ...]], ...] = ()
    word_rows: tuple[str, tuple[int, ...]] | None = None
    step_notes: tuple[str, ...] = ()
    is_read_out: bool = False

    def step(self, name: str) -> Step:
        """Return the step with the given name; raise UserError if there is none."""
        for step in self.steps:
            if step.name == name:
                return step
        raise UserError(f"step ({name!r}) must be {one_among([step.name for step in self.steps])}")

    def plain(self) -> dict[str, Any]:
        """Return the walk-through as a JSON-serialisable dictionary, without fields that only a summary needs."""
        return {
            "name": self.name,
            "title": self.title,
            "about": self.about,
            "language": self.language,
            "queries": list(self.queries),
            "row": self.row,
            "notes": [*self.notes, *self.step_notes],
            "steps": [step.plain() for step in self.steps],
        }
