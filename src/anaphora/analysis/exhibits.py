"""Sentences to look at: chosen by a rule, never by their looks, with every map merged to words."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.flow import sentence_maps
from anaphora.analysis.record import AttentionRecord
from anaphora.analysis.scores import is_main
from anaphora.analysis.study import Measurement, Study
from anaphora.analysis.words import WordRow, word_map, word_weights


@dataclass(frozen=True, eq=False)
class Exhibit:
    """One sentence with its maps.

    Attributes:
        record: the sentence and its pronoun's rows.
        row: its words with their spans.
        maps: name -> (L, H or 1, W, W) over the words, attending word first.
        answer: the candidate that the model names, -1 for "none of them", -2 where it answers nothing.
        right: whether that is right; None where it answers nothing.
        head_right: whether the chosen head points at the antecedent.
    """

    record: AttentionRecord
    row: WordRow
    maps: dict[str, NDArray[np.float32]]
    answer: int
    right: bool | None
    head_right: bool


MapsOf = Callable[[int], Mapping[str, NDArray[np.float32]]]
"""The number of a record -> its sentence's maps, name -> (L, H or 1, T, T), attending token first."""


def maps_of_run(found: Study) -> MapsOf:
    """The maps that a run's model makes of the sentences of its study."""
    run = found.run

    def maps_of(place: int) -> Mapping[str, NDArray[np.float32]]:
        example = found.seen.records[place].example
        return sentence_maps(run.resolver, run.tokenizer, example, run.config.task.readout)[1]

    return maps_of


def exhibits(found: Measurement, most: int, maps_of: MapsOf, among: Collection[int] | None = None) -> list[Exhibit]:
    """At most so many main items: in turn the first right and wrong ones of every language and type of cue.

    Args:
        found: the records, their scores and the answers.
        most: how many.
        maps_of: is asked for the maps of those that are chosen.
        among: the numbers of the records to choose from; by default all.
    """
    scores, head = found.measured, found.head
    shown = []
    for item in _in_turn(found, most, among):
        place = int(scores.kept[item])
        record = found.seen.records[place]
        correct = float(found.seen.correct[place])
        shown.append(
            Exhibit(
                record,
                word_weights(record),
                {name: word_map(each, record.words) for name, each in maps_of(place).items()},
                int(found.seen.answers[place]),
                None if np.isnan(correct) else correct > 0.5,
                bool(scores.candidate_accuracy[item, head.layer, head.head] > 0.5),
            )
        )
    return shown


def _in_turn(found: Measurement, most: int, among: Collection[int] | None) -> list[int]:
    """Items, one of each pile in turn; a pile shares language, type, and whether answer and head are right."""
    scores, head = found.measured, found.head
    main = is_main(scores.examples)
    piles: dict[tuple[str, str, bool, bool], list[int]] = {}
    for item, example in enumerate(scores.examples):
        if main[item] and (among is None or int(scores.kept[item]) in among):
            pointed = bool(scores.candidate_accuracy[item, head.layer, head.head] > 0.5)
            key = (example.language, example.factors.get("type", ""), bool(found.task_correct[item] > 0.5), pointed)
            piles.setdefault(key, []).append(item)
    chosen = list(_round_robin([piles[key] for key in sorted(piles)], most))
    return sorted(chosen, key=lambda item: (scores.examples[item].language, item))


def _round_robin(piles: list[list[int]], most: int) -> Iterator[int]:
    given = 0
    for depth in range(max((len(pile) for pile in piles), default=0)):
        for pile in piles:
            if depth < len(pile) and given < most:
                given += 1
                yield pile[depth]
