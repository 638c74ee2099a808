"""Interventions: what attention does is changed in named heads and edges, and the model is asked again.

Each function makes the edits of the layers that it names; `intervene` puts them into an encoder for as long as a `with`
block lasts. B batch, T tokens a row, L layers, H heads, D features a head, N items, M candidates at most. Flat
positions are row * T + token.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anaphora.analysis.scores import Head
from anaphora.data.batch import Batch, Encoded, evaluation_batches
from anaphora.data.example import Example
from anaphora.data.settings import Batching
from anaphora.data.tokenizer import Tokens
from anaphora.errors import UserError
from anaphora.model.attention import Edit
from anaphora.model.block import Block
from anaphora.model.encoder import Encoder
from anaphora.model.resolver import Resolver
from anaphora.model.settings import Readout, slots_of

Intervention = Mapping[int, Edit]
"""The edit of each layer that it touches."""
Pairs = tuple[Tensor, Tensor]
"""Edges: the flat positions of the attending tokens and those of the attended ones, two of (E,)."""


@contextmanager
def intervene(encoder: Encoder, *interventions: Intervention) -> Iterator[None]:
    """Let interventions act on every pass of an encoder inside the `with` block, and none of them after it.

    They compose: edits act in the order given, those of an outer block first.

    Raises:
        UserError: a layer or a head is not there.
    """
    layers = [block.attention for block in encoder.blocks if isinstance(block, Block)]
    before = [layer.edits for layer in layers]
    for intervention in interventions:
        for number, edit in intervention.items():
            heads = edit.heads if isinstance(edit, _OfHeads) else ()
            if not 0 <= number < len(layers) or not all(0 <= head < layers[number].heads for head in heads):
                raise UserError(
                    f"intervention: layer {number}, heads {sorted(set(heads))} are not all among the "
                    f"{len(layers)} layers of {layers[0].heads} heads"
                )
    try:
        for intervention in interventions:
            for number, edit in intervention.items():
                layers[number].edits += (edit,)
        yield
    finally:
        for layer, edits in zip(layers, before, strict=True):
            layer.edits = edits


def replace_outputs(outputs: Mapping[Head, Tensor]) -> Intervention:
    """Let heads put out what is given instead of what they mixed.

    Zeros silence a head (Michel et al. 2019, section 2.3); its mean over reference data leaves what it always says.

    Args:
        outputs: for each head a tensor that broadcasts to (B, T, D).
    """
    return {
        layer: _Outputs(heads, [outputs[Head(layer, head)] for head in heads])
        for layer, heads in _by_layer(outputs).items()
    }


def uniform_weights(heads: Iterable[Head]) -> Intervention:
    """Let heads attend alike to every token that they may attend to; position biases do not count then."""
    return {layer: _Uniform(numbers) for layer, numbers in _by_layer(heads).items()}


def cut_edges(edges: Mapping[Head, Pairs]) -> Intervention:
    """Forbid edges: their score is -inf and softmax gives their weight to the rest of the row.

    A row of which nothing is left becomes zeros. The "attention knockout" of Geva et al. 2023.
    """
    return {
        layer: _Cut(heads, [edges[Head(layer, head)] for head in heads]) for layer, heads in _by_layer(edges).items()
    }


def drop_values(edges: Mapping[Head, Pairs]) -> Intervention:
    """Keep all other weights as they are and take nothing along these edges; such rows sum to less than 1."""
    return {
        layer: _Drop(heads, [edges[Head(layer, head)] for head in heads]) for layer, heads in _by_layer(edges).items()
    }


def set_rows(rows: Mapping[Head, tuple[Tensor, Tensor]]) -> Intervention:
    """Replace the weights of given queries.

    Args:
        rows: for each head the queries' flat positions (Q,) and their new weights (Q, T).
    """
    return {
        layer: _Rows(heads, [rows[Head(layer, head)] for head in heads]) for layer, heads in _by_layer(rows).items()
    }


class Listener(Edit):
    """Changes nothing and keeps what passed by last.

    Attributes:
        heard_weights: (B, H, T, T).
        heard_mixed: (B, H, T, D).
    """

    heard_weights: Tensor
    heard_mixed: Tensor

    def weights(self, weights: Tensor) -> Tensor:
        self.heard_weights = weights
        return weights

    def mixed(self, mixed: Tensor) -> Tensor:
        self.heard_mixed = mixed
        return mixed


class _OfHeads(Edit):
    def __init__(self, heads: Sequence[int]) -> None:
        self.heads = tuple(heads)


class _Outputs(_OfHeads):
    def __init__(self, heads: Sequence[int], outputs: Sequence[Tensor]) -> None:
        super().__init__(heads)
        self.outputs = outputs

    def mixed(self, mixed: Tensor) -> Tensor:
        changed = mixed.clone()
        for head, output in zip(self.heads, self.outputs, strict=True):
            changed[:, head] = output
        return changed


class _Uniform(_OfHeads):
    def scores(self, scores: Tensor) -> Tensor:
        changed = scores.clone()
        for head in self.heads:
            changed[:, head] = scores[:, head].masked_fill(scores[:, head] > -math.inf, 0.0)
        return changed


class _Edges(_OfHeads):
    def __init__(self, heads: Sequence[int], edges: Sequence[Pairs]) -> None:
        super().__init__(heads)
        self.head = torch.cat([torch.full_like(query, head) for head, (query, _) in zip(heads, edges, strict=True)])
        self.query = torch.cat([query for query, _ in edges])
        self.key = torch.cat([key for _, key in edges])

    def fill(self, table: Tensor, value: float) -> Tensor:
        """The edges' entries of (B, H, T, T) set to one value."""
        row, query = _row_and_token(self.query, table)
        other, key = _row_and_token(self.key, table)
        if not torch.equal(row, other):
            raise UserError("intervention: an edge joins two rows of the batch; query and key must share one")
        return table.index_put((row, self.head, query, key), table.new_tensor(value))


class _Cut(_Edges):
    def scores(self, scores: Tensor) -> Tensor:
        return self.fill(scores, -math.inf)


class _Drop(_Edges):
    def weights(self, weights: Tensor) -> Tensor:
        return self.fill(weights, 0.0)


class _Rows(_OfHeads):
    def __init__(self, heads: Sequence[int], rows: Sequence[tuple[Tensor, Tensor]]) -> None:
        super().__init__(heads)
        self.rows = rows

    def weights(self, weights: Tensor) -> Tensor:
        changed = weights.clone()
        for head, (queries, rows) in zip(self.heads, self.rows, strict=True):
            row, token = _row_and_token(queries, weights)
            changed[row, head, token] = rows.to(weights.dtype)
        return changed


def _row_and_token(positions: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
    rows, length = table.shape[0], table.shape[-1]
    if len(positions) and not 0 <= int(positions.min()) <= int(positions.max()) < rows * length:
        raise UserError(
            f"intervention: positions from {int(positions.min())} to {int(positions.max())}; "
            f"expected 0 to {rows * length - 1} in {rows} rows of {length} tokens"
        )
    return positions // length, positions % length


def _by_layer(heads: Iterable[Head]) -> dict[int, list[int]]:
    layers: defaultdict[int, list[int]] = defaultdict(list)
    for each in heads:
        layers[each.layer].append(each.head)
    return dict(layers)


class Edges(NamedTuple):
    """Edges of attention in the sentences of many items; tokens count from 0 in each sentence. Five of (E,)."""

    item: NDArray[np.int64]
    layer: NDArray[np.int64]
    head: NDArray[np.int64]
    query: NDArray[np.int64]
    key: NDArray[np.int64]


Scores = NDArray[np.float64]
"""(N, M + 1): for each item how well each candidate answers, last "none of them"; -inf for what is not offered."""


class Subject(Protocol):
    """A model and the N items on which it is tested: all that the causal tests ask of a model.

    Whoever writes these methods for a model of their own can have it tested. Tokens count from 0 in each item's own
    sentence; every method that returns scores asks the model about all items and leaves it as it was.
    """

    @property
    def shape(self) -> tuple[int, int]:
        """Layers and heads."""

    @property
    def examples(self) -> Sequence[Example]:
        """The items."""

    @property
    def tokens(self) -> Sequence[Tokens]:
        """Each item's tokens as the model reads them."""

    def maps(self) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Each item once, in any order, with its attention (L, H, T, T), attending token first."""

    def scores(self) -> Scores:
        """The answers of the model as it is."""

    def gated(self, heads: Sequence[Head], mode: str) -> Scores:
        """With whole heads switched off at every token, as one of `MODES` says."""

    def cut(self, edges: Edges) -> Scores:
        """With edges forbidden before the softmax."""

    def dropped(self, edges: Edges) -> Scores:
        """With nothing taken along edges, all other weights as they were."""

    def patched(self, heads: Sequence[Head], rows: Mapping[int, NDArray[np.float32]]) -> Scores:
        """With the pronoun's weights in some heads replaced: item -> (L, H, Q, T) for its Q pronoun tokens."""


MODES = ("zero", "mean", "resample", "uniform")
"""What a head puts out when it is switched off: nothing; its mean over all tokens of all items; what it put out at the
same place of another sentence (the twin where there is one of the same length, else the next item of the language); the
mean of the values that it may attend to."""


class PackedSubject:
    """A `Subject`: one of our models, its items packed into batches once.

    Args:
        resolver: the model, in evaluation mode.
        data: the items.
        batching: how they are packed.
        readout: how it answers.
    """

    def __init__(self, resolver: Resolver, data: Encoded, batching: Batching, readout: Readout) -> None:
        self.examples, self.tokens = data.examples, data.tokens
        self._resolver = resolver
        self._layers = [block.attention for block in resolver.encoder.blocks if isinstance(block, Block)]
        device = resolver.device
        self._batches = [batch.to(device) for batch in evaluation_batches(data, batching, slots_of(readout))]
        self._place: dict[int, tuple[int, int]] = {}  # item -> its batch, and the flat position at which it begins
        for number, batch in enumerate(self._batches):
            begins = batch.query_positions - batch.places.flatten()[batch.query_positions]
            for place, begin in zip(batch.query_items.tolist(), begins.tolist(), strict=True):
                self._place[int(batch.items[place])] = (number, begin)
        self._means: dict[Head, Tensor] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return len(self._layers), self._layers[0].heads

    def maps(self) -> Iterator[tuple[int, NDArray[np.float32]]]:
        for batch, heard in self._listen():
            weights = torch.stack([listener.heard_weights for listener in heard], dim=1).float().cpu().numpy()
            length = batch.ids.shape[1]
            for item in batch.items.tolist():
                row, column = divmod(self._place[item][1], length)
                own = slice(column, column + len(self.tokens[item].ids))
                yield item, weights[row, :, :, own, own]

    def scores(self) -> Scores:
        return self._ask([{} for _ in self._batches])

    def gated(self, heads: Sequence[Head], mode: str) -> Scores:
        match mode:
            case "zero":
                nothing = torch.zeros((), device=self._batches[0].ids.device)
                return self._ask([replace_outputs(dict.fromkeys(heads, nothing))] * len(self._batches))
            case "mean":
                means = self._mean_outputs()
                return self._ask([replace_outputs({head: means[head] for head in heads})] * len(self._batches))
            case "resample":
                return self._ask([replace_outputs(outputs) for outputs in self._resampled(heads)])
            case "uniform":
                return self._ask([uniform_weights(heads)] * len(self._batches))
        raise UserError(f"mode ({mode!r}) must be one of {', '.join(MODES)}")

    def cut(self, edges: Edges) -> Scores:
        return self._ask([cut_edges(pairs) for pairs in self._located(edges)])

    def dropped(self, edges: Edges) -> Scores:
        return self._ask([drop_values(pairs) for pairs in self._located(edges)])

    def patched(self, heads: Sequence[Head], rows: Mapping[int, NDArray[np.float32]]) -> Scores:
        interventions: list[Intervention] = []
        layer, head = [each.layer for each in heads], [each.head for each in heads]
        for batch in self._batches:
            length = batch.ids.shape[1]
            queries: list[int] = []
            weights: list[NDArray[np.float32]] = []
            for item in batch.items.tolist():
                if item in rows:
                    begin = self._place[item][1]
                    tokens = self.tokens[item].covering(self.examples[item].pronoun)
                    queries += [begin + token for token in tokens]
                    whole = np.zeros((len(heads), len(tokens), length), dtype=np.float32)
                    here = rows[item][layer, head]
                    whole[..., begin % length : begin % length + here.shape[-1]] = here
                    weights.append(whole)
            if not queries:
                interventions.append({})
                continue
            at = torch.tensor(queries, device=batch.ids.device)
            new = torch.from_numpy(np.concatenate(weights, axis=1)).to(batch.ids.device)
            interventions.append(set_rows({each: (at, new[place]) for place, each in enumerate(heads)}))
        return self._ask(interventions)

    def _ask(self, interventions: Sequence[Intervention]) -> Scores:
        """The answers with one intervention for each batch."""
        found: Scores | None = None
        for batch, intervention in zip(self._batches, interventions, strict=True):
            with torch.inference_mode(), intervene(self._resolver.encoder, intervention):
                scores = self._resolver.readout.scores(self._resolver.see(batch), batch).double().cpu().numpy()
            if found is None:
                found = np.zeros((len(self.tokens), scores.shape[1]))
            found[batch.items.cpu().numpy()] = scores
        assert found is not None
        return found

    def _listen(self) -> Iterator[tuple[Batch, list[Listener]]]:
        """Each batch with what went through every layer."""
        for batch in self._batches:
            heard = {layer: Listener() for layer in range(len(self._layers))}
            with torch.inference_mode(), intervene(self._resolver.encoder, heard):
                self._resolver.see(batch)
            yield batch, list(heard.values())

    def _located(self, edges: Edges) -> list[dict[Head, Pairs]]:
        """Edges by batch and head, as flat positions."""
        batch, begin = np.array([self._place[item] for item in range(len(self.tokens))]).T
        located: list[dict[Head, Pairs]] = []
        for number, one in enumerate(self._batches):
            inside = batch[edges.item] == number
            item, layer, head, query, key = (each[inside] for each in edges)
            pairs: dict[Head, Pairs] = {}
            for each in np.unique(layer * self.shape[1] + head):
                chosen = Head(*divmod(int(each), self.shape[1]))
                mine = (layer == chosen.layer) & (head == chosen.head)
                start = begin[item[mine]]
                flat = (torch.from_numpy(start + query[mine]), torch.from_numpy(start + key[mine]))
                pairs[chosen] = (flat[0].to(one.ids.device), flat[1].to(one.ids.device))
            located.append(pairs)
        return located

    def _mean_outputs(self) -> dict[Head, Tensor]:
        """What each head puts out on average over the tokens of all items: (D,)."""
        if self._means is None:
            sums: list[Tensor] = []
            count = 0
            for batch, heard in self._listen():
                real = batch.segments >= 0
                count += int(real.sum())
                here = torch.stack([listener.heard_mixed.transpose(1, 2)[real].sum(dim=0) for listener in heard])
                sums = [here if not sums else sums[0] + here]
            layers, heads = self.shape
            mean = sums[0] / count  # (L, H, D)
            self._means = {Head(layer, head): mean[layer, head] for layer in range(layers) for head in range(heads)}
        return self._means

    def _resampled(self, heads: Sequence[Head]) -> list[dict[Head, Tensor]]:
        """For each batch what the heads put out at the partner of each token's sentence: (B, T, D)."""
        said: dict[int, Tensor] = {}
        for batch, heard in self._listen():
            flat = torch.stack([heard[each.layer].heard_mixed[:, each.head].flatten(0, 1) for each in heads])
            for item in batch.items.tolist():
                begin = self._place[item][1]
                said[item] = flat[:, begin : begin + len(self.tokens[item].ids)]
        partners = _partners(self.examples, self.tokens)
        outputs = []
        for batch in self._batches:
            rows, length = batch.ids.shape
            any_item = said[int(batch.items[0])]
            given = any_item.new_zeros(len(heads), rows * length, any_item.shape[-1])
            for item in batch.items.tolist():
                begin, count = self._place[item][1], len(self.tokens[item].ids)
                other = said[partners[item]]
                # A shorter partner lends its last token to the places beyond it.
                places = torch.arange(count, device=other.device).clamp(max=other.shape[1] - 1)
                given[:, begin : begin + count] = other[:, places]
            shaped = given.view(len(heads), rows, length, -1)
            outputs.append({each: shaped[place] for place, each in enumerate(heads)})
        return outputs


def next_twins(examples: Sequence[Example]) -> dict[int, int]:
    """For each item that differs in the cue alone from others the next of them, the last one's being the first."""
    sets: defaultdict[str, list[int]] = defaultdict(list)
    for item, example in enumerate(examples):
        if example.twin:
            sets[example.twin].append(item)
    return {one: other for items in sets.values() if len(items) > 1 for one, other in _ring(items)}


def _partners(examples: Sequence[Example], tokens: Sequence[Tokens]) -> dict[int, int]:
    """Whose outputs each item gets: `MODES` says which."""
    languages: defaultdict[str, list[int]] = defaultdict(list)
    for item, example in enumerate(examples):
        languages[example.language].append(item)
    partners = {one: other for items in languages.values() for one, other in _ring(items)}
    twins = next_twins(examples).items()
    partners |= {one: other for one, other in twins if len(tokens[one].ids) == len(tokens[other].ids)}
    return partners


def _ring(items: Sequence[int]) -> Iterator[tuple[int, int]]:
    return pairwise([*items, items[0]])
