"""Tests of the hand-written sentences: counts as in the README, balanced positions, valid spans, disjoint splits."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from difflib import SequenceMatcher
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest

from anaphora.data.example import Example
from anaphora.data.store import load
from anaphora.settings.data import OwnExamples

FOLDER = Path(__file__).parent
LANGUAGES = ("en", "zh")
SECOND = ("second.en", "second.zh")
THIRD = ("third.en", "third.zh")
FOURTH = ("fourth.en", "fourth.zh")
FIFTH = ("fifth.en", "fifth.zh")
SIXTH = ("sixth.en", "sixth.zh")
SEVENTH = ("seventh.en", "seventh.zh")
LATER = (*SECOND, *THIRD, *FOURTH, *FIFTH, *SIXTH, *SEVENTH)
SETS = (*LANGUAGES, *LATER)
DEVELOPMENT = ("dev.en", "dev.zh")
PAIRS = {"gender": 30, "number": 25, "animacy": 25, "selection": 40, "role": 40, "long": 40}
"""Number of minimal pairs of each cue type."""
LATER_PAIRS = {"gender": 13, "number": 10, "animacy": 10, "selection": 25, "role": 25, "long": 17}
"""Number of minimal pairs of each cue type in each later set, all in the test split."""
DEVELOPMENT_PAIRS = {"role": 70, "selection": 50, "long": 40, "gender": 15, "number": 15, "animacy": 15}
"""Number of minimal pairs of each cue type in the second development set."""
PRONOUNS = {
    "en": {"he", "him", "his", "she", "her", "it", "its", "they", "them", "their"},
    "zh": {"他", "她", "它", "他们", "她们", "它们"},
}
MOST_CHANGED = {
    "en": 6,
    "zh": 12,
    "fifth.en": 13,
    "fifth.zh": 25,
    "sixth.en": 10,
    "sixth.zh": 18,
    "seventh.en": 10,
    "seventh.zh": 14,
}
"""Largest number of words of an English pair, characters of a Chinese one, that differ: by language, or by set."""


@cache
def examples(name: str) -> dict[str, tuple[Example, ...]]:
    """Return the examples of a file by split."""
    corpus = load(OwnExamples(path=str(FOLDER / f"{name}.jsonl")))
    return {split: tuple(corpus.examples(split)) for split in ("train", "dev", "test")}


def language_of(name: str) -> str:
    return name.rsplit(".", 1)[-1]


def pairs(name: str) -> list[tuple[Example, ...]]:
    rows = defaultdict(list)
    for split in examples(name).values():
        for example in split:
            rows[example.minimal_pair].append(example)
    return [tuple(pair) for pair in rows.values()]


def candidate_texts(example: Example) -> list[str]:
    return [example.text[start:end].lower() for ((start, end),) in example.candidates]


def candidates_together(rows: Iterable[Example]) -> set[frozenset[str]]:
    """Return all pairs of candidates that occur in the same sentence."""
    return {frozenset(two) for example in rows for two in combinations(candidate_texts(example), 2)}


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_counts_are_those_of_the_readme(language: str) -> None:
    splits = examples(language)
    assert {split: len(rows) for split, rows in splits.items()} == {"train": 0, "dev": 200, "test": 200}
    every = [*splits["dev"], *splits["test"]]
    assert len({example.text for example in every}) == 400
    assert all(example.language == language for example in every)
    assert Counter(example.factors["type"] for example in every) == {cue: 2 * count for cue, count in PAIRS.items()}
    tested = Counter(example.factors["type"] for example in splits["test"])
    assert tested["selection"] >= 50 and tested["role"] >= 50


@pytest.mark.parametrize("name", LATER)
def test_a_later_set_has_a_hundred_pairs_in_the_test_split_and_the_types_of_the_readme(name: str) -> None:
    splits = examples(name)
    assert {split: len(rows) for split, rows in splits.items()} == {"train": 0, "dev": 0, "test": 200}
    assert len({example.text for example in splits["test"]}) == 200
    assert all(example.language == language_of(name) for example in splits["test"])
    counts = Counter(example.factors["type"] for example in splits["test"])
    assert counts == {cue: 2 * count for cue, count in LATER_PAIRS.items()}


@pytest.mark.parametrize("name", DEVELOPMENT)
def test_the_second_development_set_has_the_types_of_the_readme_and_no_sentence_of_a_test_set(name: str) -> None:
    splits = examples(name)
    counts = Counter(example.factors["type"] for example in splits["dev"])
    assert counts == {cue: 2 * count for cue, count in DEVELOPMENT_PAIRS.items()}
    assert not splits["train"] and not splits["test"]
    texts = {example.text for example in splits["dev"]}
    assert len(texts) == len(splits["dev"])
    tests = [other for other in SETS if language_of(other) == language_of(name)]
    assert not texts & {example.text for other in tests for rows in examples(other).values() for example in rows}


@pytest.mark.parametrize("name", [*SETS, *DEVELOPMENT])
def test_in_each_pair_the_first_mention_is_right_once_and_the_nearest_once(name: str) -> None:
    for pair in pairs(name):
        assert len(pair) == 2
        assert len({(example.group, example.factors["type"], len(example.candidates)) for example in pair}) == 1
        last = len(pair[0].candidates) - 1
        assert sorted(example.antecedents for example in pair) == [(0,), (last,)]
        assert all(mention[-1][1] <= example.pronoun[0] for example in pair for mention in example.candidates)


@pytest.mark.parametrize("name", SETS)
def test_the_two_sentences_of_a_pair_differ_in_a_few_words(name: str) -> None:
    language = language_of(name)
    most = MOST_CHANGED.get(name, MOST_CHANGED[language])
    for pair in pairs(name):
        one, other = (example.text.split() if language == "en" else example.text for example in pair)
        same = sum(block.size for block in SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks())
        assert 1 <= max(len(one), len(other)) - same <= most, pair[0].text


@pytest.mark.parametrize("name", [*SETS, *DEVELOPMENT, *(f"introductions.{language}" for language in LANGUAGES)])
def test_spans_are_third_person_pronouns_and_different_nouns_or_names(name: str) -> None:
    for split in examples(name).values():
        for example in split:
            pronouns = PRONOUNS[example.language]
            start, end = example.pronoun
            assert example.text[start:end].lower() in pronouns, example.text
            named = candidate_texts(example)
            assert len(set(named)) == len(named) >= 2, example.text
            assert not set(named) & pronouns, example.text


@pytest.mark.parametrize("language", LANGUAGES)
def test_dev_and_test_share_no_two_candidates(language: str) -> None:
    dev, test = (candidates_together(examples(language)[split]) for split in ("dev", "test"))
    assert dev and test and not dev & test


@pytest.mark.parametrize("name", LATER)
def test_a_later_set_shares_no_sentence_no_group_and_no_two_candidates_with_the_sets_before_it(name: str) -> None:
    language = language_of(name)
    names = [earlier for earlier in SETS[: SETS.index(name)] if language_of(earlier) == language]
    before = [example for earlier in names for rows in examples(earlier).values() for example in rows]
    later = examples(name)["test"]
    assert not {example.text for example in before} & {example.text for example in later}
    assert not {example.group for example in before} & {example.group for example in later}
    assert not candidates_together(before) & candidates_together(later)


@pytest.mark.parametrize("name", SETS)
def test_no_candidate_is_used_in_more_than_four_pairs(name: str) -> None:
    used = Counter(word for pair in pairs(name) for word in {word for row in pair for word in candidate_texts(row)})
    assert max(used.values()) <= 4


@pytest.mark.parametrize("language", LANGUAGES)
def test_five_sentences_are_of_the_kinds_that_introductions_use(language: str) -> None:
    rows = examples(f"introductions.{language}")["test"]
    assert len(rows) == 5 and {example.factors["type"] for example in rows} == {"animal", "name"}
