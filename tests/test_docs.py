"""What README and docs say holds: links lead somewhere, commands compose, pages are current."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import unquote, urlsplit

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
    LabelTable,
    NameDecisions,
    Report,
    Transfer,
)
from anaphora.benchmark.settings import Benchmark
from anaphora.config import Config, resolve
from anaphora.data.example import from_record
from anaphora.explain.settings import Explanation
from anaphora.place import Place, PlaceOfRuns
from anaphora.replication.settings import Replication
from anaphora.studies.settings import Plan, Rule

ROOT = Path(__file__).parent.parent
READMES = ("README.md", "README.zh.md")
PAGES = [ROOT / name for name in (*READMES, "CONTRIBUTING.md", "CHANGELOG.md")] + sorted((ROOT / "docs").glob("*.md"))
ASKED = (
    *(Analysis, AntecedentSelection, Comparison, CrossValidation, Description, Benchmark),
    *(Evidence, Explanation, Export, NameDecisions, Plan, Report, Replication, Transfer, LabelTable),
)
SETTINGS = {each.__name__: each for each in (Config, *ASKED)}
COMMAND = re.compile(r"\.venv/bin/python (scripts/\w+\.py[^`\n]*)")
PICTURE = re.compile(r"!\[[^]]+\]\(([^)]+)\)")


def commands(page: Path) -> list[str]:
    return [match[1].strip() for match in COMMAND.finditer(page.read_text(encoding="utf-8"))]


def commands_of_headers() -> list[str]:
    """What the first lines of configurations and scripts say to type, placeholders for paths aside."""
    files = [*(ROOT / "configs").rglob("*.yaml"), *(ROOT / "scripts").glob("*.py")]
    found = [match[1] for path in files for match in HEADER.finditer(path.read_text(encoding="utf-8"))]
    return [command.strip().removesuffix('"""').rstrip(".") for command in found if "..." not in command]


HEADER = re.compile(r"python (scripts/\w+\.py[^\n;:`]*)")
"""A command in a comment or docstring; it ends where the line or its clause does."""
COMMANDS = sorted({command for page in PAGES for command in commands(page)} | set(commands_of_headers()))


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


IN_BOTH_LANGUAGES = ("README", "docs/gallery")


@pytest.mark.parametrize("name", IN_BOTH_LANGUAGES)
def test_both_languages_have_the_same_commands_pictures_and_links(name: str) -> None:
    texts = [(ROOT / f"{name}{ending}").read_text(encoding="utf-8") for ending in (".md", ".zh.md")]
    for pattern in (COMMAND, PICTURE, re.compile(r"^make \w+", re.MULTILINE)):
        english, chinese = (Counter(pattern.findall(text)) for text in texts)
        assert english == chinese
        assert english
    to_others = re.compile(rf"\]\((?!{Path(name).name})([^)\s]+)\)")
    links = [{link.replace(".zh.md", ".md") for link in to_others.findall(text)} for text in texts]
    assert links[0] == links[1]


@pytest.mark.parametrize("readme", READMES)
def test_the_first_commands_of_the_readme_are_three_and_end_with_a_sentence_of_ones_own(readme: str) -> None:
    text = (ROOT / readme).read_text(encoding="utf-8")
    first = re.search(r"```bash\n(.*?)```", text, re.DOTALL)
    assert first is not None
    clone, demo, asked = first[1].splitlines()
    assert clone.startswith("git clone ") and demo == "make demo" and "explain.py" in asked and "text=" in asked
    assert text[: first.start()].count("\n") < 20
    assert PICTURE.search(text[: first.start()])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_make_target_that_is_named_exists(page: Path) -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"(?:`|^)make (\w+)", page.read_text(encoding="utf-8"), re.MULTILINE)) <= targets


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_text_is_taken_for_html(page: Path) -> None:
    text = re.sub(r"^```.*?^```$|`[^`\n]+`|<!--.*?-->", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    assert not re.findall(r"<[A-Za-z/][^>]*>", text), "write &lt; or mark it as code"


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
    return [*found, Place, PlaceOfRuns, Rule, *SETTINGS.values()]


class Page(HTMLParser):
    """A page of the site: what it asks for, where its links lead, and the places that links may name."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.asked_for: list[str] = []
        self.places: set[str] = set()
        self.classes: set[str] = set()
        self.language = ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attributes}
        asked_for = [found[name] for name in ("src", "data", "poster") if name in found]
        if tag == "link":
            asked_for.append(found["href"])
        if tag == "a":
            self.links += [found[name] for name in ("href",) if name in found]
        if tag == "html":
            self.language = found["lang"]
        self.asked_for += asked_for
        self.places |= {found[name] for name in ("id", "name") if name in found}
        self.classes |= set(found.get("class", "").split())


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site; a warning of the build is a failure."""
    folder: Path = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict"]  # --quiet would hide warnings from --strict
    built = subprocess.run(
        [*command, "--config-file", str(ROOT / "mkdocs.yml"), "--site-dir", str(folder)],
        capture_output=True,
        text=True,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def test_the_site_asks_no_other_host_for_anything(site: Path) -> None:
    pages = {path: Page(path) for path in site.rglob("*.html")}
    assert len(pages) > len(list((ROOT / "docs").glob("*.md")))
    outside = {(path.name, url) for path, page in pages.items() for url in page.asked_for if urlsplit(url).netloc}
    assert not outside
    # The theme's script fetches a library for diagrams, and nothing else, where a page has one.
    assert not any("mermaid" in page.classes for page in pages.values())
    for path in site.rglob("*.css"):
        text = path.read_text(encoding="utf-8")
        assert not re.findall(r"@import|url\([\"']?(?:https?:)?//[^)]*\)", text), path.name


def test_every_link_of_the_site_leads_to_a_page_and_a_place_on_it(site: Path) -> None:
    pages = {path: Page(path) for path in site.rglob("*.html") if path.name != "404.html"}
    missing = []
    for path, page in pages.items():
        for url in (*page.links, *page.asked_for):
            scheme, host, place, _, anchor = urlsplit(url)
            if scheme or host:
                continue
            there = (path.parent / unquote(place)).resolve() if place else path
            if not there.is_file() or (anchor and unquote(anchor) not in pages[there].places):
                missing.append((path.name, url))
    assert not missing


def test_a_chinese_page_is_marked_as_chinese(site: Path) -> None:
    languages = {path.name: Page(path).language for path in site.rglob("*.html")}
    assert {name for name, language in languages.items() if language == "zh"} == {
        name for name in languages if re.search(r"[._]zh\.html$", name)
    }
    assert languages["index.zh.html"] == "zh" and languages["index.html"] == "en"
