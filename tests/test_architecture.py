from __future__ import annotations

import ast
import dataclasses
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

from anaphora.cli import COMMANDS

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "anaphora"
SOURCES = sorted(PACKAGE.rglob("*.py"))
SCRIPTS = sorted((ROOT / "scripts").glob("*.py"))
OUTSIDE = ("benchmarks", "experiments")
"""Folders that import the package, but are never imported by it."""
PROGRAMS = sorted(
    path for folder in OUTSIDE for path in (ROOT / folder).rglob("*.py") if not path.name.startswith("test_")
)
HEAVY = ("torch", "datasets", "pytorch_lightning", "pandas", "pyarrow", "matplotlib", "sklearn", "scipy", "tokenizers")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@functools.cache
def imports(path: Path, at_start: bool = False) -> set[str]:
    """Return the dotted names that a file imports, except for types: for `from a import b` both `a` and `a.b`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names: set[str] = set()
    for node in _statements(tree, at_start):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def _statements(node: ast.AST, at_start: bool) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        if at_start and isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if _builds_itself(node, child):
            continue
        yield child
        yield from _statements(child, at_start)


def _builds_itself(node: ast.AST, child: ast.AST) -> bool:
    """Return whether a node is the method `build` of a variant's settings, which alone may import higher rooms."""
    return isinstance(node, ast.ClassDef) and isinstance(child, ast.FunctionDef) and child.name == "build"


def uses(path: Path, package: str) -> bool:
    return any(name == package or name.startswith(f"{package}.") for name in imports(path))


def inside(*folders: str) -> list[Path]:
    return [path for path in SOURCES if path.relative_to(PACKAGE).parts[0] in folders]


def test_there_is_something_to_look_at() -> None:
    assert len(SOURCES) > 40
    assert len(SCRIPTS) > 5


BELOW: dict[str, tuple[str, ...]] = {
    "base": (),
    "settings": ("base",),
    "data": ("base", "settings"),
    "model": ("base", "settings"),
    "runs": ("base", "settings", "data", "model"),
    "analysis.maps": ("base", "settings", "data", "model", "runs"),
    "analysis.results": ("base",),
    "analysis.scores": ("base", "data", "analysis.maps", "analysis.results"),
    "analysis.causal": (
        *("base", "settings", "data", "model", "runs"),
        *("analysis.maps", "analysis.results", "analysis.scores"),
    ),
    "analysis.evidence": (
        *("base", "settings", "data", "runs"),
        *("analysis.maps", "analysis.results", "analysis.scores", "analysis.causal"),
    ),
    "analysis.tasks": (
        *("base", "settings", "data", "model", "runs"),
        *("analysis.maps", "analysis.results", "analysis.scores", "analysis.evidence"),
    ),
    "report": ("base", "data", "analysis.maps", "analysis.results", "analysis.scores", "analysis.evidence"),
    "training": ("base", "settings", "data", "model", "runs", "analysis.maps", "report"),
    "explain": ("base", "settings", "data", "model", "runs", "analysis.evidence", "report"),
    "hf": (
        *("base", "settings", "data", "model", "runs"),
        *("analysis.maps", "analysis.results", "analysis.scores", "analysis.causal", "analysis.evidence"),
    ),
    "studies": (
        *("base", "settings", "data", "model", "runs", "training", "report"),
        *("analysis.maps", "analysis.results", "analysis.scores", "analysis.causal", "analysis.evidence"),
        "analysis.tasks",
    ),
    "commands": (
        *("base", "settings", "data", "model", "runs", "training", "report"),
        *("explain", "studies", "hf", "api"),
        *("analysis.maps", "analysis.results", "analysis.scores", "analysis.causal", "analysis.evidence"),
        "analysis.tasks",
    ),
    "api": (
        *("base", "settings", "data", "runs", "explain", "report", "hf"),
        *("analysis.maps", "analysis.results", "analysis.scores", "analysis.causal", "analysis.evidence"),
        "analysis.tasks",
    ),
    "cli": ("base", "settings", "runs"),
    "__init__": ("api", "cli", "settings"),
    "__main__": ("cli",),
}
"""Rooms that each room may import; a room that is not listed may import none."""


def room_of(module: str) -> str:
    """Return the room of a dotted name without "anaphora."; analysis has six rooms."""
    parts = module.split(".")
    return ".".join(parts[: 2 if parts[0] == "analysis" else 1])


def rooms_used(path: Path) -> set[str]:
    names = {name.removeprefix("anaphora.") for name in imports(path) if name.startswith("anaphora.")}
    places = {name for name in names if (PACKAGE / name.replace(".", "/")).exists() or module_file(name).exists()}
    return {room_of(name) for name in places}


def module_file(name: str) -> Path:
    return PACKAGE / f"{name.replace('.', '/')}.py"


def test_each_room_imports_only_the_rooms_below_it() -> None:
    for path in SOURCES:
        room = room_of(".".join(path.relative_to(PACKAGE).with_suffix("").parts))
        assert rooms_used(path) - {room, "analysis"} <= set(BELOW.get(room, ())), name_of(path)


def test_only_settings_build_what_stands_above_them() -> None:
    outside = [path for path in SOURCES if path not in inside("settings")]
    trees = {path: ast.walk(ast.parse(path.read_text(encoding="utf-8"))) for path in outside}
    building = [
        name_of(path)
        for path, tree in trees.items()
        for node in tree
        if any(
            _builds_itself(node, child) and any(isinstance(inner, ast.ImportFrom) for inner in ast.walk(child))
            for child in ast.iter_child_nodes(node)
        )
    ]
    assert building == []


@pytest.mark.parametrize("folder", OUTSIDE)
def test_the_package_never_imports_an_experiment_or_a_benchmark(folder: str) -> None:
    importing = [path for path in PROGRAMS if path.relative_to(ROOT).parts[0] == folder and uses(path, "anaphora")]
    assert importing  # the reverse is what they are for
    assert [name_of(path) for path in [*SOURCES, *SCRIPTS] if uses(path, folder)] == []


def test_every_room_has_its_line() -> None:
    rooms = {room_of(".".join(path.relative_to(PACKAGE).with_suffix("").parts)) for path in SOURCES}
    assert rooms - {"analysis.__init__"} == set(BELOW)


def test_what_a_run_is_made_of_knows_nothing_of_what_commands_ask() -> None:
    asking = (
        "anaphora.commands.parts.settings",
        "anaphora.analysis.evidence.plan",
        "anaphora.studies.plan",
        "anaphora.settings.compose",
    )
    rooms = inside("data", "model", "runs", "training")
    wrong = [name_of(path) for path in rooms if any(uses(path, one) for one in asking)]
    assert wrong == []


@pytest.mark.parametrize(
    ("package", "allowed"),
    [
        ("pytorch_lightning", ("training",)),
        ("datasets", ("data",)),
        ("tokenizers", ("data", "hf/loading.py")),
        ("matplotlib", ("report", "studies/page/figures.py")),
        ("PIL", ("training/tensorboard",)),
        ("tensorboard", ("training",)),
        ("transformers", ("hf",)),
        ("hydra", ("settings/compose.py", "cli.py")),
        ("submitit", ("studies/slurm.py",)),
    ],
)
def test_each_library_stays_in_its_folder(package: str, allowed: tuple[str, ...]) -> None:
    places = [(path, path.relative_to(PACKAGE)) for path in SOURCES]
    elsewhere = [path for path, place in places if not any(place.is_relative_to(room) for room in allowed)]
    assert [name_of(path) for path in elsewhere if uses(path, package)] == []


def test_of_training_only_tensorboard_knows_analysis_and_report() -> None:
    knowing = [path for path in inside("training") if rooms_used(path) & {"analysis.maps", "report"}]
    assert {path.parent.name for path in knowing} == {"tensorboard"}


def test_no_two_modules_import_each_other() -> None:
    graph = {path: [file for file in SOURCES if file != path and _imports_file(path, file)] for path in SOURCES}
    left = set(graph)
    while free := {path for path in left if not any(other in left for other in graph[path])}:
        left -= free
    assert sorted(map(name_of, left)) == []


def _imports_file(path: Path, file: Path) -> bool:
    return ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts) in imports(path, at_start=True)


def test_each_script_is_its_question_and_one_call_of_the_command_table() -> None:
    assert {path.stem for path in SCRIPTS} == set(COMMANDS)
    for path in SCRIPTS:
        question, *code = ast.parse(path.read_text(encoding="utf-8")).body
        assert isinstance(question, ast.Expr), name_of(path)
        assert [ast.unparse(line) for line in code] == [
            "from anaphora.cli import run_command",
            f"if __name__ == '__main__':\n    run_command('{path.stem}')",
        ], name_of(path)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_its_settings_and_its_work(name: str) -> None:
    command = COMMANDS[name]
    assert callable(command.work)
    assert dataclasses.is_dataclass(command.schema)
    assert command.is_composed == (name in ("train", "demo", "study"))
    assert command.description.endswith(".")


def check_nothing_loads(files: list[Path], libraries: tuple[str, ...]) -> None:
    """Check that neither these files nor the modules that they import load a library at import time."""
    read_files: set[Path] = set()
    waiting = [*files]
    while waiting:
        here = waiting.pop()
        if here in read_files or not here.exists():
            continue
        read_files.add(here)
        names = imports(here, at_start=True)
        assert [one for one in libraries if any(name.split(".")[0] == one for name in names)] == [], name_of(here)
        waiting += [ROOT / "src" / f"{name.replace('.', '/')}.py" for name in names if name.startswith("anaphora")]


def test_settings_and_commands_import_nothing_heavy() -> None:
    commands = [command.path for command in COMMANDS.values()]
    light = [PACKAGE / "cli.py", PACKAGE / "runs" / "warm_start.py", PACKAGE / "data" / "example.py", *commands]
    check_nothing_loads([*inside("settings"), *light], HEAVY)


def test_a_report_is_made_without_torch() -> None:
    check_nothing_loads(inside("report"), ("torch", "pytorch_lightning", "datasets", "transformers"))


def test_nothing_runs_code_from_a_file() -> None:
    forbidden_calls = {"eval", "exec", "compile", "__import__", "instantiate"}
    allowed = ("src/anaphora/base/code.py", "compile")  # of the package's own files, for a digest; nothing is run
    wrong = []
    for path in [*SOURCES, *SCRIPTS, *PROGRAMS]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                called = node.func
                name = (
                    called.id
                    if isinstance(called, ast.Name)
                    else called.attr
                    if isinstance(called, ast.Attribute)
                    else ""
                )
                plain = isinstance(called, ast.Name) or name == "instantiate"
                if name in forbidden_calls and plain and (name_of(path), name) != allowed:
                    wrong.append((name_of(path), name))
                if any(
                    word.arg == "weights_only" and isinstance(word.value, ast.Constant) and word.value.value is False
                    for word in node.keywords
                ):
                    wrong.append((name_of(path), "weights_only=False"))
                if ast.unparse(called) == "torch.load" and not any(
                    word.arg == "weights_only" for word in node.keywords
                ):
                    wrong.append((name_of(path), "torch.load"))
        if any(uses(path, one) for one in ("pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal")):
            wrong.append((name_of(path), "pickle"))
    assert wrong == []


def test_no_configuration_names_code_to_run() -> None:
    files = list((ROOT / "configs").rglob("*.yaml"))
    assert files
    assert [name_of(path) for path in files if "_target_" in path.read_text(encoding="utf-8")] == []


def public(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    """Yield the public classes and functions of a module."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node


def test_every_module_and_public_class_and_function_says_what_it_is() -> None:
    silent = []
    for path in [*SOURCES, *SCRIPTS, *PROGRAMS]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if not ast.get_docstring(tree):
            silent.append(name_of(path))
        if path not in SCRIPTS:
            silent += [f"{name_of(path)}: {node.name}" for node in public(tree) if not ast.get_docstring(node)]
    assert silent == []


def test_a_public_class_has_its_name_to_itself_but_for_the_settings_of_a_module() -> None:
    files: dict[str, list[str]] = {}
    for path in SOURCES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                files.setdefault(node.name, []).append(name_of(path))
    settings = {name_of(path) for path in inside("settings")}
    twice = {name: where for name, where in files.items() if len(where) > 1}
    assert {name: where for name, where in twice.items() if len(where) > 2 or len(settings & set(where)) != 1} == {}


def test_no_file_is_too_long_to_read() -> None:
    long = {
        name_of(path): len(path.read_text(encoding="utf-8").splitlines()) for path in [*SOURCES, *SCRIPTS, *PROGRAMS]
    }
    assert {name: lines for name, lines in long.items() if lines > 400} == {}


def test_no_room_is_too_full_to_find_something_in() -> None:
    of_a_kind = ("data/corpora", "commands", "analysis/scores/measures", "report/page/sections")
    folders = {path.parent for path in SOURCES} - {PACKAGE / folder for folder in of_a_kind}
    files = {name_of(folder): len(list(folder.glob("*.py"))) for folder in folders}
    assert {name: count for name, count in files.items() if count > 12} == {}
    children = [path for path in PACKAGE.iterdir() if path.name not in ("__pycache__", "py.typed")]
    assert len(children) <= 18
    assert len([path for path in children if path.is_file()]) <= 5
