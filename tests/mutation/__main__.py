"""Changes the core in one place at a time and looks whether its tests notice: python tests/mutation

Each mutant is a fork of a process that holds the libraries, and runs the tests of its own room alone. `--help` has the
options. Those that survive are printed; docs/reliability.md says what to think of them.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib.util
import os
import random
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType

ROOT = Path(__file__).parents[2]
ROOMS = {
    "model/attention.py": ("model/test_encoder.py", "model/test_position.py"),
    "model/position.py": ("model/test_position.py", "model/test_encoder.py"),
    "training/losses.py": ("training/test_losses.py", "model/test_prediction.py", "training/test_minimal_pairs.py"),
    "training/optimizer.py": ("training/test_optimizer.py",),
    "analysis/scores/heads.py": ("analysis/scores/test_heads.py",),
    "analysis/scores/statistics.py": ("analysis/scores/test_statistics.py", "analysis/scores/test_effects.py"),
    "analysis/evidence/verdict.py": ("analysis/evidence/test_verdict.py",),
    "data/batches/batching.py": ("data/batches/test_batching.py", "data/batches/test_shares.py"),
    "data/batches/encoded.py": ("data/batches/test_batching.py",),
}
"""The core's files, and the tests of each."""
LIBRARIES = ("torch", "scipy.stats", "datasets", "tokenizers", "hydra", "omegaconf", "pytest", "hypothesis")
LONGEST_SECONDS = 240
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
    """One change: where it is in the tree, and what stands there instead."""

    parent: ast.AST
    field: str
    index: int | None
    node: ast.AST
    instead: ast.AST

    def __str__(self) -> str:
        before, after = (ast.unparse(each).partition("\n")[0] for each in (self.node, self.instead))
        place = f"line {getattr(self.node, 'lineno', 0)}, column {getattr(self.node, 'col_offset', 0) + 1}"
        return f"{place}: {before:.80} -> {after:.80}"

    def compiled(self, tree: ast.Module, path: Path) -> CodeType:
        """The changed module; the tree stays as it is."""
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
    """Every change below a node; types and docstrings are left alone."""
    for field, value in ast.iter_fields(parent):
        if field in _OF_TYPES or (isinstance(parent, ast.If) and "TYPE_CHECKING" in ast.unparse(parent.test)):
            continue
        for index, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(node, ast.AST):
                yield from (Mutant(parent, field, index, node, instead) for instead in replacements(node))
                yield from mutants(node)


def replacements(node: ast.AST) -> Iterator[ast.AST]:
    """What could stand in place of a node and would be wrong."""
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


class Changed(MetaPathFinder, Loader):
    """Gives a module's changed code to whoever imports it."""

    def __init__(self, name: str, path: Path, code: CodeType) -> None:
        self.name, self.path, self.code = name, path, code

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        return importlib.util.spec_from_file_location(name, self.path, loader=self) if name == self.name else None

    def exec_module(self, module: ModuleType) -> None:
        exec(self.code, module.__dict__)


def is_noticed(name: str, path: Path, code: CodeType, tests: Sequence[str]) -> bool:
    """Whether the tests fail on a changed module, in a fork of this process."""
    child = os.fork()
    if child == 0:
        status = 1
        with contextlib.suppress(BaseException):
            silent = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silent, 1)
            os.dup2(silent, 2)
            sys.meta_path.insert(0, Changed(name, path, code))
            signal.alarm(LONGEST_SECONDS)  # a mutant may never end

            import pytest

            options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly"]
            status = int(pytest.main([*options, *(str(ROOT / "tests" / test) for test in tests)]))
        os._exit(status)
    return os.waitpid(child, 0)[1] != 0


def main() -> int:
    """Try the mutants and print those that survive."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--only", action="append", choices=list(ROOMS), help="this file alone")
    parser.add_argument("--sample", type=int, default=10, help="mutants of each file; 0 for all")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT / "src"))
    os.chdir(ROOT)
    for library in LIBRARIES:
        import_module(library)
    tried = survived = 0
    begun = time.perf_counter()
    for file, tests in ROOMS.items():
        if options.only and file not in options.only:
            continue
        path = ROOT / "src" / "anaphora" / file
        name = f"anaphora.{file.removesuffix('.py').replace('/', '.')}"
        tree = ast.parse(path.read_text(encoding="utf-8"))
        sample = list(mutants(tree))
        number = len(sample)
        if options.sample:
            sample = random.Random(f"{options.seed} {file}").sample(sample, min(options.sample, number))
        if is_noticed(name, path, compile(tree, str(path), "exec", dont_inherit=True), tests):
            sys.exit(f"the tests of {file} fail on the file as it is")
        left = [mutant for mutant in sample if not is_noticed(name, path, mutant.compiled(tree, path), tests)]
        tried, survived = tried + len(sample), survived + len(left)
        print(f"{file}: {len(sample)} of {number} mutants, {len(left)} survive", flush=True)
        for mutant in sorted(left, key=lambda one: getattr(one.node, "lineno", 0)):
            print(f"  {mutant}", flush=True)
    print(f"{survived} of {tried} survive; {time.perf_counter() - begun:.0f} seconds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
