from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from controlled_content import check_keys, check_noun, name_of, read_toml, section, tables, words

from anaphora.base.errors import UserError
from anaphora.base.language import LANGUAGES
from anaphora.data.controlled import corpus, splits
from anaphora.data.controlled import lexicon as lexicons
from anaphora.data.controlled.quads import QuadGenerator
from anaphora.data.controlled.templates import POOLS
from anaphora.data.example import Example
from anaphora.settings.data import SPLITS, ControlledCorpus
from experiments.everyday import content as scene_content
from experiments.everyday.content import NAME, EverydayScene
from experiments.everyday.corpus import generate, known_words
from experiments.everyday.scenes import EVERYDAY, REWORDED, EverydayGenerator
from experiments.everyday.settings import EverydayCorpus

ROOT = Path(__file__).parents[2]
OTHERS = ["gender", "causality", "composition"]
LEAST_NOUNS = 2
"""Minimum number of nouns in a class."""
SLOT = re.compile(r"\{([A-Za-z]+)\}")

CONTENT = """
[classes]
thing = ["lamp/lamps", "kettle/kettles"]
box = ["crate/crates", "trunk/trunks"]
group = ["guard/guards", "clerk/clerks"]

[names]
male = ["Tom"]
female = ["Sue"]

[[frame]]
split = "train"
text = "{intro} {clause} ."

[[frame]]
split = "dev"
text = "we saw that {clause} ."

[[frame]]
split = "test"
text = "it is known that {clause} ."

[[scene]]
name = "room"
A = ["thing"]
B = ["box"]
forward = ["{A} did not go into {B}"]
backward = ["{B} had no room for {A}"]
link = [", because"]
first = ["{he} was too wide"]
second = ["{he} was full"]
"""


@pytest.fixture(scope="module")
def generated() -> dict[str, list[Example]]:
    return generate(EverydayCorpus(train_items=2_400, test_items=800, types=OTHERS))


def everyday_items(examples: Sequence[Example]) -> list[Example]:
    return [example for example in examples if example.factors["type"] == EVERYDAY]


def test_the_rest_of_the_corpus_is_the_same_without_them(generated: dict[str, list[Example]]) -> None:
    without = corpus.generate(ControlledCorpus(train_items=2_400, test_items=800, types=OTHERS))
    for split, examples in without.items():
        kept = {(example.text, example.pronoun) for example in generated[split]} - {
            (example.text, example.pronoun) for example in everyday_items(generated[split])
        }
        assert kept == {(example.text, example.pronoun) for example in examples}


@pytest.mark.parametrize("language", LANGUAGES)
def test_of_a_quad_either_candidate_is_meant_once_in_either_place(
    generated: dict[str, list[Example]], language: str
) -> None:
    for split, examples in generated.items():
        quads: dict[str, list[Example]] = defaultdict(list)
        for example in everyday_items(examples):
            if example.language == language:
                quads[example.group].append(example)
        assert len(quads) > (100 if split == "train" else 20)
        for quad in quads.values():
            meant = {(example.words(example.antecedents[0]), example.antecedents[0]) for example in quad}
            assert len(quad) == len(meant) == 4
            assert len({example.text[slice(*example.pronoun)] for example in quad[:1]}) == 1
            assert {example.factors["stratum"] for example in quad} in ({EVERYDAY}, {REWORDED})


@pytest.mark.parametrize("language", LANGUAGES)
def test_frames_and_the_nouns_of_a_scene_are_new_in_dev_and_test(
    generated: dict[str, list[Example]], language: str
) -> None:
    content = scene_content.load(language)
    small = {
        noun
        for nouns in content.nouns.values()
        if len(nouns) < 10
        for each in nouns
        for noun in (each.word, each.plural_or_classifier)
    }
    shown: dict[str, set[tuple[str, str]]] = {}
    frames: dict[str, set[str]] = {}
    for split, examples in generated.items():
        items = [example for example in everyday_items(examples) if example.language == language]
        frames[split] = {example.factors["template"] for example in items}
        shown[split] = {
            (example.factors["scenario"], example.words(number).lower())
            for example in items
            for number in range(len(example.candidates))
        }
    assert not frames["train"] & (frames["dev"] | frames["test"])
    for split in ("dev", "test"):
        repeated = {noun for _, noun in shown["train"] & shown[split]}
        assert repeated <= {noun.lower() for noun in small}


@pytest.mark.parametrize("language", LANGUAGES)
def test_reworded_scenes_are_worded_as_training_never_words_them(
    generated: dict[str, list[Example]], language: str
) -> None:
    readings: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for split, examples in generated.items():
        for example in everyday_items(examples):
            if example.language == language and (split == "train" or example.factors["stratum"] == REWORDED):
                readings[split].add((example.factors["scenario"], example.factors["cue"]))
    assert not readings["train"] & (readings["dev"] | readings["test"])
    assert {scene for scene, _ in readings["dev"]}.isdisjoint(scene for scene, _ in readings["test"])
    assert all(len(readings[split]) >= 30 for split in ("dev", "test"))


def generator_of(language: str) -> EverydayGenerator:
    lexicon = lexicons.load(language)
    quads = QuadGenerator(lexicon, splits.assign_cosets(lexicon, 0, 0.2), 3)
    return EverydayGenerator(scene_content.load(language), 0, quads)


@pytest.mark.parametrize(("language", "alone", "in_own_scene"), [("en", 26, 13), ("zh", 36, 30)])
def test_most_words_that_a_scene_withholds_stand_in_other_scenes_and_the_rest_in_it_or_as_nouns(
    language: str, alone: int, in_own_scene: int
) -> None:
    everyday_quads = generator_of(language)
    content = everyday_quads.content
    shown = {scene.name: scene for scene in everyday_quads.scenes("train", EVERYDAY)}
    withheld = [scene for split in ("dev", "test") for scene in everyday_quads.scenes(split, REWORDED)]
    assert set(shown) == {scene.name for scene in content.scenes}
    assert len(withheld) > len(shown) / 2
    nouns = {
        form for each in content.nouns.values() for noun in each for form in (noun.word, noun.plural_or_classifier)
    }
    frames = words_of(content.frames["train"])
    of_shown = {name: words_of([*texts(scene), *scene.link]) for name, scene in shown.items()}
    lacking: set[str] = set()
    in_it: set[str] = set()
    for scene in withheld:
        assert not set(texts(scene)) & set(texts(shown[scene.name]))
        others = frames.union(*(words for name, words in of_shown.items() if name != scene.name))
        lacking |= words_of(texts(scene)) - others
        in_it |= (words_of(texts(scene)) - others) & of_shown[scene.name]
    assert (len(lacking), len(in_it)) == (alone, in_own_scene)
    assert lacking - in_it <= nouns


@pytest.mark.parametrize(("language", "dev", "test"), [("en", 55, 50), ("zh", 85, 96)])
def test_some_nouns_of_dev_and_test_are_held_out_by_every_scene_of_their_class(
    language: str, dev: int, test: int
) -> None:
    everyday_quads = generator_of(language)
    of_split: dict[str, set[str]] = {split: set() for split in SPLITS}
    for split, nouns in of_split.items():
        for scene in everyday_quads.content.scenes:
            kinds = {kind for side in (0, 1) for kind in scene.classes[side]} - {NAME}
            nouns |= {noun.word for kind in kinds for noun in everyday_quads.nouns(scene, kind, "", split)}
    assert (len(of_split["dev"] - of_split["train"]), len(of_split["test"] - of_split["train"])) == (dev, test)


def texts(scene: EverydayScene) -> list[str]:
    return [*scene.forward, *scene.backward, *scene.readings[0], *scene.readings[1]]


def words_of(phrases: Iterable[str]) -> set[str]:
    return {word for phrase in phrases for word in phrase.split()}


def test_no_position_is_right_more_often_than_another(generated: dict[str, list[Example]]) -> None:
    for examples in generated.values():
        items = everyday_items(examples)
        assert sum(example.antecedents[0] for example in items) * 2 == len(items)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('A = ["thing"]', 'A = ["chair"]', "unknown class 'chair'; allowed: box, group, name, thing"),
        ('A = ["thing"]', 'A = ["group"]', "A and B have no gender and number in common"),
        ("{A} did not go into {B}", "{B} did not hold {A}", "must hold {A}, then {B}"),
        ('backward = ["{B} had no room for {A}"]', "", "A and B have different classes, so backward is needed"),
        ("{he} was full", "there was no room", "must hold one of {he}, {him}, {his}, {himself}"),
        ("lamp/lamps", "lamp", "must be written singular/plural"),
        ("we saw that {clause} .", "we saw that .", "must hold {clause} once"),
        ('split = "dev"', 'split = "train"', "no frame has split = 'dev'"),
        ("[classes]", "[nouns]", "unknown entry 'nouns'; allowed: classes, frame, names, scene"),
        ('name = "room"', 'name = "room"\nplural = 1', "plural is 1; allowed: true, false"),
    ],
)
def test_a_wrong_entry_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "english.toml"
    path.write_text(CONTENT, encoding="utf-8")
    check_content("en", tmp_path)
    path.write_text(CONTENT.replace(old, new), encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        check_content("en", tmp_path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_content_is_right(language: str) -> None:
    check_content(language, scene_content.CONTENT_FOLDER)


def check_content(language: str, folder: Path) -> None:
    """Check a language's content; a `ValueError` names the file, the entry and the allowed values."""
    path = scene_content.path_of(language, folder)
    table = read_toml(path)
    check_keys(path, "the file", table, {"classes", "names", "frame", "scene"})
    classes = section(path, "classes", table.get("classes"))
    for kind, written in classes.items():
        for noun in words(path, f"classes.{kind}", written, LEAST_NOUNS):
            check_noun(path, language, f"classes.{kind}", noun)
    if NAME in classes:
        raise ValueError(
            f"{path}, classes.{NAME}: given names belong in [names]; a scene may use this class without listing it"
        )
    names = section(path, "names", table.get("names"))
    check_keys(path, "names", names, set(lexicons.GENDERS))
    for gender in lexicons.GENDERS:
        words(path, f"names.{gender}", names.get(gender), 1)
    titles = [name_of(path, "scene", written) for written in tables(path, table, "scene")]
    for title, written in zip(titles, table["scene"], strict=True):
        if titles.count(title) > 1:
            raise ValueError(f"{path}, scene: {title!r} appears twice")
        check_scene(path, f"scene {title!r}", written, {*classes, NAME})
    for written in tables(path, table, "frame"):
        check_frame(path, written)
    content = scene_content.load(language, folder)
    for split, frames in content.frames.items():
        if not frames:
            raise ValueError(f"{path}: no frame has split = {split!r}; every split needs one")
    for scene in content.scenes:
        if not scene.agreements:
            raise ValueError(
                f"{path}, scene {scene.name!r}: A and B have no gender and number in common, so the pronoun would "
                "tell them"
            )


def check_scene(path: Path, place: str, written: Mapping[str, Any], classes: set[str]) -> None:
    texts = ("forward", "backward", "link", "first", "second")
    check_keys(path, place, written, {"name", "A", "B", "plural", *texts})
    kinds = [words(path, f"{side} of {place}", written.get(side), 1) for side in "AB"]
    for kind in (kind for named in kinds for kind in named):
        if kind not in classes:
            raise ValueError(f"{path}, {place}: unknown class {kind!r}; allowed: {', '.join(sorted(classes))}")
    if not isinstance(plural := written.get("plural", False), bool):
        raise ValueError(f"{path}, {place}: plural is {plural!r}; allowed: true, false")
    forward, _, first, second = (
        words(path, f"{entry} of {place}", written.get(entry), 1) for entry in ("forward", "link", "first", "second")
    )
    backward = words(path, f"backward of {place}", written.get("backward", []), 0)
    if not backward and set(kinds[0]) != set(kinds[1]):
        raise ValueError(f"{path}, {place}: A and B have different classes, so backward is needed")
    for entry, wordings, order in (("forward", forward, ["A", "B"]), ("backward", backward, ["B", "A"])):
        for wording in wordings:
            if slots_of(wording) != order:
                raise ValueError(
                    f"{path}, {entry} of {place}: {wording!r} must hold {{{order[0]}}}, then {{{order[1]}}}"
                )
    for entry, readings in (("first", first), ("second", second)):
        for reading in readings:
            slots = slots_of(reading)
            if len(slots) != 1 or slots[0] not in lexicons.PRONOUN_FORMS:
                pronouns = ", ".join(f"{{{form}}}" for form in lexicons.PRONOUN_FORMS)
                raise ValueError(f"{path}, {entry} of {place}: {reading!r} must hold one of {pronouns}")


def slots_of(text: str) -> list[str]:
    return [slot for slot in SLOT.findall(text) if slot not in scene_content.AGREEMENT]


def check_frame(path: Path, written: Mapping[str, Any]) -> None:
    check_keys(path, "frame", written, {"split", "text"})
    text, split = written.get("text"), written.get("split")
    if split not in SPLITS:
        raise ValueError(f"{path}, frame {text!r}: split is {split!r}; allowed: {', '.join(SPLITS)}")
    slots = SLOT.findall(text) if isinstance(text, str) else []
    if slots.count("clause") != 1 or set(slots) - {"clause", *POOLS}:
        raise ValueError(f"{path}, frame {text!r} must hold {{clause}} once; other slots are {', '.join(POOLS)}")


def test_the_type_alone_is_no_part_of_the_built_in_corpus() -> None:
    with pytest.raises(UserError, match=r"data\.types"):
        ControlledCorpus(types=[EVERYDAY])


def test_a_run_is_trained_on_the_corpus_by_its_name(tmp_path: Path) -> None:
    small = ("data.train_items=40", "data.test_items=10", "data.languages=[en]", "trainer=smoke", "model.width=16")
    command = [sys.executable, "-m", "experiments.everyday", "train", "name=run", f"output={tmp_path}", *small]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
    config = (tmp_path / "run" / "config.yaml").read_text(encoding="utf-8")
    assert "kind: everyday" in config and "steps: 12000" in config


def test_a_tokenizer_knows_the_words_of_the_scenes() -> None:
    settings = EverydayCorpus(languages=["en"])
    built_in = set(corpus.words("en", settings.types))
    assert built_in < set(known_words(settings))
    assert {"cello", "dollhouse"} <= set(known_words(settings)) - built_in
