"""Tests that third-person pronouns are found in any text, and not inside other words."""

from __future__ import annotations

import json
import subprocess
from shutil import which

import pytest

from anaphora.data.controlled.lexicon import PRONOUNS
from anaphora.data.own_sentence import SCRIPT_PATTERN, third_person_pronouns

TEXTS = {
    "It's hers, “he” said; THEY'd seen him.": ["It", "hers", "he", "THEY", "him"],
    "Do-it-yourself theories of the IT department at Hershey": [],
    "sheé hé Éhe 2he he2 _it_": ["it"],
    "我喜欢他们，尤其他的哥哥": ["他们", "他"],
    "其他人弹吉他，其它的在马耳他吃维他命，他人之物，他乡遇故知": [],
    "犹他州的利他主义者有利他行为，猶他有排他性條款，他汀": [],
    "安排他去，胜利他有份，安排他性格好的弟弟": ["他", "他", "他"],
    "他乡下的房子归她们，牠們和它都在": ["他", "她们", "牠們", "它"],
    "他命令她，小明他人很好，这种思维他没有": ["他", "她", "他", "他"],
    "Он ушёл. 彼は笑った。他の人。": [],
    "he\u0301 thi\u0323t s\u00adhe i\u200dt, e\u0301it": [],
    "she sent it to https://he.org/her?it=his_ and her@x.org, @him; www.it.it, his/her e-mail @ it": [
        *("she", "it", "his", "her", "it")
    ],
    "看https://she.org/他说it好，her@x他": ["他", "it", "他"],
    "因为he很累，she说it好": ["he", "she", "it"],
    "阿明話佢哋識佢。": ["佢哋", "佢"],
    "": [],
}


@pytest.mark.parametrize("text", TEXTS)
def test_pronouns_are_found_and_no_word_that_contains_one(text: str) -> None:
    assert [text[start:end] for start, end in third_person_pronouns(text)] == TEXTS[text]


def test_every_pronoun_of_the_built_in_corpus_is_found_where_it_stands() -> None:
    for forms in [*PRONOUNS["en"].values(), *PRONOUNS["zh"].values()]:
        for form in forms:
            ((start, end),) = third_person_pronouns(f"({form}) ")
            assert start == 1 and form[: end - start] in ("他", "她", "它", form, form.rstrip("的自己"))


@pytest.mark.skipif(which("node") is None, reason="no script engine here")
def test_a_script_finds_the_same_pronouns() -> None:
    program = "console.log(JSON.stringify(JSON.parse(process.argv[1]).map((text) => " + (
        "[...text.matchAll(new RegExp(process.argv[2], 'gu'))].map((match) => match[0]))))"
    )
    done = subprocess.run(
        ["node", "-e", program, json.dumps(list(TEXTS)), SCRIPT_PATTERN], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == list(TEXTS.values())
