"""Every message that a user can get, read from the source: `python tests/messages.py` lists them with their places.

A message is the text of a `UserError`, of a `ValueError` in the checks of settings (which becomes one), of a row that a
reader drops, what the command line prints beside them, and what is shown of the progress of a command. Its template is
the text with numbered places for values: "{0} ({1}) must be at least {2}". Words that a message takes from a name of
its function, from a constant or from another function stand in the template, once for each alternative; many
alternatives, and what callers hand over as an argument, are parts with templates of their own.
"""

from __future__ import annotations

import ast
import functools
import itertools
import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "src" / "anaphora"
ERRORS = (
    *("UserError", "FailedRunsError", "DivergedError", "DroppedRowError", "ValueError"),
    *("in_interface_language", "_refusal"),
)
"""What a message is handed to."""
NOTICES = ("say", "working", "progress", "show")
"""What a line for the terminal is handed to; there a word alone is a message too."""
REASONS = ("why_untested", "keep_what_there_is")
"""What gives the reason or the way out that stands in such a line."""
PLACE = "\0"
"""Stands for a value in a template whose places are not numbered yet."""
MOST_INLINE = 3
"""Alternatives with words that stand in a template itself."""
DEEPEST = 5
"""Names and functions that one place is followed through."""


@dataclass(frozen=True, eq=False)
class Scope:
    """A function, or the top of a module, with what its names can hold."""

    node: ast.FunctionDef | ast.Module
    path: Path

    @functools.cached_property
    def parameters(self) -> list[str]:
        if isinstance(self.node, ast.Module):
            return []
        return [one.arg for one in (*self.node.args.posonlyargs, *self.node.args.args, *self.node.args.kwonlyargs)]

    @functools.cached_property
    def values(self) -> dict[str, list[ast.expr]]:
        values: dict[str, list[ast.expr]] = {}
        for node in self.node.body if isinstance(self.node, ast.Module) else ast.walk(self.node):
            match node:
                case ast.Assign(targets=[ast.Name(name)], value=value) | ast.NamedExpr(ast.Name(name), value):
                    values.setdefault(name, []).append(value)
                case ast.AnnAssign(target=ast.Name(name), value=ast.expr() as value):
                    values.setdefault(name, []).append(value)
                case ast.AugAssign(target=ast.Name(name), value=value):
                    values.setdefault(name, []).append(value)
        return values


@dataclass(frozen=True)
class Source:
    """The functions of a package, its constants and its calls with where they stand, by name."""

    functions: dict[str, list[Scope]]
    constants: dict[str, list[tuple[Scope, ast.expr]]]
    calls: dict[str, list[tuple[ast.Call, Scope]]]

    @classmethod
    def read(cls, folder: Path) -> Source:
        source = cls({}, {}, {})
        for path in sorted(folder.rglob("*.py")):
            module = Scope(ast.parse(path.read_text(encoding="utf-8")), path)
            for name, values in module.values.items():
                source.constants.setdefault(name, []).extend((module, value) for value in values)
            waiting: deque[tuple[ast.AST, Scope]] = deque([(module.node, module)])
            while waiting:
                node, scope = waiting.popleft()
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.Name | ast.Constant | ast.expr_context | ast.operator):
                        continue
                    inner = scope
                    if isinstance(child, ast.FunctionDef):
                        inner = Scope(child, path)
                        source.functions.setdefault(child.name, []).append(inner)
                    elif isinstance(child, ast.Call):
                        source.calls.setdefault(_name(child.func), []).append((child, scope))
                    waiting.append((child, inner))
        return source


class Messages:
    """The templates of a package, gathered when it is made.

    Attributes:
        templates: each with the files and lines that make it.
    """

    def __init__(self, folder: Path = PACKAGE) -> None:
        self.folder = folder
        self.source = Source.read(folder)
        self.templates: dict[str, list[str]] = {}
        self._handed_over: deque[tuple[str, str]] = deque()
        self._followed: set[tuple[str, str]] = set()
        for name in (*ERRORS, *NOTICES):
            for call, scope in self.source.calls.get(name, []):
                if call.args and (name != "ValueError" or scope.path.is_relative_to(folder / "settings")):
                    self._gather(call.args[0], scope, words=1 if name in NOTICES else 2)
        for call, scope in self.source.calls["Origin"]:  # what a corpus is read from, which messages ask for
            for files in (one.value for one in call.keywords if one.arg == "files"):
                self._gather(files, scope)
        for function in self.source.functions["error_message"]:  # what is said beside a message of Hydra
            for value in itertools.chain(*function.values.values()):
                self._gather(value, function)
        for name in REASONS:
            for function in self.source.functions[name]:
                for template in self._returned(function, 0):
                    self._add(template, f"{function.path.relative_to(folder)}:{name}")
        self._gather_arguments()

    def _gather(self, expression: ast.expr, scope: Scope, words: int = 2) -> None:
        """The templates of an expression that have at least so many words."""
        place = f"{scope.path.relative_to(self.folder)}:{expression.lineno}"
        for template in self._alternatives(expression, scope, 0):
            self._add(template, place, words)

    def _add(self, template: str, place: str, words: int = 2) -> None:
        template = normal(template)
        if has_words(template) and (words == 1 or " " in template):
            places = self.templates.setdefault(numbered(template), [])
            if place not in places:
                places.append(place)

    def _gather_arguments(self) -> None:
        """Words that callers hand over for a place, in every call of a function of that name."""
        while self._handed_over:
            name, parameter = self._handed_over.popleft()
            for function in self.source.functions.get(name, []):
                if parameter not in function.parameters:
                    continue
                position = function.parameters.index(parameter) - (function.parameters[0] in ("self", "cls"))
                for call, scope in self.source.calls.get(name, []):
                    given = [one.value for one in call.keywords if one.arg == parameter]
                    given += call.args[position : position + 1] if position >= 0 else []
                    for argument in given:
                        if not isinstance(argument, ast.Constant) or " " in str(argument.value):
                            self._gather(argument, scope)

    def _alternatives(self, expression: ast.expr, scope: Scope, depth: int) -> list[str]:
        """The templates of an expression; what is no text is one place."""
        match expression:
            case ast.Constant(value=str(text)):
                return [text]
            case ast.JoinedStr(values=parts):
                return product(self._alternatives(part, scope, depth) for part in parts)
            case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
                return self._of_place(value, scope, depth)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                options = product(self._alternatives(part, scope, depth) for part in (left, right))
                return options if any(one.strip(PLACE) for one in options) else [PLACE]  # of numbers it is one value
            case ast.IfExp(body=body, orelse=other):
                return distinct(one for part in (body, other) for one in self._alternatives(part, scope, depth))
            case ast.BoolOp(op=ast.Or(), values=values):
                return distinct(one for value in values for one in self._alternatives(value, scope, depth))
            case ast.Name() | ast.Call() | ast.Subscript():
                return self._of_place(expression, scope, depth)
        return [PLACE]

    def _of_place(self, value: ast.expr, scope: Scope, depth: int) -> list[str]:
        """What a place of a message can hold: few words as they are, else one place, and many words as parts."""
        if isinstance(value, ast.IfExp | ast.BoolOp | ast.JoinedStr | ast.BinOp):
            return self._alternatives(value, scope, depth)
        options = distinct(self._held(value, scope, depth + 1)) if depth < DEEPEST else []
        worded = [one for one in options if is_wording(one)]
        if len(worded) <= MOST_INLINE and worded:
            return options
        for one in worded:
            self._add(one, f"{scope.path.relative_to(self.folder)}:{value.lineno}")
        return [PLACE]

    def _held(self, value: ast.expr, scope: Scope, depth: int) -> Iterator[str]:
        match value:
            case ast.Name(name) if name in scope.values:
                for each in scope.values[name]:
                    yield from self._alternatives(each, scope, depth)
            case ast.Name(name) if name in scope.parameters and isinstance(scope.node, ast.FunctionDef):
                if (scope.node.name, name) not in self._followed:
                    self._followed.add((scope.node.name, name))
                    self._handed_over.append((scope.node.name, name))
                yield PLACE
            case ast.Name(name):
                for module, each in self._constants(name, scope):
                    yield from self._alternatives(each, module, depth)
            case (
                ast.Call(func=ast.Attribute(value=ast.Name(name), attr="get" | "items"))
                | ast.Subscript(value=ast.Name(name))
            ):
                for module, each in self._constants(name, scope):
                    for entry in each.values if isinstance(each, ast.Dict) else ():
                        yield from self._alternatives(entry, module, depth)
            case ast.Call(
                func=ast.Name("next"), args=[ast.GeneratorExp(generators=[ast.comprehension(iter=values)]), _]
            ):
                yield from self._held(values, scope, depth)
            case ast.Call(func=ast.Name(name)):
                named = self.source.functions.get(name, [])
                for function in [one for one in named if one.path == scope.path] or named:
                    yield from self._returned(function, depth)

    def _constants(self, name: str, scope: Scope) -> list[tuple[Scope, ast.expr]]:
        if not name.lstrip("_").isupper():
            return []
        every = self.source.constants.get(name, [])
        return [(module, value) for module, value in every if module.path == scope.path] or every

    def _returned(self, function: Scope, depth: int) -> Iterator[str]:
        node = function.node
        if (
            isinstance(node, ast.FunctionDef)
            and node.returns is not None
            and ast.unparse(node.returns) in ("str", "str | None")
        ):
            for each in ast.walk(node):
                if isinstance(each, ast.Return) and each.value is not None:
                    yield from self._alternatives(each.value, function, depth)


def _name(function: ast.expr) -> str:
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")


def has_words(template: str) -> bool:
    """Whether there is something to translate."""
    return re.search(r"[A-Za-z]{2}|\bis\b", template) is not None


def is_wording(option: str) -> bool:
    """Whether what a place can hold belongs to the sentence: several words, or the beginning or end of a clause."""
    return (has_words(option) and " " in option) or option.startswith(("; ", ": ", " (")) or option.endswith(": ")


def normal(template: str) -> str:
    """Without what only joins messages: a way out that is a place, a second place in front, a semicolon, a bracket."""
    template = template.removeprefix("; ").removeprefix(": ")
    if template.startswith(" (") and template.endswith(")"):
        template = template[2:-1]
    while template.endswith(f"; {PLACE}"):
        template = template.removesuffix(f"; {PLACE}")
    while template.startswith(f"{PLACE}: {PLACE}: "):
        template = template.removeprefix(f"{PLACE}: ")
    return template


def numbered(template: str) -> str:
    """With "{0}", "{1}" for its places; braces of the text are doubled, as in `str.format`."""
    places = itertools.count()
    return re.sub(PLACE, lambda _: f"{{{next(places)}}}", template.replace("{", "{{").replace("}", "}}"))


def distinct(templates: Iterable[str]) -> list[str]:
    """Each once, in their order."""
    return list(dict.fromkeys(templates))


def product(parts: Iterable[list[str]]) -> list[str]:
    """Every way to choose one alternative of each part."""
    return distinct("".join(chosen) for chosen in itertools.product(*parts))


if __name__ == "__main__":
    for template, places in Messages().templates.items():
        print(template, " #", *places)
