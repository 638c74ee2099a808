from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "anaphora"
SOURCES = sorted(PACKAGE.rglob("*.py"))
SCRIPTS = sorted((ROOT / "scripts").glob("*.py"))
HEAVY = ("torch", "datasets", "pytorch_lightning", "pandas", "pyarrow", "matplotlib", "sklearn", "scipy", "tokenizers")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def imports(path: Path, at_start: bool = False) -> set[str]:
    """What a file imports, as dotted names; of `from a import b` both `a` and `a.b`. Types alone do not count."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found: set[str] = set()
    for node in _statements(tree, at_start):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def _statements(node: ast.AST, at_start: bool) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        if at_start and isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        yield child
        yield from _statements(child, at_start)


def uses(path: Path, package: str) -> bool:
    return any(name == package or name.startswith(f"{package}.") for name in imports(path))


def inside(*folders: str) -> list[Path]:
    return [path for path in SOURCES if path.relative_to(PACKAGE).parts[0] in folders]


def test_there_is_something_to_look_at() -> None:
    assert len(SOURCES) > 40
    assert len(SCRIPTS) > 5
    assert "hydra" in imports(SCRIPTS[0])


@pytest.mark.parametrize(
    ("folder", "forbidden"),
    [
        ("model", ("data", "training", "analysis", "report", "benchmark", "checkpoint", "workflow", "config")),
        ("data", ("analysis", "training", "report", "benchmark", "model", "checkpoint", "workflow", "config")),
        ("analysis", ("training", "report", "benchmark", "workflow")),
        ("report", ("training", "benchmark", "model", "workflow")),
        ("training", ("benchmark", "workflow", "studies")),
        ("explain", ("training", "benchmark")),
    ],
)
def test_each_folder_knows_only_what_is_below_it(folder: str, forbidden: tuple[str, ...]) -> None:
    wrong = [
        (name_of(path), other) for path in inside(folder) for other in forbidden if uses(path, f"anaphora.{other}")
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("package", "allowed"),
    [
        ("pytorch_lightning", ("training", "benchmark")),
        ("datasets", ("data",)),
        ("tokenizers", ("data",)),
        ("matplotlib", ("report",)),
        ("PIL", ("report",)),
        ("tensorboard", ("training",)),
        ("transformers", ("benchmark",)),
        ("hydra", ("config.py", "command.py")),
    ],
)
def test_each_library_stays_in_its_folder(package: str, allowed: tuple[str, ...]) -> None:
    elsewhere = [path for path in SOURCES if path.relative_to(PACKAGE).parts[0] not in allowed]
    assert [name_of(path) for path in elsewhere if uses(path, package)] == []


def test_of_training_only_what_it_shows_knows_analysis_and_report() -> None:
    knowing = {path.name for path in inside("training") if any(uses(path, f"anaphora.{one}") for one in ROOMS)}
    assert knowing == {"curves.py"}


ROOMS = ("analysis", "report")


def test_only_scripts_use_hydra_main() -> None:
    assert [name_of(path) for path in SOURCES if re.search(r"^@hydra\.main", path.read_text(), re.MULTILINE)] == []
    assert all("@hydra.main(version_base=" in path.read_text() for path in SCRIPTS)


@pytest.mark.parametrize(
    "path",
    [*PACKAGE.rglob("settings.py"), PACKAGE / "config.py", PACKAGE / "command.py", PACKAGE / "data" / "example.py"],
    ids=name_of,
)
def test_settings_and_config_import_nothing_heavy(path: Path) -> None:
    seen: set[Path] = set()
    waiting = [path]
    while waiting:
        here = waiting.pop()
        if here in seen or not here.exists():
            continue
        seen.add(here)
        names = imports(here, at_start=True)
        assert [one for one in HEAVY if any(name.split(".")[0] == one for name in names)] == [], name_of(here)
        waiting += [ROOT / "src" / f"{name.replace('.', '/')}.py" for name in names if name.startswith("anaphora")]


@pytest.mark.parametrize("path", SCRIPTS, ids=name_of)
def test_scripts_import_what_is_heavy_after_the_settings_are_checked(path: Path) -> None:
    names = imports(path, at_start=True)
    assert [one for one in HEAVY if any(name.split(".")[0] == one for name in names)] == []
    assert {one for one in names if one.startswith("anaphora.")} - {"anaphora.errors"} <= {
        f"anaphora.{one}"
        for module in (
            *("command", "config", "start"),
            *(f"{room}.settings" for room in ("analysis", "benchmark", "explain", "replication", "studies")),
        )
        for one in (module, *(f"{module}.{name}" for name in WORDS))
    }


WORDS = (
    *("config_folder", "guarded", "launch", "Config", "resolve", "settle", "CrossValidation", "Export"),
    *("Analysis", "AntecedentSelection", "Benchmark", "Comparison", "Description", "Evidence", "Explanation"),
    *("NameDecisions", "Plan", "Replication", "Report", "Transfer", "LabelTable"),
)


def test_nothing_runs_code_from_a_file() -> None:
    forbidden_calls = {"eval", "exec", "compile", "__import__", "instantiate"}
    wrong = []
    for path in [*SOURCES, *SCRIPTS]:
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
                if name in forbidden_calls and plain:
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
    """Public classes and functions of a module. A method of the same name as its base's inherits its docstring."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node


def test_every_module_and_public_class_and_function_says_what_it_is() -> None:
    silent = []
    for path in [*SOURCES, *SCRIPTS]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if not ast.get_docstring(tree):
            silent.append(name_of(path))
        if path in SOURCES:
            silent += [f"{name_of(path)}: {node.name}" for node in public(tree) if not ast.get_docstring(node)]
    assert silent == []


def test_no_file_is_too_long_to_read() -> None:
    long = {name_of(path): len(path.read_text(encoding="utf-8").splitlines()) for path in [*SOURCES, *SCRIPTS]}
    assert {name: lines for name, lines in long.items() if lines > 800} == {}
