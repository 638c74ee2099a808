"""Hash of the code of modules and of all `anaphora` modules that they import, directly or indirectly."""

from __future__ import annotations

import ast
import functools
import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType

_PACKAGE = Path(__file__).parents[1]
_SOURCES = _PACKAGE.parent


def code_digest(*names: str) -> str:
    """Return a hash of the compiled code of modules or packages, and of all `anaphora` modules that they import.

    Modules that are imported indirectly count too; imports under TYPE_CHECKING do not. Comments, docstrings and
    formatting do not affect the hash. `names` are dotted, such as "anaphora.analysis"; a package includes its modules.
    """
    total = hashlib.sha256()
    for path in modules_behind(*names):
        total.update(f"{path.relative_to(_PACKAGE).as_posix()} {_read(path)[0]}\n".encode())
    return total.hexdigest()[:16]


def modules_behind(*names: str) -> list[Path]:
    """Return the sorted paths of all files whose code enters the hash `code_digest(*names)`."""
    reached: set[Path] = set()
    waiting = [path for name in names for path in _files(name)]
    while waiting:
        path = waiting.pop()
        if path not in reached:
            reached.add(path)
            waiting += [file for name in _read(path)[1] for file in _file(name)]
    return sorted(reached)


def _files(name: str) -> Iterator[Path]:
    folder = _SOURCES / name.replace(".", "/")
    yield from folder.rglob("*.py") if folder.is_dir() else _file(name)


@functools.cache
def _file(name: str) -> tuple[Path, ...]:
    """Return the file of a module or package as a tuple of one path; () for a name defined inside a module."""
    place = _SOURCES / name.replace(".", "/")
    return tuple(path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file())


@functools.cache
def _read(path: Path) -> tuple[str, tuple[str, ...]]:
    """Return a hash of a file's compiled code, and the `anaphora` names that the file imports."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = tuple(dict.fromkeys(_imports(tree.body)))
    _remove_docstrings(tree)
    # Line numbers are not among the parts, since comments change them.
    compiled = compile(tree, path.name, "exec", dont_inherit=True)
    return hashlib.sha256(b"\n".join(_parts(compiled))).hexdigest(), imported


def _remove_docstrings(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    if ast.get_docstring(node, clean=False) is not None:
        node.body[:1] = [] if len(node.body) > 1 else [ast.Pass(lineno=1, col_offset=0, end_lineno=1, end_col_offset=0)]
    for statement in node.body:
        if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            _remove_docstrings(statement)


def _parts(compiled: CodeType) -> Iterator[bytes]:
    """Yield the parts of compiled code that affect results: instructions, names, arguments, exceptions, constants."""
    yield compiled.co_code
    yield compiled.co_exceptiontable
    names = (compiled.co_names, compiled.co_varnames, compiled.co_freevars, compiled.co_cellvars)
    counts = (compiled.co_argcount, compiled.co_posonlyargcount, compiled.co_kwonlyargcount, compiled.co_flags)
    yield repr((names, counts)).encode()
    for constant in compiled.co_consts:
        if isinstance(constant, CodeType):
            yield from _parts(constant)
        elif isinstance(constant, frozenset):
            yield repr(sorted(map(repr, constant))).encode()  # the order differs between processes
        else:
            yield repr(constant).encode()


def _imports(statements: Iterable[ast.stmt]) -> Iterator[str]:
    """Yield the `anaphora` names that statements import, including in functions, except under TYPE_CHECKING."""
    for statement in statements:
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names if alias.name.startswith("anaphora"))
        elif isinstance(statement, ast.ImportFrom) and statement.module and statement.module.startswith("anaphora"):
            yield statement.module
            yield from (f"{statement.module}.{alias.name}" for alias in statement.names)
        elif not (isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.unparse(statement.test)):
            for name in ("body", "orelse", "finalbody", "handlers", "cases"):
                yield from _imports(getattr(statement, name, ()))
