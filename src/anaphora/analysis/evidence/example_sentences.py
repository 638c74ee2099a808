"""Example sentences of a report, selected by a fixed rule, with attention maps between words."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from itertools import islice, zip_longest

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.evidence.headline import Headline, Measurement
from anaphora.analysis.maps.kinds import sentence_maps
from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.maps.words import WordRow, word_map, word_weights
from anaphora.analysis.results.scores import ALL
from anaphora.analysis.scores.quads import quads_of
from anaphora.data.grouping import indices_by

_QUAD = 4  # number of items: two cues by two orders of the candidates


@dataclass(frozen=True, eq=False)
class ExampleSentence:
    """Example sentence with its attention maps, the model's answer, and whether answer and chosen head are right."""

    record: AttentionRecord
    row: WordRow  # attention rows of the pronoun over words
    maps: dict[str, NDArray[np.float32]]  # maps over W words by name, (L, H or 1, queries, keys)
    answer: int | None  # index of the predicted candidate, or `NO_CANDIDATE`; None if the model predicts no antecedents
    model_correct: bool | None
    head_correct: bool


MapsOf = Callable[[int], Mapping[str, NDArray[np.float32]]]
"""Function from the index of an attention record to the maps of its sentence, by name: (L, H or 1, queries, keys)."""


def maps_of_run(headline: Headline) -> MapsOf:
    """Return a function from the index of a record in `headline` to the attention maps of its sentence."""
    run, records = headline.run, headline.capture.records
    return lambda number: sentence_maps(run.model, run.tokenizer, records[number].example)[1]


def example_sentences(
    measurement: Measurement, most: int, maps_of: MapsOf, among: Collection[int] | None = None
) -> list[ExampleSentence]:
    """Select up to `most` sentences, balanced over language, cue type, and correctness of answer and head.

    Only items of the main results (`Example.is_main`) are selected and, if `among` is given, only records with these
    indices. A cue type is, for example, gender or causality.
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


def first_quad(measurement: Measurement, language: str, kind: str) -> list[AttentionRecord]:
    """Return the records of the first complete quad in a language and cue category (`kind`); empty if there is none.

    A quad has four sentences about the same scene: two cues, each with both orders of the two names. Groups of eight
    items do not fit into a 2 x 2 table of cues and orders and are skipped. Items without a cue category have the kind
    "all".
    """
    scores = measurement.measured
    for members in indices_by(name or None for name in quads_of(scores.examples)).values():
        example = scores.examples[members[0]]
        wanted = (example.language, example.factors.get("kind", ALL)) == (language, kind) and example.is_main
        if wanted and len(members) == _QUAD and example.factors.get("pronouns", "1") == "1":
            return [measurement.capture.records[int(scores.kept[member])] for member in members]
    return []


def first_right_and_wrong(measurement: Measurement, language: str) -> dict[str, AttentionRecord]:
    """Return the records of a language's first item on which the head is right, and of the first on which it is wrong.

    Only items of the main results (`Example.is_main`) count. The records have the keys "right" and "wrong"; a key is
    missing if there is no such item.
    """
    scores, head = measurement.measured, measurement.head
    first: dict[str, AttentionRecord] = {}
    for item, example in enumerate(scores.examples):
        if example.is_main and example.language == language:
            right = scores.candidate_accuracy[item, head.layer, head.head] > 0.5
            first.setdefault("right" if right else "wrong", measurement.capture.records[int(scores.kept[item])])
    return first


def _balanced_items(measurement: Measurement, most: int, among: Collection[int] | None) -> list[int]:
    """Return the indices of at most `most` items of the main results, sorted by language and index.

    Items are taken in turn from groups that share language, cue type, and correctness of answer and head.
    """
    scores, head, task_correct = measurement.measured, measurement.head, measurement.task_correct
    piles: dict[tuple[str, str, bool, bool], list[int]] = {}
    for item, example in enumerate(scores.examples):
        if example.is_main and (among is None or int(scores.kept[item]) in among):
            pointed = bool(scores.candidate_accuracy[item, head.layer, head.head] > 0.5)
            key = (example.language, example.factors.get("type", ""), bool(task_correct[item] > 0.5), pointed)
            piles.setdefault(key, []).append(item)
    turns = zip_longest(*(piles[key] for key in sorted(piles)))
    in_turn = (item for turn in turns for item in turn if item is not None)
    return sorted(islice(in_turn, most), key=lambda item: (scores.examples[item].language, item))
