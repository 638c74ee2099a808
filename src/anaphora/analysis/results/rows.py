"""Conversion of results to rows of a table."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Ends = tuple[float, float] | None
"""The two ends of a 95 % interval; None if it could not be computed."""
Entry = str | int | float | None
"""Value of one column in a row."""


def table_row(result: DataclassInstance) -> dict[str, Entry]:
    """Return the fields of a result as the columns of a row, in order.

    A field "interval" becomes the columns "low" and "high", and "x_interval" becomes "x_low" and "x_high".
    """
    row: dict[str, Entry] = {}
    for field in fields(result):
        value = getattr(result, field.name)
        if field.name.endswith("interval"):
            measure = field.name.removesuffix("interval")
            row[f"{measure}low"], row[f"{measure}high"] = value or (None, None)
        else:
            row[field.name] = value
    return row
