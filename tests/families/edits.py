"""Edits of a family against its oracle: a copy in which other weights mix the values must end in the same states."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from families import oracle
from torch import Tensor

from anaphora.analysis.causal.interventions import Intervention, knockout_edges, replace_head_outputs
from anaphora.analysis.results.scores import Head
from anaphora.data.tokens.tokenizer import TokenizedText
from anaphora.hf.reader import TransformersModel

TOLERANCE = 2e-4
"""Between two computations of one number."""


def compare_edits(
    opened: TransformersModel, tokens: Sequence[TokenizedText], truth: Callable[..., oracle.Pass]
) -> tuple[list[tuple[str, str]], list[str]]:
    """Knock an edge out and ablate a head in every layer of every text, all texts read together.

    Args:
        opened: the model.
        tokens: of the texts.
        truth: runs a fresh copy of it over the ids of a text, under a change if one is given.

    Returns:
        What is wrong, kind and detail, and what is too weak to tell.

    Raises:
        UserError: the model cannot be edited.
    """
    problems: list[tuple[str, str]] = []
    notes: list[str] = []
    plain = opened.editable.read(tokens, [])[1]
    for row, own in enumerate(tokens):
        count = len(own.ids)
        start = row * max(len(one.ids) for one in tokens)
        maps, squares = opened.run([own]), truth(own.ids).squares
        for block, layer in enumerate(opened.reading.layers):
            shown = maps[block][0]
            distances = [distance_between(shown, one) for one in squares[block].maps(count)]
            option = distances.index(min(distances))
            for what, intervention, of in _edits(shown, Head(layer, (block + 1) % opened.heads), start):
                expected = truth(own.ids, oracle.Change(block, option, of)).states
                states = opened.editable.read(tokens, [intervention])[1][row][:count]
                effect, distance = distance_between(states, plain[row][:count]), distance_between(states, expected)
                if not distance <= TOLERANCE + 0.01 * effect:
                    problems.append((f"{what} otherwise", f"{distance:.3g} off in layer {layer}, effect {effect:.3g}"))
                if effect < 10 * TOLERANCE:
                    notes.append(f"weak: {what} in layer {layer} with an effect of {effect:.2g}")
    return problems, notes


def _edits(maps: Tensor, head: Head, start: int) -> Iterator[tuple[str, Intervention, Callable[[Tensor], Tensor]]]:
    """What is done to one head, as an intervention and as what it makes of maps, (H, T, T)."""
    query = maps.shape[1] - 2
    weights = maps[head.head, query]
    key = int(torch.where(weights > 0.9, 0, weights).argmax())

    def without_edge(maps: Tensor) -> Tensor:
        changed = maps.clone()
        changed[head.head, query] /= 1 - maps[head.head, query, key]
        changed[head.head, query, key] = 0
        return changed

    def without_head(maps: Tensor) -> Tensor:
        changed = maps.clone()
        changed[head.head] = 0
        return changed

    edge = (torch.tensor([start + query]), torch.tensor([start + key]))
    yield "an edge is knocked out", knockout_edges({head: edge}), without_edge
    yield "a head is ablated", replace_head_outputs({head: torch.zeros(())}), without_head


def distance_between(one: Tensor, other: Tensor) -> float:
    """The greatest difference of two tensors, infinite between shapes."""
    if one.shape != other.shape:
        return float("inf")
    return float((one.float() - other.float()).abs().max())
