"""Help texts of commands, and suggestions for unknown settings.

A help text states the purpose of a command and an example, and lists the settings with type, default and meaning. A
suggestion is the full name of a setting that the user has abbreviated, or the most similar name to a misspelt one.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import functools
import inspect
import io
import re
import shlex
import textwrap
import tokenize
import typing
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from omegaconf import MISSING

from anaphora.base.errors import UserError
from anaphora.settings.arguments import CONFIGS, given_twice, inner_type, settings_and_options
from anaphora.settings.variants import SLOTS, VARIANTS

_WIDTH = 100
_COLUMN = 30  # column at which the meaning of a setting begins
_CLOSE = 0.65
_MOST_NAMED = 4


@dataclasses.dataclass(frozen=True)
class _Entry:
    """A setting in the help text.

    Attributes:
        key: dotted name of the setting, such as "model.width".
        field: dataclass field of the setting.
        owner: class that declares the field.
        hint: type of the setting, or base class of its variants.
    """

    key: str
    field: dataclasses.Field[Any]
    owner: type[Any]
    hint: Any

    @property
    def lines(self) -> list[str]:
        default = default_text(self.field)
        kind = "name" if self.hint in VARIANTS else _type_in_words(self.hint)
        kind += "" if default else ", required"
        kind += ", optional" if default == "null" else ""
        meaning = comment_on(self.owner, self.field.name)
        if self.hint in VARIANTS:
            meaning += "; " * bool(meaning) + f"one of {', '.join(options_of(self.key.replace('.', '/')))}"
        left = self.key if default == "null" else f"{self.key}={default or '...'}"
        return _columns(left, f"{kind}: {meaning}" if meaning else kind)


def help_page(name: str, about: str, example: str, schema: type[Any], groups: Mapping[str, str | None] | None) -> str:
    """Return the help text of a command.

    Args:
        name: name of the command.
        about: description of the command.
        example: command line that serves as an example.
        schema: settings class of the command.
        groups: default option of each config group. If it is given, the help text lists only the most used settings. If
            it is None, since Hydra does not compose the settings, the help text lists all of them.
    """
    usage = f"usage:   anaphora {name} [setting=value ...]\nexample: {example}"
    if groups is None:
        parts = ["settings:\n" + listed_settings(schema)]
        if "data" in (one.name for one in dataclasses.fields(schema)):
            parts.append(f"the settings of each kind of data: anaphora {name} --help data")
    else:
        entries = {entry.key: entry for entry in _entries(schema)}
        parts = [
            "groups, each with its default and all options:\n" + listed_groups(groups),
            "settings used most:\n" + _lines(entries[key] for key in schema.most_used),
            f"all settings: anaphora {name} --help all (or a group in place of all)\n"
            "several runs: -m and values with commas, as in -m seed=0,1,2\n"
            "without a start: --cfg job prints the settings",
        ]
    wrapped = "\n\n".join(textwrap.fill(paragraph, _WIDTH) for paragraph in about.split("\n\n"))
    return "\n\n".join([wrapped, usage, *parts, "More examples: docs/commands.md"])


def listed_settings(schema: type[Any]) -> str:
    """Return a text that lists the settings of a command or program, each with its type, default and meaning."""
    return _lines(_entries(schema))


def _lines(entries: Iterable[_Entry]) -> str:
    return "\n".join(line for entry in entries for line in entry.lines)


def listed_groups(groups: Mapping[str, str | None]) -> str:
    """Return a table of config groups, each with its default option and all options."""
    lines: list[str] = []
    for group, default in groups.items():
        left = group if default is None else f"{group}={'...' if default == '???' else default}"
        lines += _columns(left, ", ".join(options_of(group)))
    return "\n".join(lines)


def options_of(group: str) -> list[str]:
    """Return the options of a config group: its YAML files and, if it has variants (`SLOTS`), their names.

    A file in a folder that is no group of its own has a name such as "claims/scaling".
    """
    variants = VARIANTS[SLOTS[group].settings] if group in SLOTS else ()
    paths = (path.relative_to(CONFIGS / group).with_suffix("") for path in (CONFIGS / group).rglob("*.yaml"))
    files = (path for path in paths if f"{group}/{path.parent.as_posix()}" not in SLOTS)
    names = sorted((path.as_posix() for path in files), key=lambda name: (name.count("/"), name))
    return list(dict.fromkeys([*variants, *names]))


def settings_below(schema: type[Any], topic: str) -> str:
    """Return the part of the help text for one topic.

    Args:
        schema: settings class of the command.
        topic: "all" for all settings; the name of a setting or of a group of settings, such as "optimizer"; or the name
            of a slot, such as "model/position", for a list of the variants.

    Raises:
        UserError: the command has no such group or setting.
    """
    if topic == "all":
        return listed_settings(schema)
    key = topic.replace("/", ".")
    entries = list(_entries(schema))
    slot = next((entry for entry in entries if entry.key == key and entry.hint in VARIANTS), None)
    if slot is not None:
        return _listed_variants(slot)
    below = [entry for entry in entries if entry.key == key or entry.key.startswith(f"{key}.")]
    if not below:
        allowed = ["all", *dict.fromkeys(entry.key.split(".")[0] for entry in entries)]
        meant = nearest(topic, allowed)
        question = f"; did you mean {meant}?" if meant else ""
        raise UserError(f"--help {topic}: there is no such group of settings{question} (allowed: {', '.join(allowed)})")
    return _lines(below)


def _listed_variants(slot: _Entry) -> str:
    """Return a text that lists the variants of a slot and then the settings of the variants.

    A slot is a part of a recipe with interchangeable variants. A setting that several variants share is listed once.
    """
    lines: list[str] = []
    settings: dict[tuple[str, str], _Entry] = {}
    for kind, variant in VARIANTS[slot.hint].items():
        entries = [entry for entry in _entries(variant, f"{slot.key}.") if entry.field.name != "kind"]
        names = ", ".join(entry.field.name for entry in entries)
        lines += _columns(
            f"{slot.key.replace('.', '/')}={kind}", summary(variant) + f" Settings: {names}." * bool(names)
        )
        settings |= {(entry.key, comment_on(entry.owner, entry.field.name)): entry for entry in entries}
    return "\n".join([*lines, "", _lines(settings.values())])


def summary(settings: type[Any]) -> str:
    """Return the first paragraph of the docstring of a class, joined into a single line."""
    return " ".join((inspect.getdoc(settings) or "").split("\n\n")[0].split())


def listed_fields(schema: type[Any]) -> list[dataclasses.Field[Any]]:
    """Return the fields of a settings class in the order of help texts: as declared, but `overwrite` last."""
    return sorted(dataclasses.fields(schema), key=lambda one: one.name == "overwrite")


def _entries(schema: type[Any], before: str = "") -> Iterator[_Entry]:
    for one in listed_fields(schema):
        hint, key = inner_type(schema, one.name), f"{before}{one.name}"
        if dataclasses.is_dataclass(hint) and hint not in VARIANTS:
            yield from _entries(typing.cast(type[Any], hint), f"{key}.")
        else:
            yield _Entry(key, one, schema, hint)


def _columns(left: str, right: str) -> list[str]:
    """Return the help text of one setting as two columns, or on separate lines if the left text is too long."""
    first = f"  {left}".ljust(_COLUMN)
    wrapped = textwrap.wrap(
        right, _WIDTH, initial_indent=" " * _COLUMN, subsequent_indent=" " * _COLUMN, break_on_hyphens=False
    )
    if len(first) > _COLUMN or not first.endswith(" "):
        return [first.rstrip(), *wrapped]
    return [first + wrapped[0].lstrip(), *wrapped[1:]] if wrapped else [first.rstrip()]


def _type_in_words(hint: Any) -> str:
    inner = typing.get_args(hint)
    if typing.get_origin(hint) is list:
        return f"list of {_PLURALS.get(inner[0], 'lists' if typing.get_origin(inner[0]) is list else 'groups')}"
    if typing.get_origin(hint) is dict:
        return "dictionary"
    return {str: "text", int: "whole number", float: "number", bool: "true or false"}.get(hint, str(hint))


_PLURALS = {str: "texts", int: "whole numbers", float: "numbers"}


def default_text(one: dataclasses.Field[Any]) -> str:
    """Return the default of a setting in command-line syntax; "" if a value is required."""
    value = one.default if one.default_factory is dataclasses.MISSING else one.default_factory()
    if value is dataclasses.MISSING or value == MISSING:
        return ""
    if dataclasses.is_dataclass(value):
        return str(getattr(value, "kind", ""))
    if isinstance(value, list):
        return f"[{','.join(str(item) for item in value)}]"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def comment_on(settings: type[Any], name: str) -> str:
    """Return the comment after or above a setting's field in the class that declares it; "" if there is none."""
    for declaring in settings.__mro__:
        if name in inspect.get_annotations(declaring):
            return _comments(declaring).get(name, "")
    return ""


@functools.cache
def _comments(declaring: type[Any]) -> dict[str, str]:
    """Return the comment on each field of a class: the one after the field or, if there is none, the lines above it."""
    source = inspect.getsource(declaring)
    behind: dict[int, str] = {}
    above: dict[int, str] = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            alone = token.line.lstrip().startswith("#")
            (above if alone else behind)[token.start[0]] = token.string.lstrip("# ")
    (body,) = ast.parse(source).body
    assert isinstance(body, ast.ClassDef)
    comments: dict[str, str] = {}
    for node in body.body:
        if isinstance(node, ast.AnnAssign):
            lines = [behind[line] for line in range(node.lineno, (node.end_lineno or 0) + 1) if line in behind]
            first = node.lineno
            while first - 1 in above:
                first -= 1
            over = " ".join(above[line] for line in range(first, node.lineno))
            comments[ast.unparse(node.target)] = " ".join(lines) or over[:1].lower() + over[1:].rstrip(".")
    return comments


def check_arguments(arguments: Sequence[str], schema: type[Any], groups: Collection[str] | None = None) -> None:
    """Reject misspelt settings and settings in the wrong syntax; the error message shows the correct form.

    Unknown keys that resemble no setting are left to the parser. `groups` are the names of the config groups; None if
    Hydra does not compose the settings.

    Raises:
        UserError: a setting is written as an option (`--steps 10`) or without an equals sign (`steps 10`), an unknown
            key resembles the key of a setting, or a list is given twice. If Hydra composes the settings, unknown
            options are errors too.
    """
    keys = list(dict.fromkeys([*setting_keys(schema), *(groups or ())]))
    waiting = list(arguments) if groups is None else settings_and_options(arguments)[0]
    lists: set[str] = set()
    while waiting:
        argument = waiting.pop(0)
        name, _, value = argument.partition("=")
        if re.match(r"-*[^\W\d]", argument) and ("=" not in argument or argument.startswith("-")):
            _check_option(argument, waiting[:1], keys, is_composed=groups is not None)
        elif not argument.startswith(("+", "hydra")) and "@" not in name:
            _check_key(name.lstrip("~"), keys)
            if value.startswith("["):
                if name in lists:
                    raise given_twice(argument, name)
                lists.add(name)


def check_model_name(schema: type[Any], arguments: Sequence[str]) -> None:
    """Reject `model=` for a command that takes its model as `run=` or `runs=`.

    Raises:
        UserError: `model=` is given to such a command.
    """
    for argument in arguments:
        if argument.startswith("model=") and getattr(schema, "any_model", False):
            name = argument.removeprefix("model=")
            given = f"run={name}" if hasattr(schema, "run") else f"'runs=[{name}]'"
            raise UserError(f"{argument}: this command takes a model as {given}; model= names the parts of an encoder")


def setting_keys(schema: type[Any], before: str = "") -> Iterator[str]:
    """Yield all keys that a settings class allows on the command line.

    These are the dotted names of the settings and of the groups of settings, the names of slots (such as
    `model/position`), and the dotted names of the settings of all variants.
    """
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
    """Return the keys that a user may have meant by an unknown key; an empty list if no key is similar.

    These are the first that exist of: `typed` itself; the keys that end with `typed`; the keys with the same last part;
    the most similar key; the keys with the most similar last part.
    """
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
    """Return the name that is most similar to `name`, or None if no name is similar enough."""
    close = difflib.get_close_matches(name, names, n=1, cutoff=_CLOSE)
    return close[0] if close else None


def _check_option(option: str, following: Sequence[str], keys: Sequence[str], is_composed: bool) -> None:
    """Reject a setting written as an option (`--steps 10`, `--steps=10`, `--steps`) or as a word (`steps 10`, `steps`).

    If Hydra composes the settings (`is_composed`), options that resemble no setting are rejected too.

    Raises:
        UserError: the argument has one of these forms.
    """
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
    while group and group not in keys:  # a dictionary setting allows any key below it
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
