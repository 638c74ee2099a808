"""Tests that a file of scenes is read as written, and that its nouns and continuations reach the items."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
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


def test_a_scene_can_have_three_participants(tmp_path: Path) -> None:
    lines = ("= {A} took {B} out of {C}", "1 , as {he} was late", "2 , since {he} was full", "3 . {his} lid fell")
    (tmp_path / "scenes.txt").write_text("\n".join(("A: cat | B: bowl, tin | C: box", *lines)), encoding="utf-8")
    (scene,) = read_scenes(tmp_path / "scenes.txt")
    assert scene.nouns == (["cat"], ["bowl", "tin"], ["box"]) and scene.lines["3"] == [". {his} lid fell"]
    (tmp_path / "scenes.txt").write_text("\n".join(lines), encoding="utf-8")
    assert next(read_scenes(tmp_path / "scenes.txt")).nouns == ([], [], [])


@pytest.mark.parametrize(("language", "kind"), [("en", "role"), ("en", "things"), ("zh", "role"), ("zh", "things")])
def test_each_of_three_participants_is_the_antecedent_of_some_items(language: str, kind: str) -> None:
    rows = list(Items(load(language), Random(0)).rows({kind: 1.0}, 300))
    of_three = Counter(row["antecedents"][0] for row in rows if len(row["candidates"]) == 3)
    assert min(of_three[place] for place in range(3)) > 15
    assert 0.1 < of_three.total() / len(rows) < 0.3


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
def test_the_candidates_of_a_thing_scene_are_nouns_that_one_scene_lists_for_its_slots(language: str) -> None:
    lexicon = load(language)
    listed = [
        [[kind.removeprefix(ONE_WORD) for kind in kinds] for kinds in scene.context.kinds]
        for scene in lexicon.thing_scenes
    ]
    for row in Items(lexicon, Random(0)).rows({"things": 1.0}, 200):
        named = [row["text"][start:end].lower() for start, end in row["candidates"]]
        assert any(
            len(slots) == len(named) and any(all(map(ends_in, order, slots)) for order in permutations(named))
            for slots in listed
        ), row["text"]


def ends_in(name: str, nouns: list[str]) -> bool:
    return name.endswith(tuple(noun.lower() for noun in nouns))


@pytest.mark.parametrize("kind", ["gender", "number"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_form_decides_in_scenes_for_and_against_common_knowledge(language: str, kind: str) -> None:
    lexicon = load(language)
    scenes = (*lexicon.scenes, *lexicon.thing_scenes)
    of_scenes = {said for scene in scenes for side in scene.readings for reading in side for said in reading.say}
    items = Items(lexicon, Random(1))
    pairs = [pair for pair in (items.kinds[kind]() for _ in range(200)) if pair]
    readings = [[reading.say[0] for reading in pair.readings if reading] for pair in pairs]
    in_scenes = [both for both in readings if set(both) <= of_scenes]
    assert {len(set(both)) for both in in_scenes} == {1, 2}
    assert len(readings) > len(in_scenes)
    for one, other in (pair.participants for pair in pairs):
        assert (one.gender != other.gender) if kind == "gender" else (one.is_plural != other.is_plural)


def test_persons_that_only_a_scene_lists_have_no_plural_since_they_may_be_names() -> None:
    lexicon = load("zh")
    of_scenes = [noun for noun in lexicon.nouns if noun.genders and all(map(is_of_a_scene, noun.classes))]
    assert "小敏" in {noun.word for noun in of_scenes}
    assert not any(noun.has_plural("zh") for noun in of_scenes)
    assert any(noun.has_plural("zh") for noun in lexicon.by_class["person"] if not noun.other)


def is_of_a_scene(kind: str) -> bool:
    return kind.startswith(ONE_WORD)


def test_persons_and_things_are_plural_together() -> None:
    rows = Items(load("en"), Random(2)).rows({"animacy": 1.0}, 200)
    pronouns = Counter(row["text"][slice(*row["pronoun"])].lower() for row in rows)
    assert pronouns["they"] > 20 and pronouns["it"] > 20


@pytest.mark.parametrize("language", ["en", "zh"])
def test_continuations_have_one_pronoun_and_wordings_both_participants(language: str) -> None:
    lexicon = load(language)
    for scene in (*lexicon.scenes, *lexicon.thing_scenes):
        for said in (*scene.context.say, *scene.context.swapped):
            slots = [f"{{{slot}}}" for slot in "ABC"[: len(scene.readings)]]
            assert all(said.count(slot) == 1 for slot in slots), said
        for readings in scene.readings:
            for reading in readings:
                assert all(sum(said.count(slot) for slot in ("{he}", "{him}", "{his}")) == 1 for said in reading.say)
