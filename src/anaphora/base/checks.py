"""Checks of settings and Python arguments.

A failed check raises a `UserError` whose message names the setting, the value and what is allowed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

from anaphora.base.errors import UserError


def between(name: str, value: float | None, low: float, high: float) -> None:
    """Check that a number, unless it is None, is in [low, high)."""
    if value is not None and not low <= value < high:
        raise UserError(f"{name} ({value}) must be at least {low:g} and below {high:g}")


def at_least(name: str, value: float | None, low: float) -> None:
    """Check that a number, unless it is None, is at least `low`."""
    if value is not None and value < low:
        raise UserError(f"{name} ({value}) must be at least {low:g}")


def whole_number(name: str, value: object) -> int:
    """Check that an argument is an integer and not a bool, and return it as an int."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise UserError(f"{name} ({value!r}) must be a whole number")
    return int(value)


def plain_list(name: str, value: object) -> list[Any]:
    """Convert an iterable to a list; arrays and tensors, even in nested lists, become lists of Python numbers.

    Raises:
        UserError: the value is a string, a mapping, an array or tensor without dimensions, or not iterable.
    """
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise UserError(f"{name} ({repr(value)[:80]}) must be a list")
    try:
        return [_plain(one) for one in value]
    except (TypeError, RuntimeError):  # an array without dimensions
        raise UserError(f"{name} ({repr(value)[:80]}) must be a list") from None


def _plain(value: Any) -> Any:
    """Convert arrays, even inside nested lists, to lists of numbers; leave other values unchanged."""
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value.tolist() if hasattr(value, "tolist") else value


def one_text(name: str, value: object) -> str:
    """Check that an argument is a non-blank string, and return it."""
    if not isinstance(value, str):
        raise UserError(f"{name} ({value!r}) must be a string: one text at a time")
    if not value.strip():
        raise UserError(f"{name}: it is empty")
    return value


def file_name(name: str, value: object) -> Path:
    """Check that an argument is a path, and return it as a Path."""
    if not isinstance(value, str | Path):
        raise UserError(f"{name} ({value!r}) must be a path, as a string or a Path")
    return Path(value)


def file_ending(name: str, path: str | Path, *endings: str) -> None:
    """Check that a file name has one of the allowed suffixes."""
    if Path(path).suffix not in endings:
        raise UserError(f"{name} ({path}) must end in {one_among(endings)}")


def thread_count(name: str, value: int | None) -> None:
    """Check that a number of threads, unless it is None, is 1 to 1024; many thousands of them crash the process."""
    between(name, value, 1, 1025)


def one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Check that a value is one of the allowed strings."""
    if not isinstance(value, str) or value not in allowed:
        raise UserError(f"{name} ({value!r}) must be {one_among(allowed)}")


def one_among(allowed: Sequence[str]) -> str:
    """Return the allowed values as a phrase for an error message: "one of .csv, .json", or ".csv" for one value."""
    return f"one of {', '.join(allowed)}" if len(allowed) > 1 else ", ".join(allowed)


PAGE_ENDINGS = (".html", ".htm")
FIGURE_FORMATS = ("png", "svg", "pdf")


def figure_formats(names: Sequence[str]) -> None:
    """Check that all names are supported file formats of figures."""
    for name in names:
        one_of("formats", name, FIGURE_FORMATS)


LONGEST_NAME = 200  # maximum number of bytes in a directory name; every common file system allows more


def directory_name(name: str, value: str) -> None:
    """Check that a name is a plain directory name: neither empty nor a path, neither hidden nor too long."""
    if not value or value.startswith(".") or set(value) & set("/\\\0") or len(value.encode()) > LONGEST_NAME:
        shown = value if len(value) <= 60 else f"{value[:60]}..."
        raise UserError(
            f"{name} ({shown!r}) must be the name of one directory: at most {LONGEST_NAME} bytes, no / or \\, "
            "no dot at the start"
        )


def shape_problem(content: Any, shape: Any, place: str = "") -> str:
    """Describe the first difference between parsed JSON and a shape; return "" if the JSON has the shape.

    A shape is a type (`float` allows any number, `object` anything), None, a tuple of alternative shapes, a list with
    the shape of all entries, `{str: shape}` for an object with arbitrary keys, or an object with the shapes of required
    keys ("key?" is optional); further keys are allowed.
    """
    if isinstance(shape, tuple):
        problems = [shape_problem(content, each, place) for each in shape]
        return "" if "" in problems else problems[0]
    where, inside = (f"{place}: ", f"{place}.") if place else ("", "")
    if isinstance(shape, list):
        if not isinstance(content, list):
            return f"{where}{content!r:.60} is not a list"
        parts = [(str(number), each, shape[0]) for number, each in enumerate(content)]
    elif isinstance(shape, dict):
        if not isinstance(content, dict):
            return f"{where}{content!r:.60} is not an object"
        parts = []
        for name in content if str in shape else shape:
            key = str(name).removesuffix("?")
            if key in content:
                parts.append((key, content[key], shape[str if str in shape else name]))
            elif not name.endswith("?"):
                return f"{where}{key}: the key is missing"
    else:
        allowed: Any = {float: (int, float), None: type(None)}.get(shape, shape)
        wrong_bool = isinstance(content, bool) and shape in (int, float)
        expected = "null" if shape is None else _JSON_NAMES.get(shape, "")
        return "" if isinstance(content, allowed) and not wrong_bool else f"{where}{content!r:.60} is not {expected}"
    return next((it for name, value, part in parts if (it := shape_problem(value, part, inside + name))), "")


_JSON_NAMES = {int: "a whole number", float: "a number", str: "a text", bool: "true or false", dict: "an object"}
