"""Tests that the list of well-known sentences is balanced, and that the page has the run's own results."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest

import anaphora
from anaphora.base.errors import UserError
from anaphora.data.example import Example
from anaphora.data.store import load
from anaphora.settings.data import OwnExamples
from experiments.everyday import content
from experiments.sentences import page
from experiments.sentences.nearness import TrainingText

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("results/sentences.md", "results/sentences.zh.md")


def listed(language: str) -> list[Example]:
    corpus = load(OwnExamples(path=str(Path(__file__).parent / f"{language}.jsonl")))
    return [example for split in ("train", "dev", "test") for example in corpus.examples(split)]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_list_favours_neither_mention_and_names_its_patterns(language: str) -> None:
    examples = listed(language)
    assert len({example.text for example in examples}) == 40
    assert Counter(example.antecedents for example in examples) == {(0,): 20, (1,): 20}
    assert all(example.language == language and example.factors["pattern"] for example in examples)
    pairs = Counter(example.minimal_pair for example in examples if example.minimal_pair)
    assert len(pairs) == 19 and set(pairs.values()) == {2}


def test_both_pages_hold_every_sentence_the_same_numbers_and_the_command() -> None:
    numbers = []
    for name in PAGES:
        text = (DOCS / name).read_text(encoding="utf-8")
        assert re.search(r"^\.venv/bin/python -m experiments\.sentences 'runs=\[outputs/", text, re.MULTILINE)
        everyday = r"\.venv/bin/python -m experiments\.everyday train"
        trained = re.findall(rf"^(?:make demo$|anaphora train experiment=compositions|{everyday})", text, re.MULTILINE)
        (read,) = re.findall(r"^\.venv/bin/python -m experiments\.sentences 'runs=\[(.*)\]'$", text, re.MULTILINE)
        assert len(trained) == len(read.split(",")) >= 1
        plain = text.replace("*", "")
        assert [each.text for language in ("en", "zh") for each in listed(language) if each.text not in plain] == []
        row = re.compile(r"\| (\d+|[^|]+ \| \d+(?: \([^|]*\))?) \|")  # its median alone, or with the lowest and highest
        cells = [line.split("|") for line in text.splitlines() if row.match(line)]
        sections = text.count("| 1 |")
        numbers.append(
            [re.findall(r"\d+(?:\.\d+)?", " ".join(row[2:8])) for row in cells if not row[1].strip().isdigit()]
        )
        assert sum(row[1].strip().isdigit() for row in cells) == 40 * sections
        assert len(numbers[-1]) == 3 * sections + (2 if sections == 4 else 0)  # the table of scenes
    assert numbers[0] == numbers[1] and sections in (2, 4)


def test_a_run_is_asked_for_its_answer_and_its_chosen_heads_weights(
    own_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = {language: listed(language)[:2] for language in ("en", "zh")}
    monkeypatch.setattr(page, "PAGES", {language: tmp_path / f"{language}.md" for language in two})
    monkeypatch.setattr(page, "examples", two.__getitem__)
    with pytest.raises(UserError, match="no head has been chosen yet"):
        page.main([str(own_run)])
    metrics = {"head": {"layer": 1, "head": 0, "chosen_on": "dev"}}
    (own_run / "metrics_dev.json").write_text(json.dumps(metrics), encoding="utf-8")  # the test split is unread
    page.main([str(own_run)])

    run, example = anaphora.load(own_run), two["en"][0]
    reading = page.read(run, example)
    row = run.attention(example.text).row(f"{example.pronoun[0]}:{example.pronoun[1]}", layer=1, head=0)
    words = [example.words(0), example.words(1)]
    assert reading.weights == tuple(row.to(word) for word in words)
    assert reading.answer is not None
    assert words[reading.answer] == run.answer(example.text, example.text[slice(*example.pronoun)], words)
    assert 0 < reading.nearness < 1 and set(words) <= set(reading.cut)
    for language in two:
        assert f"{words[0]} {reading.weights[0]:.2f}" in (tmp_path / f"{language}.md").read_text(encoding="utf-8")


def test_nearness_counts_the_fewest_words_that_change() -> None:
    masked = np.array([[-1, 5, -1, 6, 7], [-1, 8, 9, -3, -3]], dtype=np.int32)
    training = TrainingText(frozenset(range(10)), masked, np.array([5, 3]), np.array([1.0, 0.25]))
    assert training.nearest([-1, 5, -1, 6, 7]) == (1, 1)
    assert training.nearest([-1, 5, -1, 4, 7]) == pytest.approx((4 / 5, 1))
    assert training.nearest([-1, 8, 9, 4]) == pytest.approx((3 / 4, 0.25))  # inserted: over the longer one's words
    assert training.nearest([4, 4, 4]) == (0, 0.625)  # as far from both


def test_right_is_the_antecedent_alone_with_most_weight() -> None:
    example = listed("en")[0]
    other = 1 - example.antecedents[0]
    most, tie = [0.2, 0.2], (0.3, 0.3)
    most[other] = 0.4
    readings = tuple(page.Reading(other, weights, (), 0.5, 0.5) for weights in (tuple(most), tie))
    sentence = page.Sentence(example, readings)
    assert not any([sentence.answered(0), sentence.pointed(0), sentence.pointed(1)])
    assert sentence.is_known


@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_everyday_scene_words_one_of_the_sentences(language: str) -> None:
    numbers: defaultdict[str, int] = defaultdict(lambda: len(numbers))
    scenes = content.load(language).scenes
    written = sorted(
        {
            tuple(pieces(f"{wording} {scene.link[0]} {reading}", language))
            for scene in scenes
            for wording in (*scene.forward, *scene.backward)
            for readings in scene.readings
            for reading in readings
        }
    )
    masked = np.full((len(written), max(map(len, written))), -1, dtype=np.int32)
    for row, words in enumerate(written):
        masked[row, : len(words)] = [numbers[word] for word in words]
    lengths = np.array([len(words) for words in written])
    training = TrainingText(frozenset(), masked, lengths, np.zeros(len(written)))
    for example in listed(language):
        nearness, _ = training.nearest([numbers[word] for word in pieces(with_slots(example), language)])
        assert nearness <= page.NEAREST_SCENE, example.text


def with_slots(example: Example) -> str:
    """Return a sentence with slots for its candidates and pronoun, as in a scene, and without its full stop."""
    slots = {example.pronoun: "{he}"} | {span: "{A}" for spans in example.candidates for span in spans}
    text = example.text.rstrip(".。")
    for (start, end), slot in sorted(slots.items(), reverse=True):
        text = f"{text[:start]} {slot} {text[end:]}"
    return text


def pieces(text: str, language: str) -> list[str]:
    """Return the words, or Chinese characters, of a text with slots, without determiners and forms of the pronoun."""
    slots = re.sub(r"\{(?:A|B)\}", "{A}", re.sub(r"\{(?:he|him|his|himself)\}", "{he}", text))
    found = re.findall(r"\{\w+\}|[a-z']+|[^\sa-z{}]", slots.lower())
    return [word for word in found if language == "zh" or word not in ("the", "a")]
