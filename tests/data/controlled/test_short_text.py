from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from difflib import SequenceMatcher

import pytest

from anaphora.analysis.scores.baselines.order_models import wordings_seen
from anaphora.analysis.scores.quads import quads_of
from anaphora.base.language import LANGUAGES
from anaphora.data.controlled import compositions, corpus
from anaphora.data.example import Example, from_record, to_record
from anaphora.settings.cue_types import COMPOSITION, SHORT_TEXT
from anaphora.settings.data import ControlledCorpus

OTHERS = ["gender", "number", "animacy", "selection", "causality", "winograd", "binding", COMPOSITION]
EVALUATED = ("dev", "test")
NEAREST = 0.8
"""Maximum share of a text's words that are also in the nearest other text, in the same order."""


@pytest.fixture(scope="module")
def generated() -> dict[str, list[Example]]:
    return corpus.generate(ControlledCorpus(train_items=8_000, test_items=400, types=[SHORT_TEXT]))


def of(examples: Sequence[Example], language: str, *strata: str) -> list[Example]:
    return [each for each in examples if each.language == language and each.factors["stratum"] in strata]


def pairs(examples: Sequence[Example]) -> set[tuple[str, str]]:
    return {(each.factors["predicate"], each.factors["cue"]) for each in examples}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_text_has_two_sentences_or_more_and_most_name_both_participants_again(
    generated: dict[str, list[Example]], language: str
) -> None:
    for examples in generated.values():
        spoken = of(examples, language, "main", "L1", "L2")
        sentences = [len(re.findall(r"[.?。？]", each.text)) for each in spoken]
        assert min(sentences) >= 2
        again = sum(all(len(each.candidates[index]) > 1 for index in each.focal) for each in spoken)
        assert again > len(spoken) / 2


def test_an_exported_text_is_read_back_as_it_is(generated: dict[str, list[Example]]) -> None:
    for examples in generated.values():
        assert [from_record(to_record(each)) for each in examples] == examples
        assert any("event_names" in each.factors for each in examples)


def test_groups_are_octads_and_those_of_one_voice_quads(generated: dict[str, list[Example]]) -> None:
    for examples in generated.values():
        sizes: dict[str, int] = defaultdict(int)
        for group in quads_of(examples):
            sizes[group] += 1
        assert "" not in sizes
        assert {sizes[each.group] for each in examples if each.factors["stratum"] != "L1"} == {8}
        assert {sizes[each.group] for each in examples if each.factors["stratum"] == "L1"} == {4}


@pytest.mark.parametrize("language", LANGUAGES)
def test_pairs_are_withheld_as_in_compositions_of_the_same_seed(
    generated: dict[str, list[Example]], language: str
) -> None:
    settings = ControlledCorpus(train_items=16_000, test_items=400, types=[COMPOSITION], languages=[language])
    plain = corpus.generate(settings)
    for split in EVALUATED:
        never = pairs(of(generated[split], language, "L2"))
        assert never and not never & pairs(of(generated["train"], language, "main", "L1"))
        shown = {(each.factors["predicate"], each.factors.get("cue")) for each in plain["train"]}
        assert not never & {pair for pair in shown if pair[1]}


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_table_of_wordings_answers_what_it_has_seen_and_nothing_else(
    generated: dict[str, list[Example]], language: str
) -> None:
    """The order "first" is that in the event; with the order in the text, the table would seem less accurate."""
    for stratum, expected in (("main", 1.0), ("L1", 0.5), ("L2", 0.5)):
        right = wordings_seen(generated["train"], of(generated["test"], language, stratum))
        assert right.mean() == pytest.approx(expected, abs=0.1 if stratum == "main" else 0.0)


@pytest.mark.parametrize(("language", "by"), [("en", "by"), ("zh", "被")])
def test_places_of_words_are_counted_from_the_names_in_the_event(
    generated: dict[str, list[Example]], language: str, by: str
) -> None:
    """Otherwise the marker of voice would have no fixed position, and positional shortcuts would seem less accurate."""
    for example in of(generated["test"], language, "main", "L2"):
        if example.factors["voice"] == "patient_first" and f" {by} " in f" {example.text} ".replace("被", " 被 "):
            first, second = map(int, example.factors["event_names"].split(","))
            assert by in example.text[first:second]
            assert {first, second} <= {start for index in example.focal for start, _ in example.candidates[index]}


def test_the_event_s_subject_is_named(generated: dict[str, list[Example]]) -> None:
    contents = {language: compositions.load(language) for language in LANGUAGES}
    for example in generated["test"]:
        subject = int(example.factors["subject"])
        agent_is_meant = (example.antecedents[0] == subject) == (example.factors["voice"] == "agent_first")
        state = example.factors["cue"]
        kind = example.factors["scenario"].split("/")[0]
        states = contents[example.language].states_of(kind, "agent")
        assert (state in {each.text for each in states}) == agent_is_meant


@pytest.mark.parametrize("language", LANGUAGES)
def test_dev_and_test_are_told_in_other_texts_and_in_no_new_words(language: str) -> None:
    texts = {
        split: [text.split() for line in lines for text in line]
        for split, lines in compositions.load_texts(language).items()
    }
    known = {word.lower() for word in corpus.words(language, OTHERS)}
    for split in EVALUATED:
        words = {word.lower() for text in texts[split] for word in text if word[0] != "{" and word[0].isalnum()}
        assert words <= known
        for text in texts[split]:
            nearest = max(SequenceMatcher(a=other, b=text, autojunk=False).ratio() for other in texts["train"])
            assert nearest < NEAREST, " ".join(text)


def test_the_rest_of_the_corpus_is_the_same_without_them() -> None:
    settings = {"train_items": 2_400, "test_items": 400}
    without = corpus.generate(ControlledCorpus(**settings, types=OTHERS))  # type: ignore[arg-type]
    beside = corpus.generate(ControlledCorpus(**settings, types=[*OTHERS, SHORT_TEXT]))  # type: ignore[arg-type]
    for split, examples in without.items():
        others = {(each.text, each.pronoun) for each in beside[split] if each.factors["type"] != SHORT_TEXT}
        assert others == {(each.text, each.pronoun) for each in examples}
        assert len(beside[split]) > len(examples)
