"""Accuracies on perturbed items: the cue or the context is masked, names are replaced, or positions are removed.

The cue is the word or words that decide which candidate is the antecedent. The model is not fine-tuned on perturbed
items. Accuracy above chance that remains if the cue is masked cannot come from the cue.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from anaphora.analysis.maps.answers import Bools
from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.results.scores import AccuracyCell, Groups, Head
from anaphora.analysis.scores.cells import bootstrap_interval, clusters, each_cell, rounded
from anaphora.analysis.scores.heads import score_records
from anaphora.analysis.scores.measures.roles import cue_tokens
from anaphora.settings.model.attention import heads_of
from anaphora.settings.model.position import NoPosition
from anaphora.settings.vocabulary import MASK

if TYPE_CHECKING:
    from anaphora.data.batches.encoded import EncodedSplit
    from anaphora.model.pronoun_model import PronounModel
    from anaphora.runs.directory import Run

PERTURBATIONS = ("cue_masked", "context_removed", "names_replaced", "no_positions")
"""cue_masked: the words that differ within the minimal pair become [MASK]; if there are none, the pronoun does.
context_removed: every word except the pronoun and the candidates becomes [MASK].
names_replaced: every candidate's name is replaced, in all items of its quad (two cues by two orders of the names), by a
name of the same language and token count from another quad, if there is one. Roles in the event stay the same; gender,
number and learned preferences may change.
no_positions: the words stay, and the position encoding is removed from the model.
"""


@dataclass(frozen=True, kw_only=True)
class PerturbedCell(AccuracyCell):
    """Accuracies of the model and the chosen head on a group of perturbed items."""

    items: int


def perturbations(run: Run, records: Sequence[AttentionRecord], head: Head) -> dict[str, Groups[PerturbedCell]]:
    """Measure the accuracies of a run's answers and of one head under each of `PERTURBATIONS`, such as a masked cue.

    Only items of the main results (`Example.is_main`) count. Results are keyed by perturbation, language and cue
    category (`kind`).
    """
    return {name: _perturbed_scores(run, records, head, name) for name in PERTURBATIONS}


def _perturbed_scores(run: Run, records: Sequence[AttentionRecord], head: Head, name: str) -> Groups[PerturbedCell]:
    from anaphora.analysis.maps.capture import capture
    from anaphora.data.batches.encoded import EncodedSplit

    examples = [record.example for record in records]
    data, model = EncodedSplit(examples, run.tokenizer), run.model
    match name:
        case "no_positions":
            model = without_positions(model)
        case "names_replaced":
            data = data.with_ids(ids_with_replaced_names(data))
        case _:
            data = data.with_ids(masked_ids(data, name))
    captured = capture(model, data, run.config.batching)
    scores = score_records(captured.records)
    right = scores.at(head, "candidate_accuracy")
    task = captured.correct[scores.kept]
    labels = clusters(scores.examples)

    def cell(items: Bools) -> PerturbedCell:
        return PerturbedCell(
            items=int(items.sum()),
            task_accuracy=rounded(task[items].mean()),
            candidate_accuracy=rounded(right[items].mean()),
            interval=bootstrap_interval(right[items], labels[items], (0, 1)),
            chance=rounded(scores.chance[items].mean()),
        )

    return each_cell(scores.examples, cell)


def masked_ids(data: EncodedSplit, name: str) -> list[list[int]]:
    """Return the token ids of each item, in which [MASK] replaces the cue or the context (`PERTURBATIONS`).

    `name` is "cue_masked" or "context_removed".
    """
    cues = cue_tokens(data.examples, [tokens.spans for tokens in data.tokens])
    ids = []
    for item, tokens in enumerate(data.tokens):
        example = data.examples[item]
        if name == "cue_masked":
            masked = set(np.flatnonzero(cues[item]).tolist() or tokens.covering(example.pronoun))
        else:
            textual = {token for token, (start, end) in enumerate(tokens.spans) if start < end}
            masked = textual - {token for span in example.spans for token in tokens.covering(span)}
        ids.append([MASK if token in masked else number for token, number in enumerate(tokens.ids)])
    return ids


def ids_with_replaced_names(data: EncodedSplit) -> list[list[int]]:
    """Return the token ids of each item after the name of each candidate has been replaced by another name.

    The new name comes from another group of items in the same language, and has as many tokens; if there is no such
    name, the old one stays. All items of a group get the same new names.
    """
    mentions_of = [
        [tokens.covering(span) for span in example.spans[1:]]
        for example, tokens in zip(data.examples, data.tokens, strict=True)
    ]
    names = [
        {tuple(tokens.ids[token] for token in mention) for mention in mentions}
        for tokens, mentions in zip(data.tokens, mentions_of, strict=True)
    ]
    pools: dict[tuple[str, int], set[tuple[int, ...]]] = {}
    group_names: dict[str, set[tuple[int, ...]]] = {}
    groups = [example.group or f"alone {item}" for item, example in enumerate(data.examples)]
    for example, group, known in zip(data.examples, groups, names, strict=True):
        group_names.setdefault(group, set()).update(known)
        for name in known:
            pools.setdefault((example.language, len(name)), set()).add(name)
    replacements: dict[str, dict[tuple[int, ...], tuple[int, ...]]] = {}
    ids = []
    for example, group, tokens, mentions in zip(data.examples, groups, data.tokens, mentions_of, strict=True):
        if group not in replacements:
            replacements[group] = _replacement_names(sorted(group_names[group]), example.language, pools, group)
        changed = list(tokens.ids)
        for mention in mentions:
            name = tuple(tokens.ids[token] for token in mention)
            for token, number in zip(mention, replacements[group][name], strict=True):
                changed[token] = number
        ids.append(changed)
    return ids


def _replacement_names(
    names: Sequence[tuple[int, ...]], language: str, pools: dict[tuple[str, int], set[tuple[int, ...]]], group: str
) -> dict[tuple[int, ...], tuple[int, ...]]:
    draw = random.Random(f"{group}/names")
    taken = set(names)
    chosen = {}
    for name in names:
        free = sorted(pools[language, len(name)] - taken)
        chosen[name] = draw.choice(free) if free else name
        taken.add(chosen[name])
    return chosen


def without_positions(model: PronounModel) -> PronounModel:
    """Return a copy of a model without its position encoding."""
    copy = deepcopy(model)
    settings = copy.encoder.settings
    copy.encoder.position = NoPosition().build(settings.width, heads_of(settings.attention))
    return copy
