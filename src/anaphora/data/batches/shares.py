"""Division of a batch among data-parallel processes."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from anaphora.base.batch import Batch


def take_share(batch: Batch, rank: int, count: int) -> Batch:
    """Return the share of process `rank`: every `count`-th row of a batch, starting with row `rank`.

    Rows that contain a minimal pair together count as one row. Each row, item, masked token and minimal pair is in
    exactly one share. Random choices made for the whole batch, such as slots and masked words, do not change.

    Returns:
        The share; without rows if the batch has no more than `rank` rows.
    """
    return take_rows(batch, (_row_groups(batch) % count == rank).nonzero().squeeze(1))


def take_rows(batch: Batch, rows: Tensor) -> Batch:
    """Return a batch of the given rows, with their items, queries and candidates.

    Args:
        batch: batch of R rows of T tokens with N items.
        rows: (S,) ascending indices of rows, with both or neither of the items of each minimal pair.
    """
    length, most = batch.ids.shape[1], batch.present.shape[1]
    new_rows = _new_numbers(rows, len(batch.ids))
    segments = batch.segments[rows]
    items = torch.unique(segments[segments >= 0])
    new_items = _new_numbers(items, len(batch.items))

    def moved(positions: Tensor) -> Tensor:
        """Map flat positions to the new batch; negative for positions in other rows."""
        row = new_rows[positions // length]
        return torch.where(row < 0, -1, row * length + positions % length)

    queries, candidates = map(moved, (batch.query_positions, batch.candidate_positions))
    masked, own = map(moved, (batch.masked_positions, batch.own_positions))
    owners = batch.candidate_owners[candidates >= 0]
    pairs = new_items[batch.minimal_pairs]
    return replace(
        batch,
        inputs=batch.inputs[rows],
        ids=batch.ids[rows],
        positions=batch.positions[rows],
        segments=torch.where(segments >= 0, new_items[segments], -1),
        words=batch.words[rows],
        slots=batch.slots[rows],
        query_positions=queries[queries >= 0],
        query_items=new_items[batch.query_items[queries >= 0]],
        candidate_positions=candidates[candidates >= 0],
        candidate_owners=new_items[owners // most] * most + owners % most,
        present=batch.present[items],
        gold=batch.gold[items],
        candidate_slots=batch.candidate_slots[items],
        masked_positions=masked[masked >= 0],
        own_positions=own[own >= 0],
        items=batch.items[items],
        minimal_pairs=pairs[(pairs >= 0).all(dim=1)],
    )


def _row_groups(batch: Batch) -> Tensor:
    """Return the group index of each row: (R,), ascending from 0; rows of a minimal pair share a group."""
    begins = torch.ones(len(batch.ids), dtype=torch.bool)
    row_of = torch.empty(len(batch.items), dtype=torch.long)
    row, _ = (batch.segments >= 0).nonzero(as_tuple=True)
    row_of[batch.segments[batch.segments >= 0]] = row
    for first, last in row_of[batch.minimal_pairs].sort(dim=1).values.tolist():
        begins[first + 1 : last + 1] = False  # the rows of a unit follow one another
    return begins.long().cumsum(dim=0) - 1


def _new_numbers(kept: Tensor, size: int) -> Tensor:
    """Return the index in `kept` of each number below `size`: (size,), -1 for numbers that are not in `kept`."""
    numbers = torch.full((size,), -1)
    numbers[kept] = torch.arange(len(kept))
    return numbers
