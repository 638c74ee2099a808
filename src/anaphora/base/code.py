"""A digest of the code behind a result: of some modules and of all that they import, directly or not."""

from __future__ import annotations

import ast
import functools
import hashlib
from collections.abc import Iterator
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]
_SOURCES = _PACKAGE.parent


def code_digest(*names: str) -> str:
    """A digest of the syntax of modules or packages of `anaphora`, and of every module of it that they import.

    Comments, docstrings and layout do not count, since they change no number. Imports for the type checker alone are
    not followed.

    Args:
        names: dotted, for instance "anaphora.analysis"; a package stands for all its modules.
    """
    total = hashlib.sha256()
    for path in modules_behind(*names):
        total.update(f"{path.relative_to(_PACKAGE).as_posix()} {_read(path)[0]}\n".encode())
    return total.hexdigest()[:16]


def modules_behind(*names: str) -> list[Path]:
    """The files of these modules or packages, and of all modules of `anaphora` that they import, sorted."""
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


def _file(name: str) -> Iterator[Path]:
    """The file of a module or of a package itself; nothing for a name inside a module."""
    place = _SOURCES / name.replace(".", "/")
    yield from (path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file())


@functools.cache
def _read(path: Path) -> tuple[str, tuple[str, ...]]:
    """A digest of a file's syntax, and the names of this package that it imports."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = tuple(dict.fromkeys(_imports(tree)))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            del node.body[0]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest(), imported


def _imports(node: ast.AST) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names if alias.name.startswith("anaphora"))
        elif isinstance(child, ast.ImportFrom) and child.module and child.module.startswith("anaphora"):
            yield child.module
            yield from (f"{child.module}.{alias.name}" for alias in child.names)
        yield from _imports(child)
