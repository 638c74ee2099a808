"""Example sentences, selected by a fixed rule (no cherry-picking), with every map merged to words."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.evidence.headline import Headline, Measurement
from anaphora.analysis.maps.kinds import sentence_maps
from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.maps.words import WordRow, word_map, word_weights
from anaphora.analysis.scores.heads import head_accuracy, is_main
from anaphora.analysis.scores.quads import quads_of

_QUAD = 4  # two cues by two orders


@dataclass(frozen=True, eq=False)
class ExampleSentence:
    """One sentence with its maps.

    Attributes:
        record: the sentence and its pronoun's rows.
        row: its words with their spans.
        maps: name -> (L, H or 1, W, W) over the words, attending word first.
        answer: the candidate that the model names, or `NO_CANDIDATE`; None if it answers nothing.
        model_correct: whether that is right; None if it answers nothing.
        head_correct: whether the chosen head picks the antecedent.
    """

    record: AttentionRecord
    row: WordRow
    maps: dict[str, NDArray[np.float32]]
    answer: int | None
    model_correct: bool | None
    head_correct: bool


MapsOf = Callable[[int], Mapping[str, NDArray[np.float32]]]
"""The number of a record -> its sentence's maps, name -> (L, H or 1, T, T), attending token first."""


def maps_of_run(headline: Headline) -> MapsOf:
    """Return the maps of the measured sentences under a run's model."""
    run = headline.run

    def maps_of(number: int) -> Mapping[str, NDArray[np.float32]]:
        example = headline.capture.records[number].example
        return sentence_maps(run.model, run.tokenizer, example, run.config.task.prediction)[1]

    return maps_of


def example_sentences(
    measurement: Measurement, most: int, maps_of: MapsOf, among: Collection[int] | None = None
) -> list[ExampleSentence]:
    """Select main items: in turn the first right and wrong ones of every language and type of cue.

    Args:
        measurement: the records, their scores and the answers.
        most: the maximum number of items.
        maps_of: returns the maps of the chosen items.
        among: the numbers of the records to choose from; by default all.
    """
    scores, head = measurement.measured, measurement.head
    records, answers = measurement.capture.records, measurement.capture.answers
    sentences = []
    for item in _balanced_items(measurement, most, among):
        number = int(scores.kept[item])
        record = records[number]
        sentences.append(
            ExampleSentence(
                record,
                word_weights(record),
                {name: word_map(weights, record.words) for name, weights in maps_of(number).items()},
                None if answers is None else int(answers.candidates[number]),
                None if answers is None else bool(answers.correct[number] == 1),
                bool(scores.candidate_accuracy[item, head.layer, head.head] > 0.5),
            )
        )
    return sentences


def development_accuracy(measurement: Measurement, languages: Collection[str]) -> dict[str, NDArray[np.float64]]:
    """Return every head's candidate accuracy on the development split, (L, H) for each language that it holds."""
    spoken = np.array([example.language for example in measurement.development.examples], dtype=object)
    return {
        language: head_accuracy(measurement.development.select(spoken == language))
        for language in languages
        if (spoken == language).any()
    }


def first_quad(measurement: Measurement, language: str, kind: str) -> list[AttentionRecord]:
    """Return the four records of the first quad of a language and kind of cue; empty if there is none.

    Octads are skipped: their two voices do not fit a square of cues and orders.
    """
    scores = measurement.measured
    quads, main = quads_of(scores.examples), is_main(scores.examples)
    for item, example in enumerate(scores.examples):
        alone = example.factors.get("pronouns", "1") == "1"
        wanted = (example.language, example.factors.get("kind")) == (language, kind)
        if quads[item] and main[item] and alone and wanted:
            members = [other for other, name in enumerate(quads) if name == quads[item]]
            if len(members) != _QUAD:
                continue
            return [measurement.capture.records[int(scores.kept[member])] for member in members]
    return []


def first_right_and_wrong(measurement: Measurement, language: str) -> dict[str, AttentionRecord]:
    """Return the first main item of a language where the head picks the antecedent, and the first where it does not."""
    scores, head = measurement.measured, measurement.head
    first: dict[str, AttentionRecord] = {}
    main = is_main(scores.examples)
    for item, example in enumerate(scores.examples):
        if main[item] and example.language == language:
            right = scores.candidate_accuracy[item, head.layer, head.head] > 0.5
            first.setdefault("right" if right else "wrong", measurement.capture.records[int(scores.kept[item])])
    return first


def _balanced_items(measurement: Measurement, most: int, among: Collection[int] | None) -> list[int]:
    """Return items, one of each pile in turn; a pile shares language, type, and whether answer and head are right."""
    scores, head, task_correct = measurement.measured, measurement.head, measurement.task_correct
    main = is_main(scores.examples)
    piles: dict[tuple[str, str, bool, bool], list[int]] = {}
    for item, example in enumerate(scores.examples):
        if main[item] and (among is None or int(scores.kept[item]) in among):
            pointed = bool(scores.candidate_accuracy[item, head.layer, head.head] > 0.5)
            key = (example.language, example.factors.get("type", ""), bool(task_correct[item] > 0.5), pointed)
            piles.setdefault(key, []).append(item)
    chosen = list(_round_robin([piles[key] for key in sorted(piles)], most))
    return sorted(chosen, key=lambda item: (scores.examples[item].language, item))


def _round_robin(piles: list[list[int]], most: int) -> Iterator[int]:
    yielded = 0
    for depth in range(max((len(pile) for pile in piles), default=0)):
        for pile in piles:
            if depth < len(pile) and yielded < most:
                yielded += 1
                yield pile[depth]
