"""Tests that repeated nouns of running text become items with their first mention as antecedent."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from anaphora.data.example import from_record
from experiments.shipped.mixture import write_items
from experiments.shipped.running_text import Finder, item_of
from experiments.shipped.settings import Row, TrainingItems

PASSAGES = {
    "en": ("The cat looked at the dog for a while. Then the dog barked at us.", "it", "dog"),
    "zh": ("猫头鹰看见一只小狐狸在桌子旁边睡觉。过了一会儿，那只狐狸就跑了。", "它", "狐狸"),
}


def item(passage: str, language: str) -> Row | None:
    return item_of(passage, Finder(language), Random(1))


@pytest.mark.parametrize("language", PASSAGES)
def test_the_second_mention_becomes_a_pronoun_that_means_the_first(language: str) -> None:
    passage, pronoun, antecedent = PASSAGES[language]
    row = item(passage, language)
    assert row is not None
    example = from_record({**row, "group": "", "minimal_pair": ""})
    assert example.text[slice(*example.pronoun)].lower() in {pronoun, "he", "she", "他", "她"}
    assert example.words(example.antecedents[0]) == antecedent
    assert example.text.count(antecedent) == 1 and len(example.candidates) == 2


@pytest.mark.parametrize(
    "passage",
    [
        "The dog slept near a tree all day long. Then a dog barked at us.",  # another dog
        "The dog barked at us all day long. Then the dog slept for hours.",  # nobody else is named
        "The dog slept near my uncle all day. Then the dog barked at us.",  # "it" cannot mean an uncle
    ],
)
def test_a_passage_in_which_nothing_must_be_decided_gives_no_item(passage: str) -> None:
    assert item(passage, "en") is None


def test_the_file_has_the_antecedent_first_in_half_of_the_items(tmp_path: Path) -> None:
    text = tmp_path / "stories.txt"
    nouns = ["dog", "horse", "goat", "sheep", "rabbit", "cow"]
    stories = [
        f"The {one} looked at the {other} for a while. Then the {each} ran over the hill to us."
        for one in nouns
        for other in nouns
        for each in (one, other)
        if one != other
    ]
    text.write_text("\n\n".join(stories), encoding="utf-8")
    output = tmp_path / "items.jsonl"
    write_items(TrainingItems(output=str(output), pairs=1, texts=[str(text)], controlled=0, dev_share=0.0))
    rows = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    running = [row["antecedents"][0] for row in rows if row["factors"]["type"] == "running"]
    assert len(running) > 20 and sum(running) * 2 == len(running)
