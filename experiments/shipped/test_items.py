"""Tests that training items follow the lexicon, and that each participant is the antecedent in half of them."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from pathlib import Path
from random import Random
from typing import Any

import pytest

from anaphora.base.errors import UserError
from anaphora.data.example import from_record
from experiments.shipped.items import Items
from experiments.shipped.lexicon import ANIMAL, PERSON, THING, Noun, load
from experiments.shipped.mixture import write_items
from experiments.shipped.phrases import ASKED, NEUTER, PRONOUNS, Frame, Participant
from experiments.shipped.resolved import resolved
from experiments.shipped.settings import TrainingItems

SHARES = {"gender": 1.0, "number": 1.0, "animacy": 1.0, "selection": 1.0, "role": 1.0, "things": 1.0}
LANGUAGES = ("en", "zh")


def rows(language: str, pairs: int = 300, seed: int = 0) -> list[dict[str, Any]]:
    return list(Items(load(language), Random(seed)).rows(SHARES, pairs))


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_row_is_an_item_that_the_package_reads(language: str) -> None:
    for row in rows(language):
        example = from_record(row)
        start, end = example.pronoun
        assert example.text[start:end].lower() in {
            form.removesuffix("的") for forms in PRONOUNS.values() for form in forms
        }
        assert not set("{}\x01\x02\x03\x04\x05") & set(example.text)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_rows_of_a_pair_mean_different_participants(language: str) -> None:
    pairs: dict[str, list[int]] = defaultdict(list)
    for row in rows(language):
        pairs[row["minimal_pair"]].append(row["antecedents"][0])
    assert all(meant[0] != meant[1] for meant in pairs.values() if len(meant) == 2)
    first = Counter(meant[0] for meant in pairs.values() if len(meant) == 1)
    assert abs(first[0] - first[1]) < 4 * sum(first.values()) ** 0.5


@pytest.mark.parametrize("language", LANGUAGES)
def test_outside_scenes_number_decides_between_two_of_a_sort_of_which_the_clause_can_be_said(language: str) -> None:
    items = Items(load(language), Random(5))
    contexts = {id(context) for context in items.lexicon.contexts}
    pairs = [pair for pair in (items.kinds["number"]() for _ in range(600)) if pair and id(pair.context) in contexts]
    said_of = {
        THING: set(items.lexicon.of_things),
        ANIMAL: set(items.of_animals),
        PERSON: set(items.lexicon.of_persons),
    }
    assert {pair.participants[0].noun.sort for pair in pairs} == set(said_of)
    for pair in pairs:
        (sort,) = {participant.noun.sort for participant in pair.participants}
        assert set(pair.readings) <= said_of[sort]


def test_the_same_seed_draws_the_same_rows() -> None:
    assert rows("en", 40) == rows("en", 40)
    assert rows("en", 40) != rows("en", 40, seed=1)


def test_english_rows_agree_and_take_the_right_article() -> None:
    wrong = re.compile(
        r"\bthey (?:was|is|has|does)\b|\ban (?:uni[cf]|one)|\ba (?:(?!eu)[aeio]|hour|heir)", re.IGNORECASE
    )
    texts = [row["text"] for row in Items(load("en"), Random(3)).rows({"role": 1.0, "selection": 1.0}, 3000)]
    assert not [text for text in texts if wrong.search(text) and not re.search(r"\ba one", text)]


def test_the_command_writes_the_same_file_each_time(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("one.jsonl", "two.jsonl")]
    for file in files:
        write_items(TrainingItems(output=str(file), pairs=30, dev_share=0.2, controlled=0))
    assert files[0].read_bytes() == files[1].read_bytes()
    rows = [json.loads(line) for line in files[0].read_text(encoding="utf-8").splitlines()]
    assert {row["split"] for row in rows} == {"train", "dev"} and {row["language"] for row in rows} == {"en", "zh"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_class_that_an_entry_names_holds_nouns(language: str) -> None:
    lexicon = load(language)
    known = {*lexicon.by_class, PERSON, ANIMAL, THING}
    named = {kind for context in lexicon.contexts for kinds in context.kinds for kind in kinds}
    named |= {kind for scene in lexicon.scenes for kinds in scene.context.kinds for kind in kinds}
    named |= {kind for reading in lexicon.predicates for kind in (*reading.fits, *reading.never)}
    assert named <= known


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_reading_is_said_and_never_said_of_one_class(language: str) -> None:
    assert not [reading.say for reading in load(language).predicates if not reading.fits.isdisjoint(reading.never)]


def test_verbs_and_pronouns_agree_with_a_plural() -> None:
    cat = Noun("cat", "cats", (), frozenset({"pet"}), is_animal=True)
    box = Noun("box", "boxes", (), frozenset({"container"}))
    cats, crate = Participant(cat, NEUTER, True, "the cats"), Participant(box, NEUTER, False, "a box")
    frame = Frame("en", "{A} was put into {B}", (cats, crate), "we", "Last night,", "nobody spoke .")
    assert _without_marks(frame.text(".", "{he} {was} asleep", cats)) == (
        "Last night, the cats were put into a box. Nobody spoke. They were asleep."
    )
    assert _without_marks(frame.text("because", "{his} lid {was} open", crate)) == (
        "Last night, the cats were put into a box because its lid was open. Nobody spoke."
    )


@pytest.mark.parametrize(
    ("language", "gender", "plural", "expected"),
    [
        ("en", "female", False, "Ann saw Eva, so she washed herself with her soap."),
        ("en", "male", False, "Ann saw Eva, so he washed himself with his soap."),
        ("en", NEUTER, True, "Ann saw Eva, so they washed themselves with their soap."),
        ("zh", "female", False, "Ann见Eva，她用她的肥皂洗她自己。"),
    ],
)
def test_a_pronoun_that_is_not_asked_agrees_too(language: str, gender: str, plural: bool, expected: str) -> None:
    ann, eva = (
        Participant(Noun(name, "", (gender,), frozenset(["name"])), gender, plural, name) for name in ("Ann", "Eva")
    )
    english = language == "en"
    frame = Frame(language, "{A} saw {B}" if english else "{A}见{B}", (ann, eva), "we", "", "")
    said = "{he} washed {himself_} with {his_} soap" if english else "{he}用{his_}肥皂洗{himself_}"
    text = frame.text("so" if english else "，", said, ann)
    assert _without_marks(text) == expected and text.count(ASKED) == 1


@pytest.mark.parametrize(
    ("wording", "text"),
    [
        ("{A} {was} put into {B}", "The cats were put into a box. It was full."),
        ("{B} was {A} 's", "A box was the cats'. It was full."),
    ],
)
def test_a_wording_agrees_with_a_plural(wording: str, text: str) -> None:
    cat = Noun("cat", "cats", (), frozenset({"pet"}), is_animal=True)
    box = Noun("box", "boxes", (), frozenset({"container"}))
    cats, crate = Participant(cat, NEUTER, True, "the cats"), Participant(box, NEUTER, False, "a box")
    frame = Frame("en", wording, (cats, crate), "we", "", "")
    assert _without_marks(frame.text(".", "{he} was full", crate)) == text


def _without_marks(text: str) -> str:
    return "".join(character for character in text if character >= " ")


@pytest.mark.parametrize(
    ("language", "text", "pronoun", "antecedent", "expected"),
    [
        ("en", "The spoon lay in the soup. It was hot.", "It", "soup", "The spoon lay in the soup. The soup was hot."),
        ("en", "The cats saw Ann. Their tails rose.", "Their", "cats", "The cats saw Ann. The cats' tails rose."),
        ("en", "The cats saw Ann, and she left.", "she", "Ann", "The cats saw Ann, and Ann left."),
        ("en", "The cats saw Ann. We met her.", "her", "Ann", "The cats saw Ann. We met her."),
        ("zh", "勺子在汤里，它的味道很好。", "它", "汤", "勺子在汤里，汤的味道很好。"),
    ],
)
def test_a_resolved_text_names_the_antecedent(
    language: str, text: str, pronoun: str, antecedent: str, expected: str
) -> None:
    def span(word: str) -> list[int]:
        return [text.index(word), text.index(word) + len(word)]

    row = {"text": text, "pronoun": span(pronoun), "candidates": [span(antecedent)], "antecedents": [0]}
    assert resolved({**row, "language": language}) == expected


def test_every_second_training_text_is_resolved(tmp_path: Path) -> None:
    items, texts = tmp_path / "items.jsonl", tmp_path / "texts.jsonl"
    write_items(TrainingItems(output=str(items), as_text=str(texts), pairs=30, dev_share=0.2, controlled=0))
    for output, as_text in ((items, None), (tmp_path / "new.jsonl", str(texts))):
        with pytest.raises(UserError, match="exists; name another file, or set overwrite=true"):
            write_items(TrainingItems(output=str(output), as_text=as_text, pairs=30, controlled=0))
    assert not (tmp_path / "new.jsonl").exists()
    training = [row for row in map(json.loads, items.read_text("utf-8").splitlines()) if row["split"] == "train"]
    written = [row["text"] for row in map(json.loads, texts.read_text("utf-8").splitlines())]
    assert written[1::2] == [row["text"] for row in training][1::2]
    assert written[::2] == [resolved(row) for row in training][::2]
    assert written[::2] != [row["text"] for row in training][::2]
