"""All maps of the protocol, for every item of a split or for one sentence, and the weights the other way round.

N items, L layers, H heads, T tokens, M candidates at most, Q query tokens. What each map means stands in `mixing` and
`attribution`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anaphora.analysis.attribution import STEPS, integrated_gradients
from anaphora.analysis.mixing import (
    Asked,
    LayerPass,
    flow_of_states,
    flow_of_tokens,
    passes,
    rollout_of_states,
    rollout_of_tokens,
    to_one,
    value_norms,
    value_zeroing,
    weighted_norms,
)
from anaphora.analysis.record import AttentionRecord
from anaphora.data.batch import Batch, Encoded, evaluation_batches, one
from anaphora.data.example import Example
from anaphora.data.settings import Batching
from anaphora.data.tokenizer import Tokenizer, Tokens
from anaphora.errors import UserError
from anaphora.model.attention import Context
from anaphora.model.readout import group_mean
from anaphora.model.resolver import Resolver
from anaphora.model.settings import Readout, slots_of

MAPS = {
    "raw": "head",
    "norm": "head",
    "rollout": "layer",
    "flow": "layer",
    "value_zeroing": "layer",
    "integrated_gradients": "model",
}
"""What there is one row of, for each map: a head (L, H, T), a layer (L, 1, T) or the model (1, 1, T)."""


def _raw(_layer: LayerPass, rows: Tensor, _asked: Asked) -> Tensor:
    return rows


def _norm(layer: LayerPass, rows: Tensor, asked: Asked) -> Tensor:
    return weighted_norms(rows, value_norms(layer)[asked[0]])


def _zeroed(layer: LayerPass, rows: Tensor, asked: Asked) -> Tensor:
    return value_zeroing(layer, rows, asked).unsqueeze(1)


OF_ONE_LAYER: dict[str, Callable[[LayerPass, Tensor, Asked], Tensor]] = {
    "raw": _raw,
    "norm": _norm,
    "value_zeroing": _zeroed,
}
"""Maps for which one layer is enough: the layer, its rows (Q, H, T), the queries -> (Q, H, T) or (Q, 1, T)."""

LONGEST = 64
"""Tokens of the longest text whose flow is computed where a solver is needed (`model.values=hidden`)."""


@dataclass(frozen=True, eq=False)
class MapRows:
    """One map's pronoun rows over a split.

    Attributes:
        granularity: "head", "layer" or "model".
        records: a record an item; its weights are (L, H, T), (L, 1, T) or (1, 1, T).
        items: each record's position in the split.
        skipped: items that are too long for this map.
    """

    granularity: str
    records: list[AttentionRecord] = field(default_factory=list)
    items: list[int] = field(default_factory=list)
    skipped: int = 0


def pronoun_maps(
    resolver: Resolver,
    data: Encoded,
    batching: Batching,
    readout: Readout,
    names: Collection[str] = tuple(MAPS),
    longest: int = LONGEST,
    steps: int = STEPS,
) -> dict[str, MapRows]:
    """The pronoun's rows of chosen maps, from one pass over a split (and `steps` more for integrated gradients).

    A row is the mean over the pronoun's own tokens; each sums to 1, so that `scores.score` takes them as they are.
    Integrated gradients have one row a text: the absolute values of what the tokens add to the answer.

    Args:
        resolver: in evaluation mode.
        data: the split.
        batching: how items share rows; it changes no result beyond rounding.
        readout: the run's.
        names: of `MAPS`.
        longest: texts of more tokens have no flow where it takes a solver; they are counted as skipped.
        steps: points on the path of integrated gradients.

    Returns:
        Each name's rows, in the order of the split.

    Raises:
        UserError: a name is unknown, or integrated gradients are asked of a model without a read-out.
    """
    _check(names)
    found: dict[str, list[NDArray[np.float32] | None]] = {name: [None] * len(data) for name in names}
    device = resolver.device
    for batch in evaluation_batches(data, batching, slots_of(readout)):
        moved = batch.to(device)
        rows = _rows(resolver, moved, names, longest)
        if "integrated_gradients" in names:
            rows["integrated_gradients"] = _attributed(resolver, moved, steps)
        starts = _begins(batch)[:, 1].tolist()
        for name, values in rows.items():
            arrays = values.float().cpu().numpy()
            for place, item in enumerate(batch.items.tolist()):
                length = len(data.tokens[item].ids)
                if name != "flow" or length <= longest or _mixes_tokens(resolver):
                    found[name][item] = arrays[place, :, :, starts[place] : starts[place] + length].copy()
    return {name: _records(name, found[name], data) for name in names}


def _check(names: Collection[str]) -> None:
    for name in names:
        if name not in MAPS:
            raise UserError(f"maps: {name!r} is not one of {', '.join(MAPS)}")


def _records(name: str, found: list[NDArray[np.float32] | None], data: Encoded) -> MapRows:
    rows = MapRows(MAPS[name], skipped=sum(weights is None for weights in found))
    for item, weights in enumerate(found):
        if weights is not None:
            tokens = data.tokens[item]
            rows.records.append(AttentionRecord(data.examples[item], tokens.spans, tokens.words, weights))
            rows.items.append(item)
    return rows


def _mixes_tokens(resolver: Resolver) -> bool:
    return resolver.encoder.settings.values == "token"


def _rows(resolver: Resolver, batch: Batch, names: Collection[str], longest: int) -> dict[str, Tensor]:
    """The maps of one batch, but for integrated gradients, each (N, L, H or 1, T)."""
    asked = _asked(batch, batch.query_positions)
    tokens = _mixes_tokens(resolver)
    found: dict[str, list[Tensor]] = {name: [] for name in OF_ONE_LAYER if name in names}
    means = []
    with torch.inference_mode():
        for layer in passes(resolver.encoder, _context(resolver, batch)):
            rows = layer.rows(asked)
            for name, layers in found.items():
                layers.append(OF_ONE_LAYER[name](layer, rows, asked))
            if "rollout" in names or "flow" in names:
                means.append((rows if tokens else layer.maps()).mean(dim=1))
        stacked = {name: torch.stack(layers) for name, layers in found.items()}  # (L, Q, H or 1, T)
        if "rollout" in names:
            stacked["rollout"] = _rollout(torch.stack(means), asked, tokens).unsqueeze(2)
        if "flow" in names:
            stacked["flow"] = _flow(torch.stack(means), asked, batch, longest, tokens).unsqueeze(2)
        items = len(batch.items)
        return {name: group_mean(rows.transpose(0, 1), batch.query_items, items) for name, rows in stacked.items()}


def _rollout(means: Tensor, asked: Asked, tokens: bool) -> Tensor:
    """(L, Q, T) from the queries' rows (L, Q, T) where layers mix tokens, else from whole maps (L, B, T, T)."""
    return rollout_of_tokens(means, asked[1]) if tokens else rollout_of_states(means)[:, asked[0], asked[1]]


def _flow(means: Tensor, asked: Asked, batch: Batch, longest: int, tokens: bool) -> Tensor:
    """As `_rollout`; zeros for a text of more than `longest` tokens where it takes a solver."""
    if tokens:
        return flow_of_tokens(means, asked[1])
    maps = means.double().cpu().numpy()
    flows = np.zeros((len(means), len(asked[0]), means.shape[-1]))
    segments = batch.segments.cpu().numpy()
    for query, (row, token) in enumerate(zip(*(each.tolist() for each in asked), strict=True)):
        columns = np.flatnonzero(segments[row] == segments[row, token])
        if len(columns) <= longest:
            first, end = int(columns[0]), int(columns[-1]) + 1
            flows[:, query, first:end] = flow_of_states(maps[:, row, first:end, first:end], token - first)
    return torch.from_numpy(flows).to(means)


def _attributed(resolver: Resolver, batch: Batch, steps: int) -> Tensor:
    """The share of each token among the absolute attributions of its text: (N, 1, 1, T)."""
    values = integrated_gradients(resolver, batch, steps).tokens.abs()
    numbers = torch.arange(len(batch.items), device=values.device)
    inside = batch.segments[_begins(batch)[:, 0]] == numbers.unsqueeze(1)  # (N, T)
    return to_one(values[_begins(batch)[:, 0]] * inside)[:, None, None]


def _begins(batch: Batch) -> Tensor:
    """Row and column at which each item begins: (N, 2)."""
    return torch.nonzero((batch.places == 0) & (batch.segments >= 0))


def _asked(batch: Batch, positions: Tensor) -> Asked:
    length = batch.ids.shape[1]
    return positions // length, positions % length


def _context(resolver: Resolver, batch: Batch) -> Context:
    marks = resolver.readout.marks(batch.slots)
    return resolver.encoder.begin(batch.inputs, batch.places, batch.segments, marks, resolver.second(batch))


def sentence_maps(
    resolver: Resolver, tokenizer: Tokenizer, example: Example, readout: Readout
) -> tuple[Tokens, dict[str, NDArray[np.float32]]]:
    """The whole maps of one sentence, attending token first.

    Returns:
        Its T tokens; "raw" and "norm" (L, H, T, T), "rollout" and "value_zeroing" (L, 1, T, T), rows summing to 1.
    """
    batch, tokens = one(example, tokenizer, slots_of(readout))
    batch = batch.to(resolver.device)
    every = torch.arange(len(tokens.ids), device=batch.ids.device)
    asked = (torch.zeros_like(every), every)
    raw, norm, zeroed = [], [], []
    with torch.inference_mode():
        for layer in passes(resolver.encoder, _context(resolver, batch)):
            maps = layer.maps()[0]  # (H, T, T)
            raw.append(maps)
            norm.append(weighted_norms(maps, value_norms(layer)[0].unsqueeze(1)))
            zeroed.append(value_zeroing(layer, maps.transpose(0, 1), asked).unsqueeze(0))
        means = torch.stack(raw).mean(dim=1)  # (L, T, T), rows of all tokens and a whole map at once
        rolled = rollout_of_tokens(means, every) if _mixes_tokens(resolver) else rollout_of_states(means)
    stacked = {"raw": raw, "norm": norm, "rollout": list(rolled.unsqueeze(1)), "value_zeroing": zeroed}
    return tokens, {name: torch.stack(layers).float().cpu().numpy() for name, layers in stacked.items()}


def candidates_to_pronoun(
    resolver: Resolver, data: Encoded, batching: Batching, readout: Readout
) -> NDArray[np.float32]:
    """The other direction: the raw weight that each candidate puts on the pronoun.

    Mean over the candidate's tokens (of all its mentions), sum over the pronoun's. The layout is that of
    `HeadScores.candidate_mass`: take the items `HeadScores.kept`, put it in that field's place, and `scores.picks` says
    which candidate attends to the pronoun most. Only the rows of the candidates' tokens are computed.

    Returns:
        (N, L, H, M), 0 where there is no candidate.
    """
    found: list[NDArray[np.float32] | None] = [None] * len(data)
    device = resolver.device
    for batch in evaluation_batches(data, batching, slots_of(readout)):
        weights = _reverse(resolver, batch.to(device)).float().cpu().numpy()
        for place, item in enumerate(batch.items.tolist()):
            found[item] = weights[place]
    return np.stack([weights for weights in found if weights is not None])


def _reverse(resolver: Resolver, batch: Batch) -> Tensor:
    """(N, L, H, M)."""
    items, most = batch.present.shape
    _, pronoun_columns = _asked(batch, batch.query_positions)
    asked = _asked(batch, batch.candidate_positions)
    with torch.inference_mode():
        pronoun = torch.zeros(items, batch.ids.shape[1], device=batch.ids.device)
        pronoun[batch.query_items, pronoun_columns] = 1
        layers = []
        for layer in passes(resolver.encoder, _context(resolver, batch)):
            rows = layer.rows(asked)  # (C, H, T)
            on_pronoun = torch.einsum("cht,ct->ch", rows, pronoun[batch.candidate_owners // most].to(rows.dtype))
            layers.append(group_mean(on_pronoun, batch.candidate_owners, items * most).view(items, most, -1))
        return torch.stack(layers, dim=1).transpose(2, 3)
