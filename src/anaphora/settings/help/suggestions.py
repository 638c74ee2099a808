"""Suggestions for unknown settings: the full key of an abbreviated one, or the nearest name of a misspelt one."""

from __future__ import annotations

import dataclasses
import difflib
import re
import shlex
import typing
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from anaphora.base.errors import UserError
from anaphora.settings.arguments import inner_type
from anaphora.settings.variants import VARIANTS

OPTIONS_OF_HYDRA = {
    **dict.fromkeys(("--help", "-h", "--hydra-help", "--version", "--resolve", "--run", "-r", "--multirun", "-m"), 0),
    **dict.fromkeys(("--shell-completion", "-sc"), 0),
    **dict.fromkeys(("--cfg", "-c", "--package", "-p", "--config-path", "-cp", "--config-name", "-cn"), 1),
    **dict.fromkeys(("--config-dir", "-cd", "--experimental-rerun", "--info", "-i"), 1),
}
"""Hydra's command-line options for `train`, `demo` and `study`, with the number of values that each takes."""
_CLOSE = 0.65
_MOST_NAMED = 4


def check_arguments(arguments: Sequence[str], schema: type[Any], groups: Collection[str] | None = None) -> None:
    """Check that every argument is a setting.

    Invalid arguments without a suggestion are left to the parser.

    Args:
        arguments: command-line arguments after the command's name.
        schema: settings class of the command.
        groups: config groups; None if Hydra does not compose the settings.

    Raises:
        UserError: an argument is an option or a word (`--steps 10`, `steps 10`), or its key resembles that of a
            setting; the message has the correct syntax or key.
    """
    keys = list(dict.fromkeys([*setting_keys(schema), *(groups or ())]))
    waiting = list(arguments)
    while waiting:
        argument = waiting.pop(0)
        name = argument.partition("=")[0]
        if groups is not None and name in OPTIONS_OF_HYDRA:
            del waiting[: 0 if "=" in argument else OPTIONS_OF_HYDRA[name]]
        elif re.match(r"-*[^\W\d]", argument) and ("=" not in argument or argument.startswith("-")):
            _check_option(argument, waiting[:1], keys, is_composed=groups is not None)
        elif not argument.startswith(("+", "hydra")) and "@" not in name:
            _check_key(name.lstrip("~"), keys)


def check_model_name(schema: type[Any], arguments: Sequence[str]) -> None:
    """Check that `model=`, the group for the parts of an encoder, is not used to name a model.

    Raises:
        UserError: a command that opens any model gets an argument `model=`.
    """
    for argument in arguments:
        if argument.startswith("model=") and getattr(schema, "any_model", False):
            name = argument.removeprefix("model=")
            given = f"run={name}" if hasattr(schema, "run") else f"'runs=[{name}]'"
            raise UserError(f"{argument}: this command takes a model as {given}; model= names the parts of an encoder")


def setting_keys(schema: type[Any], before: str = "") -> Iterator[str]:
    """Yield all keys of a settings class: groups, slots (`model/position`) and the settings of each variant."""
    for one in dataclasses.fields(schema):
        hint, key = inner_type(schema, one.name), f"{before}{one.name}"
        if hint in VARIANTS:
            yield key.replace(".", "/")
            variants = [setting_keys(variant, f"{key}.") for variant in VARIANTS[hint].values()]
            yield from dict.fromkeys(inner for keys in variants for inner in keys)
            continue
        yield key
        if dataclasses.is_dataclass(hint):
            yield from setting_keys(typing.cast(type[Any], hint), f"{key}.")


def meant_keys(typed: str, keys: Sequence[str]) -> list[str]:
    """Return the keys that a user may have meant: those that end with `typed`, else those with a similar name."""
    typed = typed.replace("-", "_")
    last = _last(typed)
    by_last: dict[str, list[str]] = {}
    for key in keys:
        by_last.setdefault(_last(key), []).append(key)
    ending = [key for key in by_last.get(last, ()) if re.search(rf"(^|[./]){re.escape(typed)}$", key)]
    if typed in ending:
        return [typed]
    whole = nearest(typed, keys)
    part = nearest(last, by_last)
    return ending or by_last.get(last) or ([whole] if whole else by_last[part] if part else [])


def nearest(name: str, names: Collection[str]) -> str | None:
    """Return the most similar name; None if no name is similar enough."""
    close = difflib.get_close_matches(name, names, n=1, cutoff=_CLOSE)
    return close[0] if close else None


def _check_option(option: str, following: Sequence[str], keys: Sequence[str], is_composed: bool) -> None:
    """Raise a `UserError` with suggestions for `--steps 10`, `--steps=10`, `--steps`, `steps 10` or `steps`."""
    name, equals, value = option.lstrip("-").partition("=")
    has_value = following and not following[0].startswith("--") and following[0].partition("=")[0] not in keys
    if not equals and has_value:
        value, option = following[0], f"{option} {following[0]}"
    meant = meant_keys(name, keys)
    if not meant and is_composed and option.startswith("-"):
        raise UserError(f"{option}: there is no such option; write settings as name=value (--help lists them)")
    if not meant:
        return
    is_whole = _last(meant[0]) == _last(name.replace("-", "_"))
    written = _listed([shlex.quote(f"{key}={value}") if value else f"{key}=..." for key in meant])
    raise UserError(f"{option}: write {written}" if is_whole else f"{option}: did you mean {written}?")


def _check_key(key: str, keys: Sequence[str]) -> None:
    group = key
    while group and group not in keys:  # below a setting that is a dictionary every key is allowed
        group = group.rpartition(".")[0]
    if group in keys and (group == key or not any(other.startswith(f"{group}.") for other in keys)):
        return
    if meant := meant_keys(key, keys):
        raise UserError(f"unknown setting {key}; did you mean {_listed(meant)}?")


def _last(key: str) -> str:
    return re.split(r"[./]", key)[-1]


def _listed(names: Sequence[str]) -> str:
    *others, last = names[:_MOST_NAMED]
    return f"{', '.join(others)} or {last}" if others else last
