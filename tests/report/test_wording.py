from __future__ import annotations

import inspect
import re
import tomllib
from pathlib import Path

from anaphora.report import wording
from anaphora.report.levels import level_columns

TABLE = tomllib.loads(Path(wording.__file__).with_name("wording.toml").read_text(encoding="utf-8"))


def test_no_phrase_has_a_name_that_its_reader_takes_for_itself() -> None:
    """`phrase("x", "y", language=...)` chooses a language; it does not fill {language}."""
    own = set(inspect.signature(wording.phrase).parameters) - {"values"}
    for section, languages in TABLE.items():
        for phrases in languages.values():
            for name, text in phrases.items():
                assert not own & set(re.findall(r"{(\w+)", text)), f"{section}.{name}"


def test_the_explorer_says_every_phrase_that_it_has_in_both_languages_and_no_other() -> None:
    templates = Path(wording.__file__).parent / "page" / "templates"
    script = (templates / "report.js").read_text(encoding="utf-8")
    spoken = {name for call in re.findall(r"\bsay\(([^)]*)", script) for name in re.findall(r'"(\w+)"', call)}
    written = set(re.findall(r"{{ words\.(\w+) }}", (templates / "page.html.j2").read_text(encoding="utf-8")))
    assert spoken and written
    for language, phrases in TABLE["explorer"].items():
        assert set(phrases) == spoken | written, language
    filled = [
        {name: set(re.findall(r"{(\w+)}", text)) for name, text in one.items()} for one in TABLE["explorer"].values()
    ]
    assert filled[0] == filled[1]


def test_the_levels_have_chinese_headings() -> None:
    assert all(re.search("[\u4e00-\u9fff]", name) for name in level_columns("zh")[2:])
    assert set(TABLE["level_names"]["zh"]) == set(TABLE["level_names"]["en"])


def test_the_atlas_says_everything_in_both_languages() -> None:
    for section in ("atlas", "mention_types", "selectors", "name_policies"):
        english, chinese = TABLE[section]["en"], TABLE[section]["zh"]
        assert set(english) == set(chinese), section
        for name, text in english.items():
            assert set(re.findall(r"{(\w+)}", text)) == set(re.findall(r"{(\w+)}", chinese[name])), name
