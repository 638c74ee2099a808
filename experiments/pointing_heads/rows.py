"""Accuracy of a head's attention rows on original and modified sentences.

Axes are N (items), L (layers), H (heads), T (tokens) and M (candidates).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.results.scores import Head
from anaphora.analysis.scores.baselines.shortcuts import fit_shortcuts, unfitted_correctness
from anaphora.analysis.scores.heads import HeadScores, head_accuracy, ranked_heads, score_records, strongest_candidates
from anaphora.analysis.scores.statistics import permutation_p
from anaphora.data.example import Example
from anaphora.data.tokens.tokenizer import TokenizedText
from anaphora.hf.reader import TransformersModel
from experiments.pointing_heads.items import FORM_TYPES, exchanged, with_noun

Part = dict[str, Any]
"""Measurements as JSON values; None is a value that an item does not have."""

PERMUTATIONS = 100_000
"""Number of permutations; the smallest p-value stays below 0.05 after correction for 144 heads and three readings."""
RULES = ("nearest", "first", "longest")


def chosen_head(part: Part) -> Head:
    """Return the head chosen on the development sentences."""
    return Head(*part["ranked"][0])


def development_part(model: TransformersModel, examples: Sequence[Example]) -> Part:
    """Rank the heads of a model on development sentences."""
    scores = score_records(model.records(examples))
    return {
        "items": len(scores.examples),
        "ranked": [[head.layer, head.head] for head in ranked_heads(scores)[:10]],
        "grid": percent(head_accuracy(scores)),
    }


def everyday_part(model: TransformersModel, heads: Sequence[Head], examples: Sequence[Example]) -> Part:
    """Measure the best and second-best head on everyday sentences, with all baselines of the claims."""
    scores = score_records(model.records(examples))
    if len(scores.examples) != len(examples):
        raise ValueError(f"{len(examples) - len(scores.examples)} everyday sentences cannot be scored")
    best, second = heads[:2]
    of_pair: dict[str, list[str]] = {}
    for example in examples:
        of_pair.setdefault(example.minimal_pair, []).append(_asked(example))
    others = [next((one for one in of_pair[each.minimal_pair] if one != _asked(each)), "") for each in examples]
    of_form = [each.factors.get("type") in FORM_TYPES for each in examples]
    nouns = [
        with_noun(each, other) if form else None for each, other, form in zip(examples, others, of_form, strict=True)
    ]
    swapped = [exchanged(each) if form else None for each, form in zip(examples, of_form, strict=True)]
    picks = strongest_candidates(scores)[:, best.layer, best.head]
    return {
        **items_part(scores),
        "right": listed(scores.candidate_accuracy[:, best.layer, best.head]),
        "mass": listed(scores.antecedent_mass[:, best.layer, best.head]),
        "second": listed(scores.candidate_accuracy[:, second.layer, second.head]),
        "grid": percent(head_accuracy(scores)),
        "p": permutation_p(scores, best, draws=PERMUTATIONS),
        "heads": int(np.prod(scores.shape)),
        "neighbours": neighbours(model, best, examples),
        "noun": of_changed(model, nouns, lambda changed: changed.candidate_accuracy[:, best.layer, best.head]),
        "stays": of_changed(
            model,
            swapped,
            lambda changed: _stays_with_word(
                picks[[number for number, one in enumerate(swapped) if one is not None]],
                strongest_candidates(changed)[:, best.layer, best.head],
            ),
        ),
    }


def shortcuts_part(training: Sequence[Example], examples: Sequence[Example]) -> Part:
    """Measure positional rules, and shortcuts that are fitted on training items."""
    shortcuts = fit_shortcuts(training, examples)
    left_out = ("chance", "subject", "most_mentioned")  # everyday sentences do not tell candidates apart by these
    return {
        "fitted_on": len(training),
        "shortcuts": {
            name: listed(right)
            for name, right in shortcuts.items()
            if name not in left_out and not np.isnan(right).any()
        },
    }


def corpus_part(model: TransformersModel, head: Head, examples: Sequence[Example]) -> Part:
    """Measure a head and positional rules on a corpus."""
    scores = score_records(model.records(examples))
    rules = unfitted_correctness(scores.examples)
    return {
        **items_part(scores),
        "right": listed(scores.candidate_accuracy[:, head.layer, head.head]),
        "chance": listed(scores.chance),
        "shortcuts": {name: listed(rules[name]) for name in RULES},
        "dropped": scores.dropped,
    }


def rules_part(examples: Sequence[Example]) -> Part:
    """Measure rules based on positions, lengths and numbers of mentions, with the form of each item in documents."""
    rules = unfitted_correctness(examples)
    forms = [example.factors.get("form", "") for example in examples]
    return {"form": forms, "shortcuts": {name: listed(rules[name]) for name in (*RULES, "most_mentioned")}}


def items_part(scores: HeadScores) -> Part:
    """Return the items' groups, types and kinds of cue, and distances from pronoun to antecedent."""
    return {
        "group": [each.group or f"alone {number}" for number, each in enumerate(scores.examples)],
        "type": [each.factors.get("type", "") for each in scores.examples],
        "kind": [each.factors.get("kind", "") for each in scores.examples],
        "distance": [_distance(each) for each in scores.examples],
    }


def copy_of(model: TransformersModel, kind: str, seed: int) -> TransformersModel:
    """Return an untrained copy of a model, or a copy with shuffled values in each weight matrix."""
    if kind == "untrained":
        return model.untrained(seed)
    shuffled, random = copy.deepcopy(model.model), np.random.default_rng(seed)
    with torch.no_grad():
        for parameter in shuffled.parameters():
            if parameter.ndim > 1:
                random.shuffle(parameter.numpy().reshape(-1))
    return replace(model, model=shuffled, language_model=None)


def accuracy_of(model: TransformersModel, head: Head, examples: Sequence[Example]) -> float:
    """Return the candidate accuracy of a head in %, averaged over items."""
    scores = score_records(model.records(examples, head))
    return round(100 * float(scores.candidate_accuracy[:, 0, 0].mean(dtype=np.float64)), 2)


def neighbours(model: TransformersModel, head: Head, examples: Sequence[Example]) -> dict[str, list[float | None]]:
    """Return the head's correctness in the attention rows of the words next to the pronoun, and of the last word."""
    right: dict[str, list[float | None]] = {"before": [], "after": [], "last": []}
    for example in examples:
        tokens, maps = model.maps(example.text)
        rows = maps[head.layer, head.head]
        for name, places in other_words(example, tokens).items():
            if not places:
                right[name].append(None)
                continue
            record = AttentionRecord.of(example, tokens, rows[places].mean(axis=0)[None, None])
            right[name].append(round(float(score_records([record]).candidate_accuracy[0, 0, 0]), 4))
    return right


def other_words(example: Example, tokens: TokenizedText) -> dict[str, list[int]]:
    """Return the token indices of the words before and after the pronoun and of the last word, if they exist."""
    of_word: dict[int, list[int]] = {}
    for place, (word, (start, end)) in enumerate(zip(tokens.words, tokens.spans, strict=True)):
        if word >= 0 and any(sign.isalnum() for sign in example.text[start:end]):
            of_word.setdefault(word, []).append(place)
    own = {tokens.words[place] for place in tokens.covering(example.pronoun)}
    before = [word for word in of_word if word < min(own)]
    after = [word for word in of_word if word > max(own)]
    ends = {"before": before[-1:], "after": after[:1], "last": [word for word in of_word if word not in own][-1:]}
    return {name: of_word[words[0]] if words else [] for name, words in ends.items()}


def of_changed(
    model: TransformersModel, examples: Sequence[Example | None], measure: Callable[[HeadScores], NDArray[np.floating]]
) -> list[float | None]:
    """Return a measure for each modified sentence; None for items without a modified sentence."""
    there = [number for number, example in enumerate(examples) if example is not None]
    values: list[float | None] = [None] * len(examples)
    changed = [example for example in examples if example is not None]
    if changed:
        for number, value in zip(there, listed(measure(score_records(model.records(changed)))), strict=True):
            values[number] = value
    return values


def listed(values: NDArray[np.floating]) -> list[float]:
    """Return values as a list, rounded to four decimals."""
    return [round(float(value), 4) for value in values]


def percent(grid: NDArray[np.floating]) -> list[list[float]]:
    """Return shares, (L, H), in % as nested lists."""
    return [[round(100 * float(value), 2) for value in row] for row in grid]


def _stays_with_word(before: NDArray[np.float32], after: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return 1 if the head follows the word to its new position, -1 if it keeps to the position, (N,)."""
    word: NDArray[np.float32] = (before[:, :2] * after[:, 1::-1]).sum(axis=1)
    place: NDArray[np.float32] = (before[:, :2] * after[:, :2]).sum(axis=1)
    return word - place


def _asked(example: Example) -> str:
    return example.text[slice(*example.pronoun)]


def _distance(example: Example) -> int:
    """Return the number of characters between the pronoun and the nearest mention of an antecedent."""
    spans = [span for number in example.antecedents for span in example.candidates[number]]
    return min(max(start - example.pronoun[1], example.pronoun[0] - end) for start, end in spans)
