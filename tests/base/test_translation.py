from __future__ import annotations

import pickle
import re
import string
import symtable
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from catalogue import PACKAGE, extracted, translated

from anaphora.analysis.evidence.verdict import UNITS
from anaphora.base.errors import UserError
from anaphora.base.translation import CATALOGUE, N_, VARIABLE, _, in_language, pgettext, spoken_in, stored
from anaphora.commands.attention import AttentionQuery
from anaphora.commands.look import LivePage
from anaphora.commands.report import Report

Script = Callable[..., tuple[int, str, str]]
CHINESE = {(message.context or "", str(message.id)): str(message.string) for message in translated() if message.id}
HELD_IN_FILES = {message.id for message in extracted() if ("analysis/evidence/verdict.py", 0) in message.locations}
UPDATE = "run python tests/catalogue.py, and write what is missing in zh.po"


def test_the_catalogue_has_the_chinese_of_every_sentence_of_the_code_and_no_others() -> None:
    marked = {(message.context or "", message.id) for message in extracted() if message.id}
    assert {"missing": marked - CHINESE.keys(), "gone": CHINESE.keys() - marked} == {"missing": set(), "gone": set()}
    assert [sentence for sentence, chinese in CHINESE.items() if not chinese] == [], UPDATE


def test_every_sentence_of_the_catalogue_is_read() -> None:
    with spoken_in("zh"):
        assert {key: pgettext(*key) if key[0] else _(key[1]) for key in CHINESE} == CHINESE


def test_a_sentence_has_the_same_values_in_both_languages() -> None:
    def values(text: str) -> set[str | None]:
        return {name for _before, name, *_format in string.Formatter().parse(text)} - {None}

    different = {
        english: chinese for (_context, english), chinese in CHINESE.items() if values(english) != values(chinese)
    }
    assert different == {}


def test_messages_have_typographic_marks_unless_they_show_what_is_typed() -> None:
    typed = re.compile(r"""'[^' ]*[=:][^' ]*'|"factors": \{"kind": "role"\}""")
    sentences = [text for (_context, english), chinese in CHINESE.items() for text in (english, chinese)]
    assert {text for text in sentences if re.search("['\"]", typed.sub("", text))} <= HELD_IN_FILES


def test_a_sentence_that_files_hold_is_shown_with_typographic_marks_in_both_languages() -> None:
    for rule in UNITS:
        with spoken_in("en"):
            assert stored(rule) == rule.replace("'", "’")
        with spoken_in("zh"):
            assert stored(rule) == CHINESE["", rule]


def test_no_function_that_translates_has_a_variable_of_that_name() -> None:
    def hidden(scope: symtable.SymbolTable) -> Iterator[str]:
        if "_" in scope.get_identifiers() and scope.get_type() == "function":
            name = scope.lookup("_")
            if name.is_local() and name.is_referenced():
                yield scope.get_name()
        for inner in scope.get_children():
            yield from hidden(inner)

    for path in PACKAGE.rglob("*.py"):
        module = symtable.symtable(path.read_text(encoding="utf-8"), str(path), "exec")
        if "_" in module.get_identifiers() and module.lookup("_").is_imported():
            assert list(hidden(module)) == [], path


def test_a_sentence_is_of_the_enclosing_language_else_of_the_interface(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _("training steps") == "training steps"
    with spoken_in("zh"):
        assert _("training steps") == "训练步数"
    monkeypatch.setenv(VARIABLE, "zh")
    assert _("training steps") == "训练步数"
    with spoken_in("en"):
        assert _("training steps") == "training steps"


@pytest.mark.parametrize("language", ["en", "zh", "fr", "../zh"])
def test_a_sentence_that_the_catalogue_lacks_stays_english(language: str) -> None:
    assert in_language("no sentence of ours", language) == "no sentence of ours"


def test_an_error_is_english_and_translates_itself_where_a_page_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "zh")
    error = UserError(N_("pronoun ({pronoun!r}) must be a text"), pronoun="{3}")
    assert str(error) == "pronoun ('{3}') must be a text"
    assert error.translated() == "pronoun（'{3}'）必须是文本"
    assert UserError("{no} place of ours").translated() == "{no} place of ours"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # processes hand errors on
    long = UserError(N_("pronoun ({pronoun!r}) must be a text"), pronoun="it" * 5000)
    assert max(len(str(long)), len(long.translated())) <= 500


@pytest.mark.parametrize("override", ["optimizer.steps=0", "optimizer.step=1", "seed=null", "data@x=foo"])
def test_errors_on_the_command_line_are_english(override: str, script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    english = script("train", override)
    monkeypatch.setenv(VARIABLE, "zh")
    assert script("train", override) == english
    if override == "optimizer.steps=0":
        assert english == (2, "", "error: optimizer.steps (0) must be at least 1\n")


@pytest.mark.parametrize("settings", [AttentionQuery, LivePage, Report])
def test_pages_and_figures_follow_the_variable(settings: type[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "zh")
    assert settings().interface_language == "zh"
    monkeypatch.delenv(VARIABLE)
    assert settings().interface_language == "en"
    assert settings(interface_language="zh").interface_language == "zh"


def test_a_language_that_the_interface_does_not_have_is_an_error(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "fr")
    assert script("train") == (2, "", "error: ANAPHORA_LANGUAGE ('fr') must be one of en, zh\n")


def test_english_output_reads_no_catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anaphora.base.translation.CATALOGUE", Path("nowhere"))
    assert CATALOGUE.exists() and _("training steps") == "training steps"


@pytest.mark.parametrize(
    ("count", "english"), [(1, "1 item is left"), ("1", "1 item is left"), (0, "0 items are left")]
)
def test_a_noun_and_its_verb_agree_with_their_number(count: int | str, english: str) -> None:
    message = "{count:item is|items are} left"
    assert in_language(message, "en").format(count=count) == english
    assert str(UserError(message, count=count)) == english
    assert in_language("{share:.1f} of {name!r}", "en").format(share=0.25, name="a|b") == "0.2 of 'a|b'"


def test_no_count_stands_before_a_plural() -> None:
    plural = re.compile(r"\{(?!split)\w+\} (?:items|rows|texts|documents|jobs|conditions|rules|layers)\b")
    assert [english for (_context, english) in CHINESE if plural.search(english)] == []
