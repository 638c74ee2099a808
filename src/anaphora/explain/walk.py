"""A walk-through as plain data: steps, each a line of matrices and signs.

Q queries, T tokens attended to. Nothing here computes; the numbers come from the encoder's own functions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anaphora.base.errors import UserError


@dataclass(frozen=True, eq=False)
class Matrix:
    """A matrix with its name and labelled axes.

    Attributes:
        name: as formulas write it; text after an underscore is a subscript.
        values: (R, C), or (Q, R, C) where there is one matrix for each row that may be followed.
        rows, columns: R and C labels.
        axes: what rows and columns count, "tokens" or "features" or "one"; equal axes are drawn at equal length.
        followed: whether its rows are those of the tokens that attend, so that one of them is the current row.
        weights: whether its values are weights from 0 to 1.
    """

    name: str
    values: NDArray[np.float64]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    axes: tuple[str, str]
    followed: bool = True
    weights: bool = False

    def of(self, row: int) -> NDArray[np.float64]:
        """Return (R, C): the matrix, or the one of the current row."""
        chosen: NDArray[np.float64] = self.values[row] if self.values.ndim == 3 else self.values
        return chosen

    def plain(self) -> dict[str, Any]:
        """Return the matrix as lists, strings and numbers."""
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
    """A mistake in a published calculation: the printed value and the correct one."""

    published: str
    right: str


@dataclass(frozen=True)
class Step:
    """A step: what is done, why, and its numbers.

    Attributes:
        name: of the step, the same in every language.
        parts: matrices and signs in reading order; "×" is the product of matrices, other signs act cell by cell.
        slips: where published arithmetic differs here.
    """

    name: str
    title: str
    text: str
    parts: tuple[Matrix | str, ...]
    slips: tuple[Erratum, ...] = ()

    @property
    def result(self) -> Matrix:
        """Return the last matrix of the step."""
        last = self.parts[-1]
        assert isinstance(last, Matrix)
        return last

    def matrix(self, name: str) -> Matrix:
        """Return the matrix of a name."""
        return next(part for part in self.parts if isinstance(part, Matrix) and part.name == name)

    def plain(self) -> dict[str, Any]:
        """Return the step as lists, strings and numbers."""
        return {
            "name": self.name,
            "title": self.title,
            "text": self.text,
            "parts": [part if isinstance(part, str) else part.plain() for part in self.parts],
            "slips": [vars(slip) for slip in self.slips],
        }


@dataclass(frozen=True)
class Walkthrough:
    """A whole walk-through.

    Attributes:
        name: for files.
        language: of the explanation.
        queries: labels of the rows that may be followed, those of the words or tokens that attend.
        row: the current row, the one that the steps follow.
        notes: what else a reader should know.
        units: words and candidates, each with its label and its columns of the weights; empty where each column is one.
    """

    name: str
    title: str
    about: str
    language: str
    queries: tuple[str, ...]
    row: int
    steps: tuple[Step, ...]
    notes: tuple[str, ...] = field(default=())
    units: tuple[tuple[str, tuple[int, ...]], ...] = field(default=())

    def step(self, name: str) -> Step:
        """Return the step of a name.

        Raises:
            UserError: there is none.
        """
        for step in self.steps:
            if step.name == name:
                return step
        raise UserError(f"step ({name!r}) must be one of {', '.join(step.name for step in self.steps)}")

    def plain(self) -> dict[str, Any]:
        """Return the walk-through as lists, strings and numbers, ready for JSON."""
        return {
            "name": self.name,
            "title": self.title,
            "about": self.about,
            "language": self.language,
            "queries": list(self.queries),
            "row": self.row,
            "notes": list(self.notes),
            "steps": [step.plain() for step in self.steps],
        }
