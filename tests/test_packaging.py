"""Tests of the contents of the wheel."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import subprocess
import sys
import tomllib
import zipfile
from configparser import ConfigParser
from email import message_from_string
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from anaphora import cli
from anaphora.base.hub import OLDEST_TRANSFORMERS

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCK_FILES = ("requirements.lock", "requirements-torch.lock", "requirements-dev.lock")
PACKAGE_OF_MODULE = {
    "hydra": "hydra-core",
    "lightning_fabric": "pytorch-lightning",
    "PIL": "pillow",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}
"""Package names of modules with another name."""
NEEDED_WITHOUT_IMPORT = {
    "hydra-joblib-launcher": "Hydra finds its plugins itself",
    "hydra-optuna-sweeper": "Hydra finds its plugins itself",
    "hydra-submitit-launcher": "Hydra finds its plugins itself",
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    builders = pytest.importorskip("hatchling.builders.wheel")
    folder = tmp_path_factory.mktemp("wheel")
    (path,) = builders.WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    return zipfile.ZipFile(path)


def metadata(wheel: zipfile.ZipFile, name: str) -> str:
    (path,) = (one for one in wheel.namelist() if one.endswith(f".dist-info/{name}"))
    return wheel.read(path).decode()


def test_the_wheel_holds_the_package_its_configurations_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    package = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src" / "anaphora").rglob("*")}
    configs = {f"anaphora/{path.relative_to(ROOT).as_posix()}" for path in (ROOT / "configs").rglob("*.yaml")}
    names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert {name for name in package if not name.endswith((".pyc", "__pycache__"))} - names == {
        name for name in package if (ROOT / "src" / name).is_dir() and not name.endswith("__pycache__")
    }
    assert configs <= names and names <= package | configs
    assert "anaphora/py.typed" in names


def test_the_wheel_gives_the_command_its_licence_and_its_extras(wheel: zipfile.ZipFile) -> None:
    entries = ConfigParser()
    entries.read_string(metadata(wheel, "entry_points.txt"))
    assert dict(entries["console_scripts"]) == {"anaphora": "anaphora.cli:main"}
    for path in ("LICENSE", "src/anaphora/report/fonts/OFL.txt"):
        assert metadata(wheel, f"licenses/{path}") == (ROOT / path).read_text(encoding="utf-8")
    extras = message_from_string(metadata(wheel, "METADATA")).get_all("Provides-Extra") or []
    assert {"transformers", "bench", "dev", "fonts"} <= set(extras)


def test_the_command_lists_every_command_with_what_it_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["anaphora", "--help"])
    cli.main()
    lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    assert [name for name, _ in lines] == list(cli.COMMANDS)
    assert all(does.endswith(".") for _, does in lines)


def test_the_image_installs_what_the_wheel_needs() -> None:
    written = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    copied = {name for line in written.splitlines() if line.startswith("COPY ") for name in line.split()[1:-1]}
    assert all((ROOT / name).exists() for name in copied)
    assert {"pyproject.toml", *LOCK_FILES[:2], "configs", "src", "README.md", "LICENSE"} <= copied
    let_through = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert {f"!{name}" for name in copied} <= set(let_through)


def test_any_user_may_run_the_image_and_owns_what_it_writes() -> None:
    written = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert "chmod 1777 /home/user\n" in written and "ENV HOME=/home/user\n" in written  # the cache is in the home
    assert "mkdir -p outputs\n" in written  # Docker makes a missing folder for root
    mounts = [line for line in written.splitlines() if " -v " in line]
    assert len(mounts) == 2 and all('--user "$(id -u):$(id -g)"' in line for line in mounts)


def test_every_package_that_is_imported_is_declared_and_every_declared_one_is_needed() -> None:
    extras = {name: packages for name, packages in PROJECT["optional-dependencies"].items() if name != "dev"}
    optional = to_requirements([line for lines in extras.values() for line in lines]).keys()
    always = to_requirements(PROJECT["dependencies"]).keys()
    imported = {package for path in (ROOT / "src").rglob("*.py") for package in imported_packages(path)}
    assert imported - always - optional == set()
    assert (always | optional) - imported - NEEDED_WITHOUT_IMPORT.keys() == set()


def test_every_extra_with_transformers_needs_the_version_that_the_code_needs() -> None:
    oldest = ".".join(map(str, OLDEST_TRANSFORMERS))
    lines = [line for lines in PROJECT["optional-dependencies"].values() for line in lines if "transformers" in line]
    assert len(lines) == 3 and {*lines} == {f"transformers>={oldest}"}


@pytest.mark.parametrize(
    ("line", "package"),
    [
        ("import PIL.Image", "pillow"),
        ("def f():\n    from werkzeug.serving import run_simple", "werkzeug"),
        ("find_spec('mlflow')", "mlflow"),
        ("importlib.import_module('transformers.utils')", "transformers"),
    ],
)
def test_an_import_is_found_wherever_it_stands(line: str, package: str, tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(line, encoding="utf-8")
    assert imported_packages(tmp_path / "module.py") == {package}


def test_the_classifiers_name_every_python_that_is_allowed() -> None:
    allowed = SpecifierSet(PROJECT["requires-python"])
    named = {one.rpartition(" ")[2] for one in PROJECT["classifiers"] if one.startswith("Programming Language")}
    assert named == {f"3.{minor}" for minor in range(30) if f"3.{minor}.0" in allowed}


def test_releases_that_are_malicious_or_have_a_known_hole_and_a_python_that_hydra_cannot_start_on_are_excluded() -> (
    None
):
    (lightning,) = (Requirement(one) for one in PROJECT["dependencies"] if one.startswith("pytorch-lightning"))
    assert [one for one in ("2.6.2", "2.6.3", "2.6.4", "2.6.5") if lightning.specifier.contains(one)] == []
    assert not SpecifierSet(PROJECT["requires-python"]).contains("3.14.0")


@pytest.mark.parametrize("version", [(3, 10), (3, 11), (3, 12), (3, 13), (3, 14), (3, 15)])
def test_make_takes_the_pythons_that_the_package_allows(version: tuple[int, int], tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\n"{sys.executable}" -c "import sys; sys.version_info = {version}\n$2"\n')
    python.chmod(0o755)
    for name in (*LOCK_FILES, "pyproject.toml"):
        (tmp_path / name).touch()
    bin_folder = tmp_path / ".venv" / "bin"
    bin_folder.mkdir(parents=True)
    (bin_folder / "python").symlink_to("/bin/true")
    done = subprocess.run(
        ["make", "--silent", "-f", ROOT / "Makefile", ".venv/.ready", f"PYTHON={python}"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    allowed = SpecifierSet(PROJECT["requires-python"]).contains(".".join(map(str, version)))
    assert (done.returncode == 0) == allowed
    lines = [line for line in done.stdout.splitlines() if "Python" in line]
    assert lines == ([] if allowed else ["Python 3.11, 3.12 or 3.13 is needed; name one with make PYTHON=python3.13"])


def test_each_lock_file_pins_what_is_named_for_it() -> None:
    run, torch, tools = (pins(name) for name in LOCK_FILES)
    for lines, versions in ((PROJECT["dependencies"], run | torch), (PROJECT["optional-dependencies"]["dev"], tools)):
        for name, requirement in to_requirements(lines).items():
            assert requirement.specifier.contains(versions[name]), name
    assert not run.keys() & tools.keys()
    assert torch.keys() == {"torch"} and "torch" not in run


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock"])
def test_every_line_of_a_lock_file_has_its_hashes_and_names_no_host(name: str) -> None:
    for line in locked_lines(name):
        assert re.fullmatch(r"[a-z0-9-]+==[\w.]+( --hash=sha256:[0-9a-f]{64})+", line), line


@pytest.mark.parametrize("name", LOCK_FILES)
def test_what_a_lock_file_pins_runs_on_every_python_that_the_package_allows(name: str) -> None:
    """Debian 12 has Python 3.11.2, for which a package may be too new that later versions of 3.11 install."""
    for package in pins(name):
        needed = importlib.metadata.metadata(package)["Requires-Python"] or ""
        assert all(SpecifierSet(needed).contains(version) for version in ("3.11.0", "3.13.0")), (package, needed)


def test_whoever_installs_a_lock_file_with_hashes_has_them_checked() -> None:
    for file in ("Makefile", "Dockerfile"):
        lines = [line for line in (ROOT / file).read_text(encoding="utf-8").splitlines() if " install " in line]
        assert {name for line in lines for name in LOCK_FILES if name in line} >= set(LOCK_FILES[:2])
        for line in lines:
            assert ("--no-deps --require-hashes" in line) == bool(re.search(r"requirements(-dev)?\.lock", line)), line


def to_requirements(lines: list[str]) -> dict[str, Requirement]:
    return {canonicalize_name(each.name): each for each in map(Requirement, lines)}


def locked_lines(name: str) -> list[str]:
    """Return one line for each package of a lock file, including its hashes."""
    return re.sub(r" \\\n +", " ", (ROOT / name).read_text(encoding="utf-8")).splitlines()


def pins(name: str) -> dict[str, str]:
    requirements = to_requirements([line.split(" --hash")[0] for line in locked_lines(name)])
    return {package: str(requirement.specifier).removeprefix("==") for package, requirement in requirements.items()}


def imported_packages(path: Path) -> set[str]:
    """Return the packages, by their names on PyPI, whose modules a file imports or looks for."""
    modules = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names):
                modules |= {alias.name for alias in names}
            case ast.ImportFrom(module=str(module), level=0):
                modules.add(module)
            case ast.Call(
                func=ast.Name(id="find_spec" | "import_module") | ast.Attribute(attr="find_spec" | "import_module"),
                args=[ast.Constant(value=str(module)), *_],
            ):
                modules.add(module)
    # Type checkers bring `_typeshed`; it is never imported.
    roots = {module.partition(".")[0] for module in modules} - sys.stdlib_module_names - {"anaphora", "_typeshed"}
    return {PACKAGE_OF_MODULE.get(root, canonicalize_name(root)) for root in roots}
