"""Test of edits against an oracle: a copy with replaced mixing weights must have the same final states."""

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
"""Maximum difference between two computations of the same value."""


def compare_edits(
    opened: TransformersModel, tokens: Sequence[TokenizedText], truth: Callable[..., oracle.Pass]
) -> tuple[list[tuple[str, str]], list[str]]:
    """Knock out an edge and ablate a head in each layer, and compare with the oracle; texts share a batch if they may.

    Args:
        opened: the model.
        tokens: tokens of the texts.
        truth: function that runs a new copy of the model on the token ids of a text, with an optional change.

    Returns:
        The problems as (kind, detail), and the effects that are too small to test.

    Raises:
        UserError: the model cannot be edited.
    """
    problems: list[tuple[str, str]] = []
    notes: list[str] = []
    for number, own in enumerate(tokens):
        count = len(own.ids)
        batch, row = ([own], 0) if opened.editable.alone else (tokens, number)
        start = row * max(len(one.ids) for one in batch)
        plain = opened.editable.read(batch, [])[1][row][:count]
        maps, squares = opened.run([own]), truth(own.ids).squares
        for block, layer in enumerate(opened.reading.layers):
            shown = maps[block][0]
            distances = [distance_between(shown, one) for one in squares[block].maps(count)]
            option = distances.index(min(distances))
            for what, intervention, of in _edits(shown, Head(layer, (block + 1) % opened.heads), start):
                expected = truth(own.ids, oracle.Change(block, option, of)).states
                states = opened.editable.read(batch, [intervention])[1][row][:count]
                effect, distance = distance_between(states, plain), distance_between(states, expected)
                if not distance <= TOLERANCE + 0.01 * effect:
                    problems.append((f"{what} otherwise", f"{distance:.3g} off in layer {layer}, effect {effect:.3g}"))
                if effect < 10 * TOLERANCE:
                    notes.append(f"weak: {what} in layer {layer} with an effect of {effect:.2g}")
    return problems, notes


def _edits(maps: Tensor, head: Head, start: int) -> Iterator[tuple[str, Intervention, Callable[[Tensor], Tensor]]]:
    """Yield the edits of a head, each as an intervention and as a function on maps, (H, T, T)."""
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
    """Return the largest difference between two tensors, infinite for different shapes."""
    if one.shape != other.shape:
        return float("inf")
    return float((one.float() - other.float()).abs().max())
