"""Parsing of `key=value` arguments, for all commands except `train`, `demo` and `study`, which use Hydra.

A value is parsed by the type of its setting, as Hydra would parse it, except that text is taken literally.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import shlex
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from anaphora.base.errors import UserError
from anaphora.settings.training import refuse_without_effect
from anaphora.settings.typed import Setting, construct
from anaphora.settings.variants import VARIANTS

ENTRY = re.compile(r"""\s*(?:"[^"]*"|'[^']*')\s*(?=,|$)|[^,]+""")
"""Pattern of one element of a list: a quoted string, or the text up to the next comma."""
_INSTALLED = Path(__file__).parents[1] / "configs"
CONFIGS = _INSTALLED if _INSTALLED.exists() else Path(__file__).parents[3] / "configs"
"""Folder of the YAML configurations, in the installed package or in the repository."""
OPTIONS_OF_HYDRA = {
    **dict.fromkeys(("--help", "-h", "--hydra-help", "--version", "--resolve", "--run", "-r", "--multirun", "-m"), 0),
    **dict.fromkeys(("--shell-completion", "-sc"), 0),
    **dict.fromkeys(("--cfg", "-c", "--package", "-p", "--config-path", "-cp", "--config-name", "-cn"), 1),
    **dict.fromkeys(("--config-dir", "-cd", "--info", "-i"), 1),
}
"""Hydra's command-line options for `train`, `demo` and `study`, with the number of values that each takes.

`--experimental-rerun` is not among them, because it needs a file that runs do not have.
"""


def settings_from(arguments: Sequence[str], schema: type[Setting]) -> Setting:
    """Parse `key=value` arguments into checked settings.

    Brackets around a list are optional; an element with a comma needs quotes. A list must not be given twice; of any
    other setting, the last value counts. A setting with variants, such as `data`, is given as the name of a variant or
    of a YAML file in `configs`; further arguments set its own settings, as in data=gap data.path=folder.

    Raises:
        UserError: an argument is not of the form key=value, a list is given twice, or a setting is unknown, missing or
            invalid, or has no effect.
    """
    plain: dict[str, Any] = {}
    lists: set[str] = set()
    for slot in dataclasses.fields(typing.cast(Any, schema)):
        if inner_type(schema, slot.name) in VARIANTS and slot.default_factory is not dataclasses.MISSING:
            plain[slot.name] = {"kind": slot.default_factory().kind}
    # Keys with fewer dots come first, so that a variant is chosen before its settings are read.
    for argument in sorted(arguments, key=lambda argument: argument.partition("=")[0].count(".")):
        key, equals, value = argument.partition("=")
        if not equals or not key:
            hint = "; only train, demo and study have options of Hydra" if argument.startswith("-") else ""
            if not hint and "text" in {one.name for one in dataclasses.fields(typing.cast(Any, schema))}:
                hint = f"; write a sentence as text={shlex.quote(argument)}"
            raise UserError(f"{argument!r} must be a setting and its value, as in seed=3{hint}")
        *groups, name = key.split(".")
        group, kind = plain, schema
        for one in groups:
            hint = inner_type(kind, one)
            if hint in VARIANTS and one not in group:
                raise UserError(f"{argument}: choose {one} first, as in {one}=jsonl {key}=...")
            group = group.setdefault(one, {})
            if not isinstance(group, dict):
                raise UserError(f"{argument}: {one} ({group!r}) is no group of settings")
            kind = VARIANTS[hint].get(str(group.get("kind")), hint) if hint in VARIANTS else hint
        read = _value(key, value, kind, name)
        if isinstance(read, list):
            if key in lists:
                raise given_twice(argument, key)
            lists.add(key)
        group[name] = read
    settings = construct(schema, plain, "")

    def value_of(name: str) -> Any:
        value: Any = settings
        for one in name.split("."):
            value = getattr(value, one, None)
        return value

    refuse_without_effect(dict(argument.split("=", 1) for argument in arguments), value_of)
    return settings


def settings_and_options(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Separate command-line arguments into settings such as seed=3, and Hydra's options with their values."""
    others: list[str] = []
    options: list[str] = []
    waiting = list(arguments)
    while waiting:
        argument = waiting.pop(0)
        values = OPTIONS_OF_HYDRA.get(argument.partition("=")[0])
        (others if values is None else options).append(argument)
        is_optional = argument in ("--info", "-i")  # its value is the name of a topic
        if values and "=" not in argument and waiting and not (is_optional and re.search("^-|=", waiting[0])):
            options.append(waiting.pop(0))
    return others, options


def given_twice(argument: str, key: str) -> UserError:
    """Return the error for a list that is given twice; a parser would keep only the last one."""
    return UserError(f"{argument}: {key} is given twice; write one list, as in {key}=[first,second]")


def default_groups(command: str) -> dict[str, str | None]:
    """Return the default option of each config group of train, demo or study; None for a group without a default."""
    groups: dict[str, str | None] = {}
    for entry in yaml.safe_load((CONFIGS / f"{command}.yaml").read_text(encoding="utf-8"))["defaults"]:
        if isinstance(entry, dict):
            chosen = {group.removeprefix("override "): option for group, option in entry.items()}
            groups |= {group: option for group, option in chosen.items() if not group.startswith("hydra/")}
        elif (CONFIGS / f"{entry}.yaml").exists():
            groups |= default_groups(entry)
    return groups


def _value(key: str, value: str, kind: Any, name: str) -> Any:
    """Parse the value of a setting by its type; `kind` is the settings class, and `name` the name of the field.

    The result is None, a string, or a list of strings. If the setting has variants or is a group of settings, `value`
    is the name of a variant or of a YAML file, and the result is a dictionary of settings (`_preset`).
    """
    hint = inner_type(kind, name)
    if value == "null" and hint is not None:
        if type(None) in typing.get_args(_type_hints(kind)[name]):
            return None
        raise UserError(f"{key} cannot be null; leave it out to keep its default")
    if hint in VARIANTS or dataclasses.is_dataclass(hint):
        return _preset(key.replace(".", "/"), value, hint)
    if typing.get_origin(hint) is not list:
        return value
    inside = value[1:-1] if value.startswith("[") and value.endswith("]") else value
    entries = [entry.strip() for entry in ENTRY.findall(inside)] if inside.strip() else []
    return [entry[1:-1] if len(entry) > 1 and entry[0] == entry[-1] in "\"'" else entry for entry in entries]


def _preset(group: str, name: str, hint: Any) -> dict[str, Any]:
    """Return the settings that <group>=<name> selects on the command line, as plain values.

    These are the settings in the file configs/<group>/<name>.yaml. For a group with variants, the result is
    {"kind": name} if `name` is a variant or there is no such file.

    Raises:
        UserError: there is no such file, and the group has no variants.
    """
    path = CONFIGS / group / f"{name}.yaml"
    if name in VARIANTS.get(hint, ()) or not re.fullmatch(r"\w+", name) or not path.exists():
        if hint in VARIANTS:
            return {"kind": name}
        named = ", ".join(sorted(one.stem for one in (CONFIGS / group).glob("*.yaml")))
        if not named:
            inner = dataclasses.fields(hint)[0].name
            raise UserError(
                f"{group}={name}: {group} is a group of settings, set one by one, as in {group}.{inner}=..."
            )
        raise UserError(f"{group}={name}: there is no configs/{group}/{name}.yaml; allowed: {named}")
    written: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    plain: dict[str, Any] = {}
    for base in written.pop("defaults", []):
        plain |= _preset(group, base, hint)
    return plain | written


def inner_type(kind: Any, name: str) -> Any:
    """Return the type of a setting (X for `X | None`); None if the setting is unknown."""
    is_group = dataclasses.is_dataclass(kind)
    hint = _type_hints(kind).get(name) if is_group else None
    inner = [one for one in typing.get_args(hint) if one is not type(None)]
    return inner[0] if type(None) in typing.get_args(hint) and len(inner) == 1 else hint


@functools.cache
def _type_hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)
