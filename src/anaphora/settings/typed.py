"""Construction and checks of typed settings from nested dictionaries, without slow imports such as torch or Hydra.

If a part of a recipe has several variants (for example of the position encoding, the corpus or the prediction head),
`kind` selects the settings class. `variants.register` adds a variant from outside the package.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import os
import re
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from omegaconf import MISSING, DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from anaphora.base.errors import UserError, one_line, pip_install, shortened
from anaphora.settings.variants import SLOTS, VARIANTS

Setting = TypeVar("Setting")

PATHS = (
    *("run", "runs", "weights", "start", "resume", "output", "matrices", "study_folder"),
    *("data.path", "data.also", "data.without", "data.seen_in"),
    *("resume_data.path", "resume_data.also", "resume_data.without"),
)
"""Settings that hold a path or a list of paths."""
_NO_TEXT = re.compile("[\0\ud800-\udfff]")  # lone surrogates stand for an argument's bytes that are not UTF-8
_CLUSTER_PLUGIN = re.compile(
    r"Could not find '(hydra/(?:launcher|sweeper))/(joblib|optuna|submitit_local|submitit_slurm)'"
)
_BOOL = "bool (true or false)"
_OF_OMEGACONF = {"to Float": "float", "to Integer": "int", "bool": _BOOL, "to string": "str"}
"""Types by their names in OmegaConf's messages."""
_WRONG_TYPE = re.compile(
    rf"Error merging override ([^ =]+)=(.*) \(.*(?:could not be converted|is not a valid|Cannot convert '\w+') "
    rf"({'|'.join(_OF_OMEGACONF)})\b.*\)"
)
_NUMBER_OF_PROCESSES = re.compile(r"\btrainer\.(devices|nodes|num_nodes|strategy)\b")


def resolve(composed: DictConfig, as_a: type[Setting]) -> Setting:
    """Convert a configuration composed by Hydra to an instance of a settings class, with the checks of `construct`.

    Raises:
        UserError: an interpolation cannot be resolved; also the errors of `construct`.
    """
    try:
        plain = OmegaConf.to_container(composed, resolve=True)
    except OmegaConfBaseException as error:
        raise UserError(one_line(error)) from None
    assert isinstance(plain, dict)
    return construct(as_a, plain, "")


def construct(settings: type[Setting], plain: Mapping[Any, Any], path: str) -> Setting:
    """Construct an instance of a settings class from nested dictionaries and lists.

    If `settings` has variants, `kind` in `plain` selects one. `path` is the dotted name of the group that the settings
    belong to, for error messages; "" at the top level.

    Raises:
        UserError: a setting is unknown, missing or invalid; the message names it, its value and what is allowed.
    """
    chosen: type[Any] = settings
    if settings in VARIANTS:
        options = VARIANTS[settings]
        kind = plain.get("kind", MISSING)
        if not isinstance(kind, str) or kind not in options:
            slot = next(group for group, slot in SLOTS.items() if slot.settings is settings)
            own = f"; if it is a part of your own in {slot}, import the module that registers it first"
            close = difflib.get_close_matches(str(kind), options, n=1)
            hint = "" if kind == MISSING else f"; did you mean {close[0]}?" if close else own
            raise UserError(f"{path}.kind ({kind!r}) must be one of {', '.join(options)}{hint}")
        chosen = options[kind]
    hints = typing.get_type_hints(chosen)
    names = [one.name for one in dataclasses.fields(chosen)]
    values: dict[str, Any] = {}
    for name, value in plain.items():
        inner = f"{path}.{name}" if path else str(name)
        if name not in names:
            close = difflib.get_close_matches(str(name), names, n=1)
            meant = f"; did you mean {inner.removesuffix(str(name))}{close[0]}?" if close else ""
            raise UserError(f"unknown setting {inner}{meant} (allowed: {', '.join(names)})")
        if value == MISSING:
            raise UserError(f"{inner} is missing; give it a value, for instance {inner}=...")
        checked = _checked_value(hints[name], value, inner)
        values[name] = _from_home(checked) if inner in PATHS else checked
    required = [one.name for one in dataclasses.fields(chosen) if _is_required(one) and one.name not in values]
    if required:
        inner = f"{path}.{required[0]}" if path else required[0]
        raise UserError(f"{inner} is missing; give it a value, for instance {inner}=...")
    try:
        built: Setting = chosen(**values)
    except ValueError as error:
        raise UserError(str(error)) from None
    defaults = {one.name: one.default for one in dataclasses.fields(chosen)}
    for name, value in values.items():
        _check_words(value, f"{path}.{name}" if path else name, blank_is_default=defaults[name] == value)
    return built


def _from_home(value: Any) -> Any:
    """Expand a leading "~", but not "~name", in a path or a list of paths."""
    if isinstance(value, list):
        return [_from_home(one) for one in value]
    is_in_home = isinstance(value, str) and (value == "~" or value.startswith("~/"))
    return os.path.expanduser(value) if is_in_home else value


def _checked_value(hint: Any, value: Any, path: str) -> Any:
    options = [one for one in typing.get_args(hint) if one is not type(None)]
    optional = type(None) in typing.get_args(hint)
    if value is None and (optional or hint is type(None)):
        return None
    if optional:
        hint = options[0]
    inner = typing.get_args(hint)
    if typing.get_origin(hint) is list and dataclasses.is_dataclass(inner[0]):
        if not isinstance(value, list):
            raise UserError(f"{path} ({value!r}) must be a list")
        return [_checked_value(inner[0], one, f"{path}[{place}]") for place, one in enumerate(value)]
    if dataclasses.is_dataclass(hint):
        if not isinstance(value, Mapping):
            raise UserError(f"{path} ({value!r}) must be a group of settings")
        return construct(typing.cast(type[Any], hint), value, path)
    if hint is bool:
        refuse_number(path, value)
    if type(value) is hint:  # a number or string of exactly this type
        _check_number(value, path)
        return value
    try:
        checked = OmegaConf.merge(
            OmegaConf.structured(dataclasses.make_dataclass("One", [("value", hint)])), {"value": value}
        )
        plain = OmegaConf.to_container(checked)
        assert isinstance(plain, dict)
        checked_value = plain["value"]
    except (OmegaConfBaseException, OverflowError, TypeError):  # OmegaConf 2.4 raises TypeError for {} in place of []
        checked_value = _NOTHING
    if not _is_of(hint, checked_value):  # OmegaConf accepts lists as list entries, and references anywhere
        raise UserError(f"{path} ({value!r}) must be of type {_type_name(hint)}")
    for number in checked_value if isinstance(checked_value, list) else [checked_value]:
        _check_number(number, path)
    return checked_value


def refuse_number(name: str, value: Any) -> None:
    """Raise `UserError` if a boolean setting is given as a number, since OmegaConf takes 2 and -1 as true."""
    if re.fullmatch(r"[+-]?\d[\d_]*", str(value)):
        raise UserError(f"{name} ({value}) must be of type {_BOOL}")


def values_by_name(value: Any, name: str) -> dict[str, Any]:
    """Return the values of nested dictionaries, without references (`${...}`), keyed by dotted names under `name`."""
    if not isinstance(value, dict):
        return {} if "${" in str(value) else {name: value}
    inner = (values_by_name(one, f"{name}.{key}".lstrip(".")) for key, one in value.items())
    return {place: one for values in inner for place, one in values.items()}


_NOTHING = object()  # sentinel for a value that cannot be converted to the type of its setting


def _is_of(hint: Any, value: Any) -> bool:
    inner = typing.get_args(hint)
    if typing.get_origin(hint) is list:
        return isinstance(value, list) and all(_is_of(inner[0], one) for one in value)
    if typing.get_origin(hint) is dict:
        return isinstance(value, dict) and all(_is_of(inner[1], one) for one in value.values())
    return not isinstance(hint, type) or isinstance(value, hint)


def _check_words(value: Any, path: str, blank_is_default: bool) -> None:
    """Check the strings and lists among the values of settings; any other value is accepted.

    No string may contain invalid characters or "${", which begins a reference to another setting, or be blank unless
    `blank_is_default`. A list must not contain the same string or integer twice.

    Raises:
        UserError: the value violates one of these rules.
    """
    words = value if isinstance(value, list) else [value]
    for word in words:
        if not isinstance(word, str):
            continue
        if not word.strip() and not blank_is_default:
            raise UserError(f"{path} ({word!r}) is blank; give it a value or leave it out")
        if _NO_TEXT.search(word):
            raise UserError(f"{path} ({word[:80]!r}) contains a character that no text can have")
        if "${" in word:  # it was escaped on the command line, but would be a reference in a stored file
            raise UserError(f"{path} ({word[:80]!r}) must not contain ${{, which begins a reference")
    if isinstance(value, list):
        repeated = next((one for one in words if isinstance(one, str | int) and words.count(one) > 1), None)
        if repeated is not None:
            raise UserError(f"{path} ({value}) must name each entry once; {repeated!r} is listed twice")


MOST = 10**9  # maximum of integer settings, such as a number of steps or items; only seeds may be larger


def _check_number(number: Any, path: str) -> None:
    """Check that a number is in the allowed range; do nothing for other values.

    A float must be finite, a seed in [0, 2**63), and any other integer in [-`MOST`, `MOST`].

    Raises:
        UserError: the number is not in the allowed range.
    """
    if isinstance(number, bool) or not isinstance(number, int | float):
        return
    if isinstance(number, float):
        if not math.isfinite(number):
            raise UserError(f"{path} ({number}) must be a finite number")
    elif path.rpartition(".")[2] == "seed":
        if not 0 <= number < 2**63:
            raise UserError(f"{path} ({number}) must be at least 0 and below 2**63")
    elif abs(number) > MOST:
        raise UserError(f"{path} ({number}) must be at most {MOST:,}")


def _is_required(one: dataclasses.Field[Any]) -> bool:
    unset = one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING
    return unset or one.default == MISSING


def _type_name(hint: Any) -> str:
    return _BOOL if hint is bool else hint.__name__ if isinstance(hint, type) else str(hint)


def error_message(error: BaseException) -> str:
    """Return a one-line message for an error about a setting, with the allowed values if available."""
    message = one_line(error)
    if several := re.fullmatch("Ambiguous value for argument '(.*)'", message):
        name, _, values = several[1].partition("=")
        message = (
            f"{several[1]}: one run for each value needs -m; a list needs brackets: '{name}=[{values}]'; one text with "
            f"commas needs quotes inside quotes: \"{name}='{values}'\""
        )
    elif type(error).__name__ == "OverrideParseException":
        message = re.sub("^Lexer\\w+: (.*)", r"Error parsing override '\1'", message)
        message += " (a value with spaces, punctuation or Chinese needs quotes inside quotes: \"text='...'\")"
    elif error.__cause__ is not None:
        message += f" ({one_line(error.__cause__)})"
    if no_list := re.fullmatch(r"Error merging override ([^ =]+)=(.*) \(.* is not a ListConfig.*\)", message):
        name, value = no_list.groups()
        message = f"{name} ({value}) must be a list, as in {name}=[{value}]"
    if wrong_type := _WRONG_TYPE.fullmatch(message):
        message = f"{wrong_type[1]} ({wrong_type[2]}) must be of type {_OF_OMEGACONF[wrong_type[3]]}"
    if without_value := re.fullmatch(r"Error merging override ([^ =]+)=.* \(field '.*' is not Optional\)", message):
        message = f"{without_value[1]} cannot be null; leave it out to keep its default"
    if not_here := re.fullmatch(r"Could not override '(.*)'\. No match in the defaults list\.", message):
        message = f"{not_here[1]}: this command has no such setting; --help lists those that it has"
    if plugin := _CLUSTER_PLUGIN.search(message):
        command = pip_install("'anaphora[cluster]'")
        return f"{plugin[1]}={plugin[2]} is not installed: {command}"
    if no_package := re.search(r"In '([^']+/[^']+)': Key '(\w+)' not in", message):
        file, key = no_package.groups()
        if file.startswith(f"{key}/"):
            return f"{file}.yaml: settings of several groups need the first line '# @package _global_' in this file"
    allowed = _allowed_values(error)
    unknown = re.search(r"Key '([^']+)' not in|Could not find '(?:[^']*/)?([^'/]+)'", message)
    if unknown and (close := difflib.get_close_matches(unknown[1] or unknown[2], allowed, n=1)):
        message += f"; did you mean {close[0]}? (allowed: {', '.join(allowed)})"
    elif allowed:
        message += f"; allowed: {', '.join(allowed)}"
    if _NUMBER_OF_PROCESSES.search(message):
        message += "; the number of processes is not a setting: start them with torchrun or srun (docs/clusters.md)"
    return shortened(message)


def _allowed_values(error: BaseException) -> list[str]:
    """Return the allowed values that an error lists; empty if it lists none."""
    _, listed, options = str(error).partition("Available options")
    if listed:
        names = [line.strip() for line in options.splitlines()[1:] if line.strip() and ":" not in line]
        if group := re.match(" in '([^']+)'", options):  # Hydra leaves out the options in folders
            from anaphora.settings.help import options_of

            names += [name for name in options_of(group[1]) if "/" in name]
        return names
    cause = error.__cause__ or error.__context__
    parent = getattr(cause, "parent_node", None)
    if isinstance(parent, DictConfig) and "not in" in str(cause):
        return [str(name) for name in parent]
    return []
