"""Settings read from `key=value` on a command line, without Hydra: what a program outside `scripts/` needs."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Sequence
from typing import Any

import yaml

from anaphora.base.errors import UserError, one_line
from anaphora.settings.typed import Setting, construct
from anaphora.settings.variants import VARIANTS


def settings_from(arguments: Sequence[str], schema: type[Setting]) -> Setting:
    """Return checked settings.

    A value is read as YAML, as in sizes=[s,m] or steps=null; a text, or one in a list, is taken as it is typed. A list
    needs no brackets. A slot takes the name of a variant and then its settings, as in data=gap data.path=folder.

    Raises:
        UserError: an argument is not of this form, or a setting is unknown, missing or impossible.
    """
    plain: dict[str, Any] = {}
    for argument in sorted(arguments, key=_depth):  # a variant is chosen before its settings are read
        key, equals, value = argument.partition("=")
        if not equals or not key:
            raise UserError(f"{argument!r} must be a setting and its value, as in seed=3")
        *groups, name = key.split(".")
        group, kind = plain, schema
        for one in groups:
            hint = _hint(kind, one)
            group = group.setdefault(one, {})
            if not isinstance(group, dict):
                raise UserError(f"{argument}: {one} ({group!r}) is no group of settings")
            kind = _chosen(hint, group)
        hint = _hint(kind, name)
        group[name] = {"kind": value} if hint in VARIANTS else _value(argument, value, hint)
    return construct(schema, plain, "")


def _depth(argument: str) -> int:
    return argument.partition("=")[0].count(".")


def listed_settings(schema: type[Any]) -> str:
    """Return what a program does and its settings with their types and defaults, a line each."""
    lines = [schema.__doc__ or "", "", "settings, as name=value:"]
    for one in dataclasses.fields(schema):
        make = one.default_factory
        default = one.default if make is dataclasses.MISSING else make()
        lines.append(f"  {one.name}: {one.type} = {default!r}")
    return "\n".join(lines)


def _hint(kind: Any, name: str) -> Any:
    """Return the type of a setting, None in the place of an unknown one, which `construct` reports by its name."""
    hint = typing.get_type_hints(kind).get(name) if dataclasses.is_dataclass(kind) else None
    inner = [one for one in typing.get_args(hint) if one is not type(None)]
    return inner[0] if type(None) in typing.get_args(hint) and len(inner) == 1 else hint


def _chosen(hint: Any, group: dict[str, Any]) -> Any:
    """Return the settings class of a slot's chosen variant, or that of a group of settings."""
    return VARIANTS[hint].get(str(group.get("kind")), hint) if hint in VARIANTS else hint


def _value(argument: str, value: str, hint: Any) -> Any:
    if hint is str:
        return None if value == "null" else value
    is_list = typing.get_origin(hint) is list
    if is_list and not value.startswith("["):
        value = f"[{value}]"
    try:
        return yaml.load(value, yaml.BaseLoader if is_list and typing.get_args(hint) == (str,) else yaml.SafeLoader)
    except (yaml.YAMLError, ValueError) as error:  # a ValueError if a number or a date is none
        raise UserError(f"{argument}: this value cannot be read ({one_line(error)})") from None
