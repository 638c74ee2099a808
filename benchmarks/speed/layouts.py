"""Batch layouts to compare: the sentence indices in each row of each batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from anaphora.base.batch import Batch
from anaphora.data.batches.batching import plan_batches
from anaphora.data.batches.encoded import Indices
from anaphora.settings.training import Batching

BatchLayout = list[list[list[int]]]
Item = TypeVar("Item")


def padded_layout(order: Indices, batch_sentences: int) -> BatchLayout:
    """Return batches with one sentence per row, in the given order."""
    return [
        [[int(item)] for item in order[start : start + batch_sentences]]
        for start in range(0, len(order), batch_sentences)
    ]


def in_arrival_order(lengths: Indices, batch_sentences: int) -> BatchLayout:
    """Return batches with one sentence per row, in the original order."""
    return padded_layout(np.arange(len(lengths)), batch_sentences)


def sorted_by_length(lengths: Indices, batch_sentences: int) -> BatchLayout:
    """Return batches with one sentence per row, sorted by length."""
    return padded_layout(np.argsort(lengths, kind="stable"), batch_sentences)


def planned_layout(kind: str, lengths: Indices, batch_sentences: int) -> BatchLayout:
    """Return the package's packed rows or buckets, with as many real tokens per batch as padded batches on average."""
    row_tokens = Batching().row_tokens
    tokens = max(row_tokens, round(float(lengths.mean()) * batch_sentences))
    batching = Batching(kind=kind, tokens=tokens, row_tokens=row_tokens)
    return plan_batches(lengths, batching, np.arange(len(lengths)))


def evenly_spaced(items: Sequence[Item], count: int) -> list[Item]:
    """Return at most `count` evenly spaced items, so that long and short batches are equally represented."""
    count = min(count, len(items))
    return [items[int((number + 0.5) * len(items) / count)] for number in range(count)]


def non_padding_share(batches: Sequence[Batch]) -> float:
    """Return the share of the encoder's input that is not padding."""
    return sum(batch.real_tokens for batch in batches) / sum(batch.ids.numel() for batch in batches)
