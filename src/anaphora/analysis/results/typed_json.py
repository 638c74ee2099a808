"""Conversion of frozen dataclasses to JSON and back, and to rows of a table.

Fields may be numbers, strings, booleans, intervals, other dataclasses, tuples and dictionaries of these, or None.
Fields with their default value are left out. Numbers keep all digits.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from anaphora.base.errors import UserError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")


class Interval(NamedTuple):
    """Ends of a 95 % bootstrap interval; a list of two numbers in JSON."""

    low: float
    high: float


Ends = tuple[float, float] | None
"""Ends of a 95 % interval; None if it could not be computed."""
Entry = str | int | float | None
"""Value of one column in a row."""

OTHER_KEYS = {"other_keys": True}
"""Metadata of the dataclass field that collects all keys of a JSON object without a field of their own."""


def from_json(kind: type[T], content: Any, path: str = "") -> T:
    """Build an instance of a dataclass from parsed JSON, the output of `to_json`.

    Raises:
        UserError: a key is missing or unknown, or its value has the wrong type; the message names the key, with the
            dotted `path` of `content` in the file.
    """
    if not isinstance(content, Mapping):
        raise _wrong(path, content, "an object")
    fields, rest = fields_of(kind)
    hints = hints_of(kind)
    unknown = [name for name in content if name not in fields]
    values: dict[str, Any] = {}
    for name, field in fields.items():
        if name in content:
            values[name] = _read(hints[name], content[name], _joined(path, name))
        elif not has_default(field):
            raise UserError(f"{_joined(path, name)}: the key is missing")
    if rest is not None:
        values[rest] = _read(hints[rest], {name: content[name] for name in unknown}, path)
    elif unknown:
        raise UserError(f"{_joined(path, unknown[0])}: there is no such key; allowed: {', '.join(fields)}")
    return kind(**values)


def to_json(value: Any) -> Any:
    """Return a dataclass as plain dictionaries, lists, numbers and strings, without fields at their default."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields, rest = fields_of(type(value))
        plain = {
            name: to_json(getattr(value, name))
            for name, field in fields.items()
            if not (has_default(field) and getattr(value, name) == _default(field))
        }
        return plain | (to_json(getattr(value, rest)) if rest else {})
    if isinstance(value, Mapping):
        return {name: to_json(one) for name, one in value.items()}
    if isinstance(value, tuple):
        return [to_json(one) for one in value]
    return value


def table_row(result: DataclassInstance) -> dict[str, Entry]:
    """Return the fields of a result as a row of a table.

    A field "interval" becomes the columns "low" and "high", and "x_interval" becomes "x_low" and "x_high".
    """
    row: dict[str, Entry] = {}
    for field in dataclasses.fields(result):
        value = getattr(result, field.name)
        if field.name.endswith("interval"):
            measure = field.name.removesuffix("interval")
            row[f"{measure}low"], row[f"{measure}high"] = value or (None, None)
        else:
            row[field.name] = value
    return row


def _read(hint: Any, value: Any, path: str) -> Any:
    options = options_of(hint)
    if value is None:
        if type(None) in options:
            return None
        raise _wrong(path, value, _name(hint))
    hint = next(option for option in options if option is not type(None))
    origin, inner = get_origin(hint), get_args(hint)
    if dataclasses.is_dataclass(hint):
        assert isinstance(hint, type)
        return from_json(hint, value, path)
    if hint is Interval:
        if not isinstance(value, list | tuple) or len(value) != 2:
            raise _wrong(path, value, "two numbers")
        return Interval(*(_read(float, end, f"{path}.{number}") for number, end in enumerate(value)))
    if origin is dict:
        if not isinstance(value, Mapping):
            raise _wrong(path, value, "an object")
        return {str(name): _read(inner[1], one, _joined(path, str(name))) for name, one in value.items()}
    if origin is tuple:
        many = inner[-1] is Ellipsis
        if not isinstance(value, list | tuple) or (not many and len(value) != len(inner)):
            raise _wrong(path, value, "a list" if many else f"a list of {len(inner)}")
        kinds = [inner[0]] * len(value) if many else inner
        return tuple(_read(kinds[number], one, f"{path}.{number}") for number, one in enumerate(value))
    allowed = (int, float) if hint is float else hint
    # A bool is an int in Python, but not in JSON.
    if not isinstance(value, allowed) or (isinstance(value, bool) and hint is not bool):
        raise _wrong(path, value, _name(hint))
    return value


PLAIN_TYPES = {int: "integer", float: "number", str: "string", bool: "boolean"}


_HINTS: dict[type[Any], Mapping[str, Any]] = {}


def hints_of(kind: type[Any]) -> Mapping[str, Any]:
    """Return the types of a dataclass's fields, keyed by name, cached because `get_type_hints` is slow."""
    if kind not in _HINTS:
        _HINTS[kind] = get_type_hints(kind)
    return _HINTS[kind]


def fields_of(kind: type[Any]) -> tuple[dict[str, dataclasses.Field[Any]], str | None]:
    """Return the fields of a dataclass that have a JSON key, and the name of the field that collects all other keys.

    The collecting field has the metadata `OTHER_KEYS`; the name is None if there is no such field.
    """
    every = dataclasses.fields(kind)
    rest = next((field.name for field in every if field.metadata == OTHER_KEYS), None)
    return {field.name: field for field in every if field.name != rest}, rest


def has_default(field: dataclasses.Field[Any]) -> bool:
    """Return whether a field has a default, so that its key may be missing."""
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def options_of(hint: Any) -> tuple[Any, ...]:
    """Return the types that a type hint allows, for example `int` and `None` for `int | None`."""
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _name(hint: Any) -> str:
    return PLAIN_TYPES.get(hint) or str(getattr(hint, "__name__", hint))


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _wrong(path: str, value: Any, expected: str) -> UserError:
    return UserError(f"{path or 'the file'}: {value!r:.60} is not {expected}")
