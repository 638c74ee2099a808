"""Tests that a file of scenes is read as written, and that its nouns and continuations reach the items."""

from __future__ import annotations

from collections import Counter
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
def test_the_candidates_of_a_thing_scene_are_nouns_that_one_scene_lists_for_its_two_slots(language: str) -> None:
    lexicon = load(language)
    listed = [
        [[kind.removeprefix(ONE_WORD) for kind in kinds] for kinds in scene.context.kinds]
        for scene in lexicon.thing_scenes
    ]
    for row in Items(lexicon, Random(0)).rows({"things": 1.0}, 200):
        one, other = (row["text"][start:end].lower() for start, end in row["candidates"])
        assert any(
            (ends_in(one, first) and ends_in(other, second)) or (ends_in(one, second) and ends_in(other, first))
            for first, second in listed
        ), row["text"]


def ends_in(name: str, nouns: list[str]) -> bool:
    return name.endswith(tuple(noun.lower() for noun in nouns))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_gender_decides_in_scenes_for_and_against_common_knowledge(language: str) -> None:
    lexicon = load(language)
    of_scenes = {
        said for scene in lexicon.scenes for side in scene.readings for reading in side for said in reading.say
    }
    items = Items(lexicon, Random(1))
    pairs = [pair for pair in (items.kinds["gender"]() for _ in range(200)) if pair]
    readings = [[reading.say[0] for reading in pair.readings if reading] for pair in pairs]
    in_scenes = [both for both in readings if set(both) <= of_scenes]
    assert {len(set(both)) for both in in_scenes} == {1, 2}
    assert len(readings) > len(in_scenes)
    assert all(one.gender != other.gender for one, other in (pair.participants for pair in pairs))


def test_persons_and_things_are_plural_together() -> None:
    rows = Items(load("en"), Random(2)).rows({"animacy": 1.0}, 200)
    pronouns = Counter(row["text"][slice(*row["pronoun"])].lower() for row in rows)
    assert pronouns["they"] > 20 and pronouns["it"] > 20


@pytest.mark.parametrize("language", ["en", "zh"])
def test_continuations_have_one_pronoun_and_wordings_both_participants(language: str) -> None:
    lexicon = load(language)
    for scene in (*lexicon.scenes, *lexicon.thing_scenes):
        for said in (*scene.context.say, *scene.context.swapped):
            assert said.count("{A}") == said.count("{B}") == 1, said
        for readings in scene.readings:
            for reading in readings:
                assert all(sum(said.count(slot) for slot in ("{he}", "{him}", "{his}")) == 1 for said in reading.say)
