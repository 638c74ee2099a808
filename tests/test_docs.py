"""Tests that README and docs are correct: links resolve, commands compose, generated pages are current."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import json
import os
import pkgutil
import re
import shlex
import subprocess
import sys
import typing
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import IntervalSweep
from test_architecture import BELOW

import anaphora
from anaphora import api, cli
from anaphora.analysis.scores.quads import quads_of
from anaphora.base.device import Device, RunsDevice
from anaphora.data.example import from_record
from anaphora.settings.arguments import settings_from
from anaphora.settings.compose import composed, with_quoted_texts
from anaphora.settings.typed import resolve
from anaphora.studies.plan import Slurm, VerdictRule
from benchmarks.speed.settings import Benchmark
from experiments.abnar_zuidema.settings import Replication
from experiments.everyday import corpus as everyday
from experiments.everyday.settings import RECIPE
from experiments.four_sentences.settings import FourSentences
from experiments.sample_size.settings import SampleSize
from experiments.sentences.settings import Sentences

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "anaphora"
BESIDE = ("README.md", "README.zh.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
PAGES = [ROOT / name for name in BESIDE] + sorted((ROOT / "docs").rglob("*.md"))
COMMAND = re.compile(r"\.venv/bin/(?:python|torchrun(?: --[\w-]+=\S+)+) ((?:scripts/\w+\.py|-m \w+\.\w+)[^`\n]*)")
# A line of its own, or code within a line that sets something; `anaphora gap` alone only names the command.
INSTALLED = re.compile(r"(?:^ *(?=[^`\n]*$)|`(?=[^`\n]*=))anaphora (\w+)([^`\n]*)", re.MULTILINE)
TEST = re.compile(r"(tests/[\w/]+\.py)::(\w+)")


def commands(page: Path) -> list[str]:
    """Return the commands on a page, except the command that the page on adding parts adds."""
    text = page.read_text(encoding="utf-8")
    installed = [f"scripts/{match[1]}.py{match[2]}" for match in INSTALLED.finditer(text) if match[1] != "longest"]
    return [match[1].strip() for match in COMMAND.finditer(text)] + installed


def commands_of_headers() -> list[str]:
    """Return the commands in the first lines of configurations and scripts, without those that need a path."""
    files = [*(ROOT / "configs").rglob("*.yaml"), *(ROOT / "scripts").glob("*.py")]
    written = [
        f"scripts/{match[1]}.py{match[2]}"
        for path in files
        for match in HEADER.finditer(path.read_text(encoding="utf-8"))
    ]
    return [command.strip().removesuffix('"""').rstrip(".") for command in written if "..." not in command]


PROGRAMS: dict[str, type[Any]] = {
    "benchmarks.speed": Benchmark,
    "experiments.abnar_zuidema": Replication,
    "experiments.sample_size": SampleSize,
    "experiments.sentences": Sentences,
    "experiments.four_sentences": FourSentences,
}
"""Programs outside the package with `key=value` arguments, and their settings classes."""
HEADER = re.compile(r"(?:python scripts/|anaphora )(\w+)(?:\.py)?((?= [^\n;:`]*=)[^\n;:`]*)")
"""Command in a comment or docstring, up to the end of the line or clause."""
COMMANDS = sorted({command for page in PAGES for command in commands(page)} | set(commands_of_headers()))


def first_of_a_sweep(override: str) -> str:
    parsed = OverridesParser.create().parse_override(override)
    value = parsed.value()
    if isinstance(value, IntervalSweep):
        return f"{parsed.get_key_element()}={value.start}"
    return (
        f"{parsed.get_key_element()}={next(parsed.sweep_string_iterator())}" if parsed.is_sweep_override() else override
    )


def on_pages(pattern: str, flags: re.RegexFlag = re.NOFLAG) -> list[tuple[Path, str]]:
    """Return all matches of a pattern, each with its page."""
    return [(page, found) for page in PAGES for found in re.findall(pattern, page.read_text(encoding="utf-8"), flags)]


def test_every_relative_link_leads_to_a_file() -> None:
    links = [(page, link) for page, link in on_pages(r"\]\(([^)#\s]+)[^)]*\)") if ":" not in link]
    assert [(page.name, link) for page, link in links if not (page.parent / link).exists()] == []


def test_every_test_that_a_page_names_is_there() -> None:
    named = [match for page in PAGES for match in TEST.findall(page.read_text(encoding="utf-8"))]
    assert len(named) > 20
    absent = [(file, test) for file, test in named if f"def {test}(" not in (ROOT / file).read_text(encoding="utf-8")]
    assert absent == []


def test_every_module_and_function_that_a_page_names_is_there() -> None:
    for page, name in on_pages(r"`(anaphora(?:\.\w+)+)"):
        if page.name != "CHANGELOG.md":
            assert pkgutil.resolve_name(name) is not None, page.name


@pytest.mark.usefixtures("own_parts")
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_composes_into_settings_that_pass_their_checks(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, *words = shlex.split(command, comments=True)
    if script == "-m":
        program, *words = words
        if program != "experiments.everyday":
            assert importlib.util.find_spec(program) is not None
            assert program not in PROGRAMS or settings_from(words, PROGRAMS[program])
            return
        everyday.register()
        script, *words = words
        words = [*RECIPE, *words] if script == "train" else words
    named = cli.COMMANDS[Path(script).stem]
    # Hydra's own choose its launchers and samplers, which are packages of the extra `cluster`.
    if not named.is_composed:
        assert settings_from(words, named.schema)
        return
    own = [word for word in words if not word.startswith(("-", "hydra/", "hydra.")) and word != "job"]
    overrides = [first_of_a_sweep(word) for word in with_quoted_texts(own, named.schema)]
    cli.register_commands()
    monkeypatch.setattr("anaphora.settings.compose.is_sweep_job", lambda: bool({"-m", "--multirun"} & set(words)))
    assert resolve(composed(ROOT / "configs", named.name, overrides), named.schema)


def test_every_make_target_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = on_pages(r"(?:`|^)make ([\w-]+)", re.MULTILINE)
    assert [(page.name, target) for page, target in named if target not in targets] == []


def without_code(page: Path) -> str:
    code = r"^```.*?^```$|`[^`\n]+`|<!--.*?-->|<br>"
    return re.sub(code, "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def test_no_text_is_taken_for_html() -> None:
    for page in PAGES:
        assert not re.findall(r"<[A-Za-z/][^>]*>", without_code(page)), f"{page.name}: write &lt; or mark it as code"


def test_a_negative_number_has_a_minus_sign() -> None:
    hyphen = re.compile(r"(?<!kill)[ (\[|*~（，：]-\d[^ |]*")
    assert {page.name: hyphen.findall(without_code(page)) for page in PAGES if hyphen.search(without_code(page))} == {}


def test_every_example_row_of_the_docs_is_a_valid_example_about_a_pronoun() -> None:
    examples = []
    for page in PAGES:
        for block in re.findall(r"```json\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            examples += [from_record(json.loads(line)) for line in block.splitlines()]
    assert examples
    assert {example.text[slice(*example.pronoun)] for example in examples} == {"she", "她"}
    alone = [example for example in examples if not example.minimal_pair]
    assert {example.words(example.antecedents[0]) for example in alone} == {"Emma", "美玲"}
    helped = [(example.words(example.antecedents[0]), example.text) for example in examples if example.minimal_pair]
    for name, text in helped:  # the weak one was helped, the kind one helped
        assert text.startswith(name) == ("kind" in text or "善良" in text)


def test_the_quads_that_the_page_on_own_data_shows_are_complete() -> None:
    block = next(
        block
        for block in re.findall(
            r"```json\n(.*?)```", (ROOT / "docs" / "own_data.md").read_text(encoding="utf-8"), re.DOTALL
        )
        if "minimal_pair" in block
    )
    examples = [from_record(json.loads(line)) for line in block.splitlines()]
    assert quads_of(examples) == ["1"] * 4 + ["2"] * 4


def outline(page: Path) -> list[str]:
    """Return the levels of a page's headings and its table rows, in order."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"^(?:#+(?= )|\|)", text, re.MULTILINE)


@pytest.mark.parametrize("chinese", sorted((ROOT / "docs").glob("*.zh.md")), ids=lambda page: page.name)
def test_a_chinese_page_has_the_sections_and_tables_of_its_english_twin(chinese: Path) -> None:
    english = chinese.with_name(chinese.name.replace(".zh.md", ".md"))
    assert outline(chinese) == outline(english)
    assert f"]({english.name})" in chinese.read_text("utf-8") and f"]({chinese.name})" in english.read_text("utf-8")


def architecture() -> str:
    return (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_the_rooms_of_the_architecture_page_are_those_of_the_import_test() -> None:
    rows = re.findall(r"^\| `([\w.]+)` \| [^|]+ \| ([^|]+) \|$", architecture(), re.MULTILINE)
    rooms = {room: set(re.findall(r"`([\w.]+)`", allowed)) for room, allowed in rows}
    assert rooms == {room: set(below) for room, below in BELOW.items() if not room.startswith("__")}


def test_every_file_of_the_repository_that_code_and_messages_name_exists() -> None:
    places = r"(?<![\w./-])(?:docs|scripts|configs|benchmarks|experiments|src|tests)/[\w./-]*\w"
    named = re.compile(rf"{places}\.(?:csv|html|jsonl?|md|po|py|toml|txt|yaml)\b")
    files = [path for ending in ("py", "po", "j2", "toml") for path in PACKAGE.rglob(f"*.{ending}")]
    files += [*(ROOT / "scripts").glob("*.py"), *(ROOT / "configs").rglob("*.yaml"), ROOT / "Makefile"]
    names = [(path.name, name) for path in files for name in named.findall(path.read_text(encoding="utf-8"))]
    assert len(names) > 40 and [(path, name) for path, name in names if not (ROOT / name).exists()] == []


def test_code_and_configurations_name_a_command_and_not_its_script() -> None:
    files = [*PACKAGE.rglob("*.py"), *(ROOT / "experiments").rglob("*.py"), *(ROOT / "configs").rglob("*.yaml")]
    texts = {path: path.read_text(encoding="utf-8") for path in files if "claims" not in path.parts}  # kept as written
    assert [path for path, text in texts.items() if re.search(r"scripts/\w+\.py", text)] == []


def test_every_file_and_folder_that_the_architecture_page_names_exists() -> None:
    names = set(re.findall(r"(?<![\w/>.])(?:\w+/)+(?:\w+(?:\.\w+)+)?(?![\w<*])", architecture()))
    assert len(names) > 40
    assert [name for name in sorted(names) if not any((root / name).exists() for root in (ROOT, PACKAGE))] == []


def test_the_page_of_settings_has_a_row_for_every_setting_of_a_command() -> None:
    page = maker("make_settings").page()
    for settings in every_settings_class():
        for name, hint in typing.get_type_hints(settings).items():
            if name != "kind" and hint in (bool, int, float, str):
                assert re.search(rf"^\| `(?:[\w.]+\.)?{name}` \|", page, re.MULTILINE), f"{settings.__name__}.{name}"


def test_the_page_of_the_python_interface_has_all_of_it() -> None:
    script = maker("make_python")
    assert set(script.FUNCTIONS) == set(anaphora.__all__)
    assert {owner.__name__ for owner in script.CLASSES} >= {name for name in api.__all__ if name[0].isupper()}
    assert all(f"### anaphora.{name}\n" in script.page() for name in script.FUNCTIONS)


def maker(name: str) -> ModuleType:
    """Import the script in docs/ that generates a page."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SETTINGS_OF_RUNS = (
    *("data", "vocabulary", "training"),
    *("model.encoder", "model.position", "model.attention", "model.prediction"),
)


def every_settings_class() -> list[Any]:
    modules = [importlib.import_module(f"anaphora.settings.{name}") for name in SETTINGS_OF_RUNS]
    named = [value for module in modules for value in vars(module).values() if isinstance(value, type)]
    of_runs = [one for one in named if dataclasses.is_dataclass(one)]
    of_commands = [
        base for command in cli.COMMANDS.values() for base in command.schema.__mro__ if dataclasses.is_dataclass(base)
    ]
    return [*of_runs, *of_commands, Device, RunsDevice, Slurm, VerdictRule]


class Page(HTMLParser):
    """Parser of a page of the site: its requests, links and anchors."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.requests: list[str] = []
        self.anchors: set[str] = set()
        self.classes: set[str] = set()
        self.language = ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        requests = [values[name] for name in ("src", "data", "poster") if name in values]
        if tag == "link":
            requests.append(values["href"])
        if tag == "a":
            self.links += [values[name] for name in ("href",) if name in values]
        if tag == "html":
            self.language = values["lang"]
        self.requests += requests
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        self.classes |= set(values.get("class", "").split())


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site, with warnings as errors, and return its folder."""
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


def test_the_site_requests_nothing_from_another_host(site: Path) -> None:
    pages = {path: Page(path) for path in site.rglob("*.html")}
    assert len(pages) > len(list((ROOT / "docs").rglob("*.md")))
    outside = {(path.name, url) for path, page in pages.items() for url in page.requests if urlsplit(url).netloc}
    assert not outside
    # The theme's script fetches a library for diagrams, and nothing else, where a page has one.
    assert not any("mermaid" in page.classes for page in pages.values())
    for path in site.rglob("*.css"):
        text = path.read_text(encoding="utf-8")
        assert not re.findall(r"@import|url\([\"']?(?:https?:)?//[^)]*\)", text), path.name


def test_the_search_box_has_its_index_and_its_worker_where_no_server_gives_them(site: Path) -> None:
    assert (site / "search" / "search_index.js").read_text(encoding="utf-8").startswith("var __index = {")
    pages = [Page(path) for path in site.rglob("*.html") if path.name != "404.html"]
    assert all(any(url.endswith("javascripts/iframe-worker.js") for url in page.requests) for page in pages)


def test_around_a_page_of_the_site_are_the_pages_in_its_language_and_a_switch_to_the_same_page(site: Path) -> None:
    for name, other, own_title, other_title in (
        ("results/recipe.html", "recipe.zh.html", "Your own data", "自有数据"),
        ("results/recipe.zh.html", "recipe.html", "自有数据", "Your own data"),
        ("settings.html", "index.zh.html", "Your own data", "自有数据"),  # it has no Chinese twin
    ):
        html = (site / name).read_text(encoding="utf-8")
        switches = dict(re.findall(r'<a href="([^"]*)" hreflang="(en|zh)"', html))
        assert switches[other] == ("zh" if ".zh." in other else "en")
        assert own_title in html and other_title not in html, name


def test_every_link_of_the_site_leads_to_a_page_and_an_anchor_on_it(site: Path) -> None:
    pages = {path: Page(path) for path in site.rglob("*.html") if path.name != "404.html"}
    missing = []
    for path, page in pages.items():
        for url in (*page.links, *page.requests):
            scheme, host, target, _, anchor = urlsplit(url)
            if scheme or host:
                continue
            page_path = (path.parent / unquote(target)).resolve() if target else path
            if not page_path.is_file() or (anchor and unquote(anchor) not in pages[page_path].anchors):
                missing.append((path.name, url))
    assert not missing


def test_a_chinese_page_is_marked_as_chinese(site: Path) -> None:
    languages = {path.name: Page(path).language for path in site.rglob("*.html")}
    assert {name for name, language in languages.items() if language == "zh"} == {
        name for name in languages if re.search(r"[._]zh\.html$", name)
    }
    assert languages["index.zh.html"] == "zh" and languages["index.html"] == "en"
