"""What an installation from the wheel holds."""

from __future__ import annotations

import tomllib
import zipfile
from configparser import ConfigParser
from email import message_from_string
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from anaphora import cli

ROOT = Path(__file__).parent.parent


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
    assert metadata(wheel, "licenses/LICENSE") == (ROOT / "LICENSE").read_text(encoding="utf-8")
    extras = message_from_string(metadata(wheel, "METADATA")).get_all("Provides-Extra") or []
    assert {"transformers", "bench", "dev"} <= set(extras)


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
    copied = [name for line in written.splitlines() if line.startswith("COPY ") for name in line.split()[1:-1]]
    assert copied and all((ROOT / name).exists() for name in copied)
    assert {"pyproject.toml", "requirements.lock", "configs", "src", "README.md", "LICENSE"} <= set(copied)


def test_each_lock_file_pins_what_is_named_for_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = (project["dependencies"], project["optional-dependencies"]["dev"])
    pinned = [
        pins((ROOT / name).read_text(encoding="utf-8")) for name in ("requirements.lock", "requirements-dev.lock")
    ]
    for requirements, versions in zip(map(to_requirements, named), pinned, strict=True):
        for name, requirement in requirements.items():
            assert requirement.specifier.contains(versions[name]), name
    assert not pinned[0].keys() & pinned[1].keys()


def to_requirements(lines: list[str]) -> dict[str, Requirement]:
    return {canonicalize_name(each.name): each for each in map(Requirement, lines)}


def pins(lock: str) -> dict[str, str]:
    return {canonicalize_name(name): version for name, version in (line.split("==") for line in lock.splitlines())}
