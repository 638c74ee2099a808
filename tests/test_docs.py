"""What README and docs say holds: links lead somewhere, commands compose, pages are current."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from anaphora.analysis.settings import (
    Analysis,
    AntecedentSelection,
    Comparison,
    CrossValidation,
    Description,
    Evidence,
    Export,
    NameDecisions,
    Report,
)
from anaphora.benchmark.settings import Benchmark
from anaphora.config import Config, resolve
from anaphora.data.example import from_record
from anaphora.explain.settings import Explanation
from anaphora.replication.settings import Replication
from anaphora.studies.settings import Plan, Rule

ROOT = Path(__file__).parent.parent
READMES = ("README.md", "README.zh.md")
PAGES = [ROOT / name for name in (*READMES, "CONTRIBUTING.md", "CHANGELOG.md")] + sorted((ROOT / "docs").glob("*.md"))
ASKED = (
    *(Analysis, AntecedentSelection, Comparison, CrossValidation, Description, Benchmark),
    *(Evidence, Explanation, Export, NameDecisions, Plan, Report, Replication),
)
SETTINGS = {each.__name__: each for each in (Config, *ASKED)}
COMMAND = re.compile(r"\.venv/bin/python (scripts/\w+\.py[^`\n]*)")


def commands(page: Path) -> list[str]:
    return [match[1].strip() for match in COMMAND.finditer(page.read_text(encoding="utf-8"))]


COMMANDS = sorted({command for page in PAGES for command in commands(page)})


def first_of_a_sweep(override: str) -> str:
    parsed = OverridesParser.create().parse_override(override)
    return (
        f"{parsed.get_key_element()}={next(parsed.sweep_string_iterator())}" if parsed.is_sweep_override() else override
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_relative_link_leads_to_a_file(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if ":" not in link and not (page.parent / link).exists()]
    assert not missing


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_composes_into_settings_that_pass_their_checks(command: str, compose: Callable[..., Any]) -> None:
    script, *words = shlex.split(command, comments=True)
    source = (ROOT / script).read_text(encoding="utf-8")
    primary, kind = (re.search(pattern, source) for pattern in (r'config_name="(\w+)"', r"resolve\(composed, (\w+)\)"))
    assert primary is not None
    assert kind is not None
    overrides = [first_of_a_sweep(word) for word in words if not word.startswith("-") and word != "job"]
    assert resolve(compose(*overrides, primary=primary[1]), SETTINGS[kind[1]])


def test_both_languages_of_the_readme_name_the_same_commands_and_pages() -> None:
    english, chinese = (ROOT / name for name in READMES)
    assert commands(english) == commands(chinese)
    assert len(commands(english)) > 10
    links = [
        set(re.findall(r"\]\((?!README)([^)\s]+)\)", page.read_text(encoding="utf-8"))) for page in (english, chinese)
    ]
    assert links[0] == links[1]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_make_target_that_is_named_exists(page: Path) -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"(?:`|^)make (\w+)", page.read_text(encoding="utf-8"), re.MULTILINE)) <= targets


def test_every_example_row_of_the_docs_is_a_valid_example_about_a_pronoun() -> None:
    found = []
    for page in PAGES:
        for block in re.findall(r"```json\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            found += [from_record(json.loads(line)) for line in block.splitlines()]
    assert found
    assert {one.text[slice(*one.pronoun)] for one in found} == {"she", "她"}
    assert {one.words(one.antecedents[0]) for one in found} == {"Emma", "美玲"}


def test_the_page_of_settings_is_current() -> None:
    written = make_settings()
    assert written.PAGE.read_text(encoding="utf-8") == written.page(), "run python docs/make_settings.py"


def test_the_page_of_settings_explains_no_setting_that_has_gone() -> None:
    classes = {each.__name__: each for each in every_settings_class()}
    for name in make_settings().MEANINGS:
        owner, _, setting = name.partition(".")
        assert setting in classes[owner].__dataclass_fields__, name


def make_settings() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_settings", ROOT / "docs" / "make_settings.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def every_settings_class() -> list[Any]:
    from anaphora.data import settings as data
    from anaphora.model import settings as model
    from anaphora.training import settings as training

    found = [each for module in (data, model, training) for each in vars(module).values() if isinstance(each, type)]
    return [*found, Rule, *SETTINGS.values()]
