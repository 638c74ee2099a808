"""Small mutations of a module, and those that are equivalent to the original."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

_OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
_PAIRS = (("min", "max"), ("any", "all"), ("mean", "sum"), ("amin", "amax"), ("argmin", "argmax"), ("floor", "ceil"))
_NAMES = {**dict(_PAIRS), **{second: first for first, second in _PAIRS}}
_OF_TYPES = {"annotation", "returns", "type_params", "decorator_list"}


@dataclass(frozen=True)
class Mutant:
    """Mutation: its position in the syntax tree, and the new node."""

    parent: ast.AST
    field: str
    index: int | None
    node: ast.AST
    instead: ast.AST

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.change}"

    @property
    def line(self) -> int:
        return int(getattr(self.node, "lineno", 0))

    @property
    def column(self) -> int:
        return int(getattr(self.node, "col_offset", 0)) + 1

    @property
    def change(self) -> str:
        before, after = (ast.unparse(each).partition("\n")[0] for each in (self.node, self.instead))
        return f"{before:.80} -> {after:.80}"

    def compiled(self, tree: ast.Module, path: Path) -> CodeType:
        """Return the compiled mutant; the tree is restored."""
        self._put(self.instead)
        try:
            return compile(ast.fix_missing_locations(tree), str(path), "exec", dont_inherit=True)
        finally:
            self._put(self.node)

    def _put(self, node: ast.AST) -> None:
        if self.index is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.index] = node


def mutants(parent: ast.AST) -> Iterator[Mutant]:
    """Yield all mutants below a node, except in types and docstrings."""
    for field, value in ast.iter_fields(parent):
        if field in _OF_TYPES or (isinstance(parent, ast.If) and "TYPE_CHECKING" in ast.unparse(parent.test)):
            continue
        for index, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(node, ast.AST):
                yield from (Mutant(parent, field, index, node, instead) for instead in replacements(node))
                yield from mutants(node)


def replacements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield incorrect replacements of a node."""
    match node:
        case ast.Compare(left=left, ops=[operator, *_], comparators=right) if type(operator) in _OPERATORS:
            yield ast.Compare(left, [_OPERATORS[type(operator)](), *node.ops[1:]], right)  # type: ignore[list-item]
        case ast.BoolOp(op=operator, values=values):
            yield ast.BoolOp(_OPERATORS[type(operator)](), values)  # type: ignore[arg-type]
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATORS:
            yield ast.BinOp(left, _OPERATORS[type(operator)](), right)  # type: ignore[arg-type]
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(value=int() | float() as value):
            yield ast.Constant(value + 1)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield ast.IfExp(ast.UnaryOp(ast.Not(), test), body, orelse)
        case ast.If(test=test, body=body, orelse=orelse):
            yield ast.If(ast.UnaryOp(ast.Not(), test), body, orelse)
        case ast.AugAssign() | ast.Expr(value=ast.Call()):
            yield ast.Pass()
        case ast.Call(func=function, args=arguments, keywords=[_, *_] as keywords):
            for number in range(len(keywords)):
                yield ast.Call(function, arguments, keywords[:number] + keywords[number + 1 :])
        case ast.Name(id=name, ctx=ast.Load()) if name in _NAMES:
            yield ast.Name(_NAMES[name], ast.Load())
        case ast.Attribute(value=value, attr=name, ctx=ast.Load()) if name in _NAMES:
            yield ast.Attribute(value, _NAMES[name], ast.Load())


@dataclass(frozen=True)
class Equivalent:
    """Mutation that changes no behaviour, or only unspecified behaviour.

    Attributes:
        line: source code of the line.
        change: old and new code, as in `Mutant.change`.
        reason: reason why no test can notice the change.
        column: column of the change, from 1; 0 for all such changes in such lines.
    """

    line: str
    change: str
    reason: str
    column: int = 0

    def names(self, mutant: Mutant, source: list[str]) -> bool:
        """Return whether this entry describes a mutant of a module with these lines."""
        same_place = self.column in (0, mutant.column) and self.line == source[mutant.line - 1].strip()
        return same_place and self.change == mutant.change


def equivalents(file: str) -> list[Equivalent]:
    """Return the equivalent mutations of a file, from equivalent.toml."""
    listed = tomllib.loads(Path(__file__).with_name("equivalent.toml").read_text(encoding="utf-8"))
    return [Equivalent(**entry) for entry in listed.get(file, [])]
