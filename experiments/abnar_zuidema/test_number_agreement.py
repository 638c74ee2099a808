"""Tests that the number of a sentence is that of its subject, and that no shortcut predicts it."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.abnar_zuidema.number_agreement import (
    ADJECTIVES,
    DETERMINERS,
    LONGEST,
    NOUNS,
    SHORTEST,
    VERBS,
    generate_items,
)

ITEMS = generate_items(2000, seed=3)
NUMBER = {form: bool(many) for pair in NOUNS for many, form in enumerate(pair)}


def test_the_verb_has_the_number_of_the_subjects_noun() -> None:
    assert all(NUMBER[item.text.split()[item.subject]] == item.plural for item in ITEMS)
    assert np.mean([item.plural for item in ITEMS]) == pytest.approx(0.5, abs=0.04)


def test_attractors_are_the_nouns_of_the_other_number_behind_the_subject() -> None:
    for item in ITEMS:
        behind = item.text.split()[item.subject + 1 :]
        assert item.attractors == sum(NUMBER.get(word, item.plural) != item.plural for word in behind)
    assert 0.3 < np.mean([item.attractors > 0 for item in ITEMS]) < 0.8


@pytest.mark.parametrize("place", [0, -1], ids=["first", "nearest"])
def test_neither_the_first_nor_the_nearest_noun_tells_the_number(place: int) -> None:
    chosen = [[NUMBER[word] for word in item.text.split() if word in NUMBER][place] for item in ITEMS]
    right = np.mean([number == item.plural for number, item in zip(chosen, ITEMS, strict=True)])
    assert right < 0.85


def test_every_noun_phrase_agrees_within_itself() -> None:
    marked = {word: many for many, words in DETERMINERS.items() for word in words if word != "that"}
    for item in ITEMS:
        words = item.text.split()
        for place, word in enumerate(words):
            if word in marked:
                noun = words[place + 2] if words[place + 1] in ADJECTIVES else words[place + 1]
                assert NUMBER.get(noun, marked[word]) == marked[word], item.text  # "this time" has no noun of ours


def test_the_verb_of_a_subject_relative_agrees_with_the_subject() -> None:
    forms = {form: many for singular, plural, _ in VERBS for many, form in ((False, singular), (True, plural))}
    checked = 0
    for item in ITEMS:
        words = item.text.split()
        if words[item.subject + 1 : item.subject + 2] == ["that"] and words[item.subject + 2] in forms:
            checked += 1
            assert forms[words[item.subject + 2]] == item.plural, item.text
    assert checked > 50


def test_sentences_differ_keep_their_lengths_and_come_again_with_the_seed() -> None:
    texts = [item.text for item in ITEMS]
    assert len(set(texts)) == len(texts)
    assert {SHORTEST, SHORTEST + 5} < {len(text.split()) for text in texts}
    assert all(SHORTEST <= len(text.split()) <= LONGEST for text in texts)
    assert generate_items(20, seed=3) == ITEMS[:20]
    assert generate_items(20, seed=4) != ITEMS[:20]


def test_a_test_sentence_is_no_training_sentence() -> None:
    apart = set(texts := [item.text for item in ITEMS[:200]])
    assert apart == set(texts)
    again = generate_items(300, seed=3, apart_from=apart)
    assert not apart & {item.text for item in again}
