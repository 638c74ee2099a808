from __future__ import annotations

import errno
import functools
import os
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from messages import Messages

from anaphora.base.errors import UserError
from anaphora.base.messages import translation
from anaphora.base.messages.translation import in_language
from anaphora.cli import configs_folder
from anaphora.settings.commands.analysis import Drawing, Report
from anaphora.settings.commands.atlas import Atlas
from anaphora.settings.commands.attention import AttentionQuery
from anaphora.settings.commands.live import LivePage
from anaphora.settings.compose import compose_run

Script = Callable[..., tuple[int, str, str]]
CATALOGUE = Path(translation.__file__).with_name("zh.toml")
OF_OTHERS = ("hydra", "system")
"""Rooms of the catalogue for messages that are not our own."""
NUMBERS = ["-1", "0.5", "2e-05", "17", "3", "64", "1", "8", "9", "10"]
CODE = re.compile(r"\b[\w.]*\w(?:[_.=]\w|=\.\.\.)[\w./=*]*\w", re.ASCII)
"""Settings, files, calls and numbers with a point: what stays as typed in every language."""
SAID_BEFORE = ("{0}; it is measured anew",)
"""Lines of before the rule on words, which stay as logs know them."""


@functools.cache
def templates() -> dict[str, list[str]]:
    return Messages().templates


@functools.cache
def catalogue() -> dict[str, dict[str, str]]:
    return tomllib.loads(CATALOGUE.read_text(encoding="utf-8"))


@functools.cache
def chinese() -> dict[str, str]:
    return {english: text for room in catalogue().values() for english, text in room.items()}


def test_every_message_of_the_source_has_its_chinese() -> None:
    missing = {template: places for template, places in templates().items() if template not in chinese()}
    assert missing == {}, f"to be added to {CATALOGUE.name}"


def test_no_chinese_is_of_a_message_that_is_gone() -> None:
    ours = [template for room, part in catalogue().items() if room not in OF_OTHERS for template in part]
    assert [template for template in ours if template not in templates()] == []
    assert len(ours) > 700


def test_a_message_stands_in_the_catalogue_once() -> None:
    assert len(chinese()) == sum(map(len, catalogue().values()))


def test_the_chinese_has_the_same_places() -> None:
    def places(text: str) -> set[str]:
        return set(re.findall(r"(?<!\{)\{\d+\}", text))

    ours = {english: text for room in set(catalogue()) - set(OF_OTHERS) for english, text in catalogue()[room].items()}
    assert {english: text for english, text in ours.items() if places(english) != places(text)} == {}
    assert {english: text for english, text in chinese().items() if not places(english) >= places(text)} == {}


def test_what_is_typed_stays_as_it_is() -> None:
    ours = {english: text for room in set(catalogue()) - set(OF_OTHERS) for english, text in catalogue()[room].items()}
    missing = {
        english: text for english, text in ours.items() if any(code not in text for code in CODE.findall(english))
    }
    assert missing == {}


def test_every_message_has_one_form() -> None:
    wrong = {}
    for template in set(templates()) - set(SAID_BEFORE):
        words = re.sub(r"(?<!\{)\{\d+\}", "", template)
        faults = {
            "long": len(words) > 185,
            "begins like a sentence": bool(re.match(r"[A-Z][a-z]", template)),
            "ends like a sentence": bool(re.search(r"[^.][.!?;,]$", template)),
            "several clauses": words.count("; ") > 1,
            "blanks": words != words.strip() and not template.startswith("{") and not template.endswith("}"),
            "two blanks": "  " in template,
            "brackets": template.count("(") != template.count(")"),
            "quotes that nobody types": bool(re.search("[‘’“”]", template)),
            "a word that nobody says": bool(re.search(r"\b(anew|stands?|parted|so that|here are|be had)\b", words)),
        }
        if any(faults.values()):
            wrong[template] = [fault for fault, present in faults.items() if present]
    assert wrong == {}


@pytest.mark.parametrize("value", ["value{}", "numbers", "lists"])
def test_a_message_becomes_its_own_chinese_with_its_values(value: str) -> None:
    wrong = {}
    for english, text in chinese().items():
        values = NUMBERS if value == "numbers" else [value.format(number) for number in range(10)]
        if value == "lists":  # in brackets and at the end, where messages have them
            listing = [
                number for number in range(10) if f"({{{number}}})" in english or english.endswith(f"{{{number}}}")
            ]
            values = ["train, dev, test" if number in listing else f"value{number}" for number in range(10)]
        spoken = in_language(english.format(*values), "zh")
        if spoken != text.format(*values):
            wrong[english] = spoken
    assert wrong == {}


@pytest.mark.parametrize(
    ("message", "spoken"),
    [
        ("data.csv, line 3, antecedents: 4 is not a candidate; allowed: 0 to 1",
         "data.csv 第 3 行，antecedents：4 不是候选；应为 0 到 1"),
        ("data.csv, line 2: pronoun ('26-29') must be JSON, e.g. [0, 3]",
         "data.csv 第 2 行：pronoun（'26-29'）必须是 JSON，如 [0, 3]"),
        ("2 of 3 runs failed: study a, cell b: data: there is no item; x.json: cannot be read (Permission denied)",
         "3 次运行中有 2 次失败：研究 a 的单元 b：data：没有样例；x.json：无法读取（没有权限）"),
        ("no message of ours: 'model.width is missing', or so", "no message of ours: 'model.width is missing', or so"),
    ],
)  # fmt: skip
def test_a_message_of_several_is_translated_part_by_part_and_no_value_is(message: str, spoken: str) -> None:
    assert in_language(message, "zh") == spoken
    assert in_language(message, "en") == message


@pytest.mark.parametrize(
    "override",
    [
        *("model.width=abc", "trainer.compile=maybe", "data.types=gender", "model.position=rotary", "seed=null"),
        *("modl.width=3", "data@x=foo", "experiment=nope", "+model.width=3", "~foo", "seed=1,2", "seed", "seed='"),
        *("model.width=${a", "model.width=${foo}", "name=${oc.env:NOWHERE}"),
        *("+model/position=rotary",),
    ],
)
def test_what_hydra_says_of_a_mistake_is_chinese(override: str) -> None:
    with pytest.raises(UserError) as refused:
        compose_run(configs_folder(), [override], "run")
    spoken = in_language(str(refused.value), "zh")
    english = re.sub(re.escape(override), "", spoken)
    assert re.search(r"[\u4e00-\u9fff]", spoken) and not re.search(r"[a-z]+ [a-z]+ [a-z]+", english), spoken


def test_what_the_system_says_is_its_own_wording() -> None:
    assert set(catalogue()["system"]) <= {os.strerror(number) for number in errno.errorcode}


def test_a_mistake_is_reported_in_chinese_where_the_variable_or_the_setting_says_so(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")  # the locale decides nothing
    assert script("train", "optimizer.steps=0") == (2, "", "error: optimizer.steps (0) must be at least 1\n")
    monkeypatch.setenv(translation.VARIABLE, "zh")
    assert script("train", "optimizer.steps=0") == (2, "", "错误：optimizer.steps（0）至少应为 1\n")
    assert script("report", "items=0", "interface_language=en")[2] == "error: items (0) must be at least 1\n"
    assert script("report", "items=0", "interface_language=both")[2].startswith("错误：")  # a page in each language
    monkeypatch.delenv(translation.VARIABLE)
    assert script("report", "items=0", "interface_language=zh") == (2, "", "错误：items（0）至少应为 1\n")


@pytest.mark.parametrize("settings", [Atlas, AttentionQuery, Drawing, LivePage, Report])
def test_pages_and_figures_follow_the_variable(settings: type[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"runs": ["x"]} if settings is Atlas else {}
    monkeypatch.setenv(translation.VARIABLE, "zh")
    assert settings(**given).interface_language == "zh"
    monkeypatch.delenv(translation.VARIABLE)
    assert settings(**given).interface_language == "en"
    assert settings(**given, interface_language="zh").interface_language == "zh"


def test_a_language_that_messages_do_not_have_is_refused(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(translation.VARIABLE, "fr")
    assert script("train") == (2, "", "error: ANAPHORA_LANGUAGE ('fr') must be one of en, zh\n")
