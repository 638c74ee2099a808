"""Computation of all kinds of attention and attribution maps, and of the weights from candidates to the pronoun.

`pronoun_maps` computes the pronoun's rows for a split, `sentence_maps` whole maps of one sentence. The modules
`rollout_and_flow` and `attribution` define the maps. Axes are N (items), L (layers), H (heads), T (tokens), M (largest
number of candidates of an item) and Q (query tokens).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anaphora.analysis.maps.attribution import (
    integrated_gradients,
    normalise_rows,
    value_norms,
    value_zeroing,
    weighted_norms,
)
from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.maps.rollout_and_flow import flow_of_states, flow_of_tokens, rollout_of_states, rollout_of_tokens
from anaphora.base.batch import Batch
from anaphora.base.errors import UserError
from anaphora.data.batches.batching import evaluation_batches, single_batch
from anaphora.data.batches.encoded import EncodedSplit
from anaphora.data.example import Example
from anaphora.data.tokens.tokenizer import TokenizedText, Tokenizer
from anaphora.model.attention import Queries
from anaphora.model.layers import LayerPass
from anaphora.model.prediction import group_mean
from anaphora.model.pronoun_model import PronounModel
from anaphora.settings.model.prediction import slots_of
from anaphora.settings.training import Batching

MAP_GRANULARITY = {
    "raw": "head",
    "norm": "head",
    "rollout": "layer",
    "flow": "layer",
    "value_zeroing": "layer",
    "integrated_gradients": "model",
}
"""Granularity of each map: one row per head (L, H, T), per layer (L, 1, T) or for the whole model (1, 1, T)."""


SINGLE_LAYER_MAPS: dict[str, Callable[[LayerPass, Tensor, Queries], Tensor]] = {
    "raw": lambda _layer, rows, _queries: rows,
    "norm": lambda layer, rows, queries: weighted_norms(rows, value_norms(layer)[queries[0]]),
    "value_zeroing": lambda layer, rows, queries: value_zeroing(layer, rows, queries).unsqueeze(1),
}
"""Functions for maps that need one layer only: (forward pass, rows (Q, H, T), queries) -> rows (Q, H or 1, T)."""

MAX_FLOW_TOKENS = 64
"""Maximum length of a text in tokens if flow needs a solver (`model.values=hidden`); longer texts are skipped."""


@dataclass(frozen=True, eq=False)
class MapRows:
    """Attention or attribution rows of the pronoun in one kind of map, for the items of a split."""

    granularity: str  # "head", "layer" or "model" (`MAP_GRANULARITY`)
    records: list[AttentionRecord]  # one record per item, with weights (L, H, T), (L, 1, T) or (1, 1, T)
    items: list[int]  # index of each record's item in the split
    skipped: int  # number of items left out: too long for attention flow, or not sampled for integrated gradients


def pronoun_maps(
    model: PronounModel, data: EncodedSplit, batching: Batching, names: Collection[str] = tuple(MAP_GRANULARITY)
) -> dict[str, MapRows]:
    """Return the pronoun's rows in the named kinds of attention map, from one pass over a split.

    A row is the mean over the pronoun's tokens and sums to 1. Integrated gradients take `INTEGRATION_STEPS` further
    passes and have one row per text: the tokens' absolute contributions to the answer, scaled to sum to 1.

    Args:
        batching: batch settings, which affect results only by rounding.
        names: kinds of map to compute, keys of `MAP_GRANULARITY`.

    Returns:
        Rows keyed by kind of map, in the order of the split, without flow for texts longer than `MAX_FLOW_TOKENS`.

    Raises:
        UserError: a name is unknown, the model has no attention maps, or integrated gradients are requested for a model
            that does not predict antecedents.
    """
    for name in names:
        if name not in MAP_GRANULARITY:
            raise UserError(f"maps ({name!r}) must be one of {', '.join(MAP_GRANULARITY)}")
    weights: dict[str, dict[int, NDArray[np.float32]]] = {name: {} for name in names}
    for batch in evaluation_batches(data, batching, slots_of(model.prediction)):
        on_device = batch.to(model.device)
        rows = _batch_maps(model, on_device, names)
        if "integrated_gradients" in names:
            rows["integrated_gradients"] = _attribution_shares(model, on_device)
        starts = batch.row_and_token(batch.item_starts)[1].tolist()
        for name, values in rows.items():
            arrays = values.float().cpu().numpy()
            for number, (item, start) in enumerate(zip(batch.items.tolist(), starts, strict=True)):
                length = len(data.tokens[item].ids)
                if name != "flow" or length <= MAX_FLOW_TOKENS or _mixes_tokens(model):
                    weights[name][item] = arrays[number, :, :, start : start + length].copy()

    def rows_of_map(name: str) -> MapRows:
        items = sorted(weights[name])
        records = [AttentionRecord.of(data.examples[item], data.tokens[item], weights[name][item]) for item in items]
        return MapRows(MAP_GRANULARITY[name], records, items, len(data) - len(items))

    return {name: rows_of_map(name) for name in names}


def _mixes_tokens(model: PronounModel) -> bool:
    return model.encoder.settings.values == "token"


def _batch_maps(model: PronounModel, batch: Batch, names: Collection[str]) -> dict[str, Tensor]:
    """Return the pronouns' rows of a batch in each kind of map except integrated gradients: (N, L, H or 1, T)."""
    queries = batch.row_and_token(batch.query_positions)
    rows, items = _rows_of_queries(model, batch, queries, names), len(batch.items)
    return {name: group_mean(of_map.transpose(0, 1), batch.query_items, items) for name, of_map in rows.items()}


def _rows_of_queries(model: PronounModel, batch: Batch, queries: Queries, names: Collection[str]) -> dict[str, Tensor]:
    """Return the rows of Q queries in each kind of map except integrated gradients: (L, Q, H or 1, T)."""
    tokens = _mixes_tokens(model)
    single_layer: dict[str, list[Tensor]] = {name: [] for name in SINGLE_LAYER_MAPS if name in names}
    means = []
    with torch.inference_mode():
        for layer in model.encoder.passes(model.encoder_input(batch)):
            rows = layer.rows(queries)
            for name, layers in single_layer.items():
                layers.append(SINGLE_LAYER_MAPS[name](layer, rows, queries))
            if "rollout" in names or "flow" in names:
                means.append((rows if tokens else layer.maps()).mean(dim=1))
        stacked = {name: torch.stack(layers) for name, layers in single_layer.items()}  # (L, Q, H or 1, T)
        if "rollout" in names:
            mean = torch.stack(means)  # the queries' rows (L, Q, T) if layers mix tokens, else maps (L, B, T, T)
            rolled = rollout_of_tokens(mean, queries[1]) if tokens else rollout_of_states(mean)[:, *queries]
            stacked["rollout"] = rolled.unsqueeze(2)
        if "flow" in names:
            mean = torch.stack(means)
            flow = flow_of_tokens(mean, queries[1]) if tokens else _solved_flow(mean, queries, batch)
            stacked["flow"] = flow.unsqueeze(2)
        return stacked


def _solved_flow(means: Tensor, queries: Queries, batch: Batch) -> Tensor:
    """Return attention flow, (L, Q, T), from maps averaged over heads, (L, B, T, T); zeros if a text is too long."""
    maps = means.double().cpu().numpy()
    flows = np.zeros((len(means), len(queries[0]), means.shape[-1]))
    segments = batch.segments.cpu().numpy()
    for query, (row, token) in enumerate(zip(queries[0].tolist(), queries[1].tolist(), strict=True)):
        columns = np.flatnonzero(segments[row] == segments[row, token])
        if len(columns) <= MAX_FLOW_TOKENS:
            first, end = int(columns[0]), int(columns[-1]) + 1
            flows[:, query, first:end] = flow_of_states(maps[:, row, first:end, first:end], token - first)
    return torch.from_numpy(flows).to(means)


def _attribution_shares(model: PronounModel, batch: Batch) -> Tensor:
    """Return each token's share of its text's absolute integrated gradients: (N, 1, 1, T)."""
    values = integrated_gradients(model, batch).tokens.abs()
    numbers = torch.arange(len(batch.items), device=values.device)
    rows, _ = batch.row_and_token(batch.item_starts)
    inside = batch.segments[rows] == numbers.unsqueeze(1)  # (N, T)
    return normalise_rows(values[rows] * inside)[:, None, None]


def sentence_maps(
    model: PronounModel, tokenizer: Tokenizer, example: Example
) -> tuple[TokenizedText, dict[str, NDArray[np.float32]]]:
    """Return the tokens of one sentence and its maps of every kind, by name, except flow and integrated gradients.

    The maps "raw" and "norm" are (L, H, queries, keys), "rollout" and "value_zeroing" (L, 1, queries, keys). Each row
    sums to 1.

    Raises:
        UserError: the model has no attention maps.
    """
    batch, tokens = single_batch(example, tokenizer, slots_of(model.prediction))
    batch = batch.to(model.device)
    every = torch.arange(len(tokens.ids), device=batch.ids.device)
    queries = (torch.zeros_like(every), every)
    names = ("raw", "norm", "rollout", "value_zeroing")
    rows = _rows_of_queries(model, batch, queries, names)
    return tokens, {name: rows[name].transpose(1, 2).float().cpu().numpy() for name in names}


def candidates_to_pronoun(model: PronounModel, data: EncodedSplit, batching: Batching) -> NDArray[np.float32]:
    """Return the raw attention weight from each candidate to the pronoun: (N, L, H, M), 0 for absent candidates.

    Weights are averaged over the tokens of the candidate's mentions and summed over the pronoun's tokens. The axes are
    those of `HeadScores.candidate_mass`, the weights in the opposite direction.

    Raises:
        UserError: the model has no attention maps.
    """
    weights: dict[int, NDArray[np.float32]] = {}
    for batch in evaluation_batches(data, batching, slots_of(model.prediction)):
        of_batch = _candidate_rows(model, batch.to(model.device)).float().cpu().numpy()
        weights |= zip(batch.items.tolist(), of_batch, strict=True)
    return np.stack([weights[item] for item in range(len(data))])


def _candidate_rows(model: PronounModel, batch: Batch) -> Tensor:
    """Return the attention weight from each candidate to the pronoun in one batch: (N, L, H, M)."""
    items, most = batch.present.shape
    _, pronoun_columns = batch.row_and_token(batch.query_positions)
    queries = batch.row_and_token(batch.candidate_positions)
    with torch.inference_mode():
        pronoun = torch.zeros(items, batch.ids.shape[1], device=batch.ids.device)
        pronoun[batch.query_items, pronoun_columns] = 1
        layers = []
        for layer in model.encoder.passes(model.encoder_input(batch)):
            rows = layer.rows(queries)  # (C, H, T)
            on_pronoun = torch.einsum("cht,ct->ch", rows, pronoun[batch.candidate_owners // most].to(rows.dtype))
            layers.append(group_mean(on_pronoun, batch.candidate_owners, items * most).view(items, most, -1))
        return torch.stack(layers, dim=1).transpose(2, 3)
