"""Interventions that edit attention in given heads and edges during a forward pass.

An `Intervention` holds the edits of each layer; `intervene` applies it inside a `with` block. Axes are B (batch), T
(tokens of a row of the batch), H (heads) and D (features per head). The flat position of a token is row * T + column.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor

from anaphora.analysis.results.scores import Head
from anaphora.base.errors import UserError, counted
from anaphora.model.encoder import Encoder
from anaphora.model.mixer import AttentionContext, Edit

T = TypeVar("T")

FlatEdges = tuple[Tensor, Tensor]
"""Flat positions of the queries and of the keys of E edges, (E,) each."""
Intervention = Mapping[int, Edit]
"""Edits by layer index."""
PROJECTIONS = ("query", "key", "value")


@contextmanager
def intervene(encoder: Encoder, *interventions: Intervention) -> Iterator[None]:
    """Apply interventions, in order, to every forward pass of an encoder inside the `with` block.

    Edits of an enclosing `with` block are applied first.

    Raises:
        UserError: a layer or head does not exist.
    """
    layers = [block.attention for block in encoder.layers]
    before = [layer.edits for layer in layers]
    for intervention in interventions:
        for number, edit in intervention.items():
            heads = edit.heads if isinstance(edit, _HeadEdit) else ()
            if not 0 <= number < len(layers) or not all(0 <= head < layers[number].heads for head in heads):
                raise UserError(
                    f"intervention: layer {number}, heads {sorted(set(heads))} are not all among the "
                    f"{counted(len(layers), 'layer')} of {counted(layers[0].heads, 'head')}"
                )
    try:
        for intervention in interventions:
            for number, edit in intervention.items():
                layers[number].edits += (edit,)
        yield
    finally:
        for layer, edits in zip(layers, before, strict=True):
            layer.edits = edits


def replace_head_outputs(outputs: Mapping[Head, Tensor]) -> Intervention:
    """Return an intervention that replaces the outputs of heads by given vectors, broadcastable to (B, T, D).

    Zeros give zero ablation (Michel et al. 2019, section 2.3); a head's mean output over data gives mean ablation.
    """
    return _edits_by_layer(_OutputReplacement, outputs)


def uniform_weights(heads: Iterable[Head]) -> Intervention:
    """Return an intervention that makes heads attend uniformly to all allowed tokens, without any position bias."""
    return _edits_by_layer(_UniformWeights, dict.fromkeys(heads))


def knockout_edges(edges: Mapping[Head, FlatEdges]) -> Intervention:
    """Return an intervention that sets the attention scores of edges to -inf: attention knockout, Geva et al. 2023.

    The softmax distributes their weight over the query's other edges; a query without other edges gets zeros.
    """
    return _edits_by_layer(_EdgeKnockout, edges)


def zero_edge_values(edges: Mapping[Head, FlatEdges]) -> Intervention:
    """Return an intervention that sets attention weights of edges to 0 after the softmax.

    It has the same effect as zeroing the keys' value vectors for these queries alone. The other weights are not
    rescaled, so a query's weights then sum to less than 1.
    """
    return _edits_by_layer(_EdgeValueZeroing, edges)


def patch_rows(rows: Mapping[Head, tuple[Tensor, Tensor]]) -> Intervention:
    """Return an intervention that replaces attention rows.

    `rows` maps a head to the flat positions (row * T + column) of Q queries, (Q,), and their new weights, (Q, T).
    """
    return _edits_by_layer(_RowPatch, rows)


def permuted_projections(encoder: Encoder, part: str, seed: int) -> AbstractContextManager[None]:
    """Permute queries, keys or values among the tokens of each sentence in every layer, inside the `with` block.

    Each layer draws a new permutation in each forward pass, from a generator with `seed`. Position information that a
    query or a key contains is permuted with it. `part` is "query", "key" or "value".

    Raises:
        UserError: the encoder has no attention, or `part` has another value.
    """
    if part not in PROJECTIONS or not encoder.has_maps:
        raise UserError(f"permuted ({part!r}) must be one of {', '.join(PROJECTIONS)}, in an encoder with attention")
    edit = _Permutation(PROJECTIONS.index(part), torch.Generator().manual_seed(seed))
    return intervene(encoder, dict.fromkeys(range(len(encoder.layers)), edit))


class ActivationRecorder(Edit):
    """Edit that records the activations of the last forward pass and changes nothing."""

    recorded_weights: Tensor  # attention weights, (B, H, T, T)
    recorded_mixed: Tensor  # outputs of the heads before the output projection, (B, H, T, D)

    def weights(self, weights: Tensor) -> Tensor:
        self.recorded_weights = weights
        return weights

    def mixed(self, mixed: Tensor) -> Tensor:
        self.recorded_mixed = mixed
        return mixed


class _Permutation(Edit):
    def __init__(self, part: int, draw: torch.Generator) -> None:
        self.part, self.draw = part, draw

    def projected(
        self, query: Tensor, key: Tensor, value: Tensor, context: AttentionContext
    ) -> tuple[Tensor, Tensor, Tensor]:
        projections = [query, key, value]
        order = permutation_within_sentences(context.segments, self.draw)[:, None, :, None]
        projections[self.part] = projections[self.part].gather(2, order.expand_as(projections[self.part]))
        return projections[0], projections[1], projections[2]


def permutation_within_sentences(segments: Tensor, draw: torch.Generator) -> Tensor:
    """Return, for each position, the index of the token that moves there when each sentence is permuted: (B, T).

    `segments` holds the index of each token's sentence, (B, T).
    """
    keys = segments + 0.999 * torch.rand(segments.shape, generator=draw).to(segments.device)
    order = torch.empty_like(segments)
    return order.scatter(1, segments.argsort(dim=1, stable=True), keys.argsort(dim=1))


class _HeadEdit(Edit):
    """Base class of edits of several heads of one layer; `values` holds one entry for each head."""

    def __init__(self, heads: Sequence[int], values: Sequence[Any]) -> None:
        self.heads, self.values = tuple(heads), values


class _OutputReplacement(_HeadEdit):
    def mixed(self, mixed: Tensor) -> Tensor:
        changed = mixed.clone()
        for head, output in zip(self.heads, self.values, strict=True):
            changed[:, head] = output
        return changed


class _UniformWeights(_HeadEdit):
    def scores(self, scores: Tensor) -> Tensor:
        changed = scores.clone()
        for head in self.heads:
            changed[:, head] = scores[:, head].masked_fill(scores[:, head] > -math.inf, 0.0)
        return changed


class _EdgeEdit(_HeadEdit):
    def __init__(self, heads: Sequence[int], edges: Sequence[FlatEdges]) -> None:
        super().__init__(heads, edges)
        self.head = torch.cat([torch.full_like(query, head) for head, (query, _) in zip(heads, edges, strict=True)])
        self.query = torch.cat([query for query, _ in edges])
        self.key = torch.cat([key for _, key in edges])

    def fill(self, table: Tensor, value: float) -> Tensor:
        """Return a copy of scores or weights (B, H, T, T) in which the entries of the edges are `value`.

        Raises:
            UserError: an edge joins two rows of the batch, or a flat position is out of range.
        """
        row, query = _row_and_token(self.query, table)
        other, key = _row_and_token(self.key, table)
        if not torch.equal(row, other):
            raise UserError(
                "intervention: an edge joins two rows of the batch; its query and key must be in the same row"
            )
        return table.index_put((row, self.head, query, key), table.new_tensor(value))


class _EdgeKnockout(_EdgeEdit):
    def scores(self, scores: Tensor) -> Tensor:
        return self.fill(scores, -math.inf)


class _EdgeValueZeroing(_EdgeEdit):
    def weights(self, weights: Tensor) -> Tensor:
        return self.fill(weights, 0.0)


class _RowPatch(_HeadEdit):
    def weights(self, weights: Tensor) -> Tensor:
        changed = weights.clone()
        for head, (queries, rows) in zip(self.heads, self.values, strict=True):
            row, token = _row_and_token(queries, weights)
            changed[row, head, token] = rows.to(weights.dtype)
        return changed


def _row_and_token(positions: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
    rows, length = table.shape[0], table.shape[-1]
    if len(positions) and not 0 <= int(positions.min()) <= int(positions.max()) < rows * length:
        raise UserError(
            f"intervention: positions from {int(positions.min())} to {int(positions.max())}; "
            f"expected 0 to {rows * length - 1} in {counted(rows, 'row')} of {counted(length, 'token')}"
        )
    return positions // length, positions % length


def _edits_by_layer(edit: Callable[[list[int], list[T]], Edit], by_head: Mapping[Head, T]) -> Intervention:
    layers: defaultdict[int, list[Head]] = defaultdict(list)
    for head in by_head:
        layers[head.layer].append(head)
    return {
        layer: edit([one.head for one in heads], [by_head[one] for one in heads]) for layer, heads in layers.items()
    }
