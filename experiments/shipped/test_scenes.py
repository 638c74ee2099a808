"""Tests that a file of scenes is read as written, and that its nouns and continuations reach the items."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from experiments.shipped.items import Items
from experiments.shipped.lexicon import ONE_WORD, load
from experiments.shipped.scenes import link_and_clause, read_scenes

SCENE = """# A comment.
A: milk, cocoa | B: cup
= I poured {A} into {B} / Tom poured {A} into {B}
~ I filled {B} with {A}
1 because {he} had gone sour
2 . {his} handle was loose / , but {he} had a crack

= {A} rang {B}
1 , but {he} hung up
2 . {he} was out
"""


def test_a_scene_is_read_line_by_line(tmp_path: Path) -> None:
    (tmp_path / "scenes.txt").write_text(SCENE, encoding="utf-8")
    things, persons = read_scenes(tmp_path / "scenes.txt")
    assert things.nouns == (["milk", "cocoa"], ["cup"]) and persons.nouns == ([], [])
    assert things.lines["="] == ["I poured {A} into {B}", "Tom poured {A} into {B}"]
    assert things.lines["~"] == ["I filled {B} with {A}"] and persons.lines["~"] == []
    assert things.lines["2"] == [". {his} handle was loose", ", but {he} had a crack"]


@pytest.mark.parametrize(
    ("text", "named"), [("= {A} saw {B}\n1 , and {he} left\n", "lacks a line"), (f"{SCENE}\n3 {{he}} left", "'3 ")]
)
def test_a_wrong_scene_is_an_error_that_quotes_it(tmp_path: Path, text: str, named: str) -> None:
    (tmp_path / "scenes.txt").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=named):
        list(read_scenes(tmp_path / "scenes.txt"))


@pytest.mark.parametrize(
    ("continuation", "expected"),
    [
        (". {he} left", (".", "{he} left")),
        ("。{he}走了", ("。", "{he}走了")),
        (", and {he} left", ("", ", and {he} left")),
        ("because {he} left", ("", "because {he} left")),
    ],
)
def test_only_the_end_of_a_sentence_is_a_link_of_its_own(continuation: str, expected: tuple[str, str]) -> None:
    assert link_and_clause(continuation) == expected


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_row_of_a_thing_scene_has_its_own_nouns(language: str) -> None:
    lexicon = load(language)
    words = {noun.word for noun in lexicon.nouns if ONE_WORD + noun.word in noun.classes}
    for row in Items(lexicon, Random(0)).rows({"things": 1.0}, 200):
        named = [row["text"][start:end] for start, end in row["candidates"]]
        assert len(set(named)) == 2
        assert all(any(word.lower() in name.lower() for word in words) for name in named)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_continuations_have_one_pronoun_and_wordings_both_participants(language: str) -> None:
    lexicon = load(language)
    for scene in (*lexicon.scenes, *lexicon.thing_scenes):
        for said in (*scene.context.say, *scene.context.swapped):
            assert said.count("{A}") == said.count("{B}") == 1, said
        for readings in scene.readings:
            for reading in readings:
                assert all(sum(said.count(slot) for slot in ("{he}", "{him}", "{his}")) == 1 for said in reading.say)
