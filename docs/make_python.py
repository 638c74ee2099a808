"""Generator of the page on the Python interface from docstrings; make docs adds the page to the site."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import anaphora
from anaphora import api
from anaphora.api.attribution import WordAttribution
from anaphora.api.maps import HeadWeight
from anaphora.api.pronoun_answers import CandidateProbability

FUNCTIONS = ("load", "attention", "answers", "score", "register", "main")
CLASSES = (
    api.OpenRun,
    api.SentenceAttention,
    api.Row,
    HeadWeight,
    api.AttentionPage,
    api.PronounAnswer,
    CandidateProbability,
    WordAttribution,
    api.Scores,
)
INTRODUCTION = """\
# Python interface

Everything that `import anaphora` offers, and what its functions return. L is the number of layers, H of heads, W of
words. [Attention, step by step](explain.md#from-python) and [any model](any_model.md#in-python) show it in use.
"""
_LISTS = {"Args:": "Arguments", "Attributes:": "Attributes", "Raises:": "Errors", "Returns:": "Returns"}


def page() -> str:
    """Return the whole page as Markdown."""
    parts = [INTRODUCTION, "## Functions\n"]
    for name in FUNCTIONS:
        function = getattr(anaphora, name)
        parts += [f"### anaphora.{name}\n", signature(f"anaphora.{name}", function), described(function)]
    parts.append("## What they return\n")
    for owner in CLASSES:
        parts += [f"### {owner.__name__}\n", described(owner)]
        listed = [f"- `{name}`: {summary(member)}" for name, member in properties(owner)]
        parts += ["Properties:\n", *listed, ""] if listed else []
        for name, method in methods(owner):
            parts += [f"#### {owner.__name__}.{name}\n", signature(name, method), described(method)]
    return "\n".join(parts)


def properties(owner: type) -> Iterator[tuple[str, Any]]:
    """Return the public properties of a class in source order."""
    return ((name, member) for name, member in vars(owner).items() if isinstance(member, property) and name[0] != "_")


def methods(owner: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Return the public methods of a class in source order."""
    return ((name, member) for name, member in vars(owner).items() if inspect.isfunction(member) and name[0] != "_")


def signature(name: str, function: Callable[..., Any]) -> str:
    """Return the signature of a function, with the types as in the source."""
    declared = inspect.signature(function)
    arguments = []
    for parameter in declared.parameters.values():
        if parameter.name == "self":
            continue
        stars = "**" if parameter.kind is inspect.Parameter.VAR_KEYWORD else ""
        default = "" if parameter.default is inspect.Parameter.empty else f" = {parameter.default!r}"
        arguments.append(f"{stars}{parameter.name}: {parameter.annotation}{default}")
    line = f"{name}({', '.join(arguments)}) -> {declared.return_annotation}"
    if len(line) > 100:
        line = (
            f"{name}(\n"
            + "".join(f"    {argument},\n" for argument in arguments)
            + f") -> {declared.return_annotation}"
        )
    return f"```text\n{line}\n```\n"


def summary(member: Any) -> str:
    """Return a docstring as one paragraph."""
    return " ".join((inspect.getdoc(member) or "").split())


def described(member: Any) -> str:
    """Return a docstring as Markdown, with lists of arguments, attributes and errors."""
    lines: list[str] = []
    within_list = False
    for line in (inspect.getdoc(member) or "").splitlines():
        if line in _LISTS:
            lines += [f"{_LISTS[line]}:", ""]
            within_list = True
        elif not line:
            lines.append("")
            within_list = False
        elif within_list and (entry := re.match(r" {4}(\w[\w, ]*): (.*)", line)):
            names = ", ".join(f"`{name}`" for name in entry[1].split(", "))
            lines.append(f"- {names}: {entry[2]}")
        elif within_list and not line.startswith("     ") and lines[-1] == "":
            lines.append(line.strip())  # what is returned has no name
        else:
            lines.append(f"  {line.strip()}" if within_list else line)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
