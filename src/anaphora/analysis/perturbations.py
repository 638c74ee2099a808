"""Controls at test time: the same trained model, and sentences from which what decides has been taken away.

What is left of an accuracy when the cue is hidden was not earned by reading the cue.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from anaphora.analysis.capture import look
from anaphora.analysis.cells import cells, clusters, interval, nested, rounded
from anaphora.analysis.record import AttentionRecord
from anaphora.analysis.roles import cue_tokens
from anaphora.analysis.scores import Head, score
from anaphora.checkpoint import Run
from anaphora.data.batch import Encoded, Ragged
from anaphora.model import position
from anaphora.model.resolver import Resolver
from anaphora.model.settings import NoPosition
from anaphora.specials import MASK

PERTURBATIONS = ("cue_masked", "context_removed", "names_replaced", "no_positions")
"""cue_masked: the words in which an item differs from its twin become [MASK]; where the pronoun is the cue, it does.
context_removed: every word but the pronoun and the candidates becomes [MASK].
names_replaced: every candidate is called something else, as candidates of other blocks of the language are called in as
many tokens, and the same throughout a block. What rests on who does what stays; what rests on the words themselves,
such as gender, number or a favourite, goes.
no_positions: the words stay, and every position encoding is switched off.
"""


def perturbations(run: Run, records: Sequence[AttentionRecord], head: Head) -> dict[str, Any]:
    """What the chosen head and the model's answers are worth on items that no longer tell who is meant.

    Args:
        run: the run.
        records: main items, whole blocks, as they were captured unperturbed.
        head: the head that the development split chose.

    Returns:
        {perturbation: {language: {kind or "all": {"items", "task_accuracy", "candidate_accuracy", "interval",
        "chance"}}}}; the interval is that of the candidate accuracy.
    """
    return {name: _measured(run, records, head, name) for name in PERTURBATIONS}


def _measured(run: Run, records: Sequence[AttentionRecord], head: Head, name: str) -> dict[str, Any]:
    examples = [record.example for record in records]
    data, resolver = Encoded(examples, run.tokenizer), run.resolver
    match name:
        case "no_positions":
            resolver = without_positions(resolver)
        case "names_replaced":
            data.ids = Ragged(replaced_names(data))
        case _:
            data.ids = Ragged(hidden_words(data, name))
    found = look(resolver, data, run.config.batching, run.config.task.readout)
    scores = score(found.records)
    right = scores.candidate_accuracy[:, head.layer, head.head].astype(np.float64)
    task = found.correct[scores.kept]
    chance = scores.gold.sum(axis=1) / np.maximum(scores.present.sum(axis=1), 1)
    labels = clusters(scores.examples)
    return nested(
        (
            language,
            kind,
            {
                "items": int(chosen.sum()),
                "task_accuracy": rounded(task[chosen].mean()),
                "candidate_accuracy": rounded(right[chosen].mean()),
                "interval": interval(right[chosen], [labels[place] for place in np.flatnonzero(chosen)]),
                "chance": rounded(chance[chosen].mean()),
            },
        )
        for language, kind, chosen in cells(scores.examples)
    )


def hidden_words(data: Encoded, name: str) -> list[list[int]]:
    """The ids of every item with the words that a perturbation hides as [MASK]: N lists, as long as before."""
    cues = cue_tokens(data.examples, [tokens.spans for tokens in data.tokens])
    ids = []
    for item, tokens in enumerate(data.tokens):
        example = data.examples[item]
        pronoun = set(tokens.covering(example.pronoun))
        named = {place for spans in example.candidates for span in spans for place in tokens.covering(span)}
        if name == "cue_masked":
            hidden = set(np.flatnonzero(cues[item]).tolist()) or pronoun
        else:
            textual = {place for place, (start, end) in enumerate(tokens.spans) if start < end}
            hidden = textual - pronoun - named
        ids.append([MASK if place in hidden else one for place, one in enumerate(tokens.ids)])
    return ids


def replaced_names(data: Encoded) -> list[list[int]]:
    """The ids of every item with other names for its candidates: N lists, as long as before.

    A name that no other candidate of the language could take the place of, for want of one of as many tokens, stays.
    """
    places = [
        [[tokens.covering(span) for span in mentions] for mentions in example.candidates]
        for example, tokens in zip(data.examples, data.tokens, strict=True)
    ]
    names = [
        {tuple(tokens.ids[place] for place in mention) for mentions in here for mention in mentions}
        for tokens, here in zip(data.tokens, places, strict=True)
    ]
    pools: dict[tuple[str, int], set[tuple[int, ...]]] = {}
    blocks: dict[str, set[tuple[int, ...]]] = {}
    groups = [example.group or f"alone {item}" for item, example in enumerate(data.examples)]
    for example, group, known in zip(data.examples, groups, names, strict=True):
        blocks.setdefault(group, set()).update(known)
        for name in known:
            pools.setdefault((example.language, len(name)), set()).add(name)
    others: dict[str, dict[tuple[int, ...], tuple[int, ...]]] = {}
    ids = []
    for example, group, tokens, here in zip(data.examples, groups, data.tokens, places, strict=True):
        if group not in others:
            others[group] = _other_names(sorted(blocks[group]), example.language, pools, group)
        changed = list(tokens.ids)
        for mention in (mention for mentions in here for mention in mentions):
            name = tuple(tokens.ids[place] for place in mention)
            for place, token in zip(mention, others[group][name], strict=True):
                changed[place] = token
        ids.append(changed)
    return ids


def _other_names(
    names: Sequence[tuple[int, ...]], language: str, pools: dict[tuple[str, int], set[tuple[int, ...]]], group: str
) -> dict[tuple[int, ...], tuple[int, ...]]:
    """A name of as many tokens for each of a block's names, none of them the block's own and no two the same."""
    draw = random.Random(f"{group}/names")
    taken = set(names)
    chosen = {}
    for name in names:
        free = sorted(pools[language, len(name)] - taken)
        chosen[name] = draw.choice(free) if free else name
        taken.add(chosen[name])
    return chosen


def without_positions(resolver: Resolver) -> Resolver:
    """A copy of a model that is told no places; the model itself stays as it is."""
    copy = deepcopy(resolver)
    encoder = copy.encoder
    heads = encoder.blocks[0].get_submodule("attention").heads
    assert isinstance(heads, int)
    blind = position.build(NoPosition(), encoder.settings.width, heads)
    encoder.position = blind
    for block in encoder.blocks:
        attention = block.get_submodule("attention")
        attention._position = (blind,)  # type: ignore[assignment]
    return copy
