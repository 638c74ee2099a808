"""Which sentences share a batch: the ways that are compared. A layout is batches of rows of sentence numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from anaphora.data.batch import Batch, Indices, plan
from anaphora.data.settings import Batching

Layout = list[list[list[int]]]
Piece = TypeVar("Piece")


def padded(order: Indices, batch_sentences: int) -> Layout:
    """One sentence a row, batches cut off in this order."""
    return [
        [[int(item)] for item in order[start : start + batch_sentences]]
        for start in range(0, len(order), batch_sentences)
    ]


def in_arrival_order(lengths: Indices, batch_sentences: int) -> Layout:
    """One sentence a row, as they come."""
    return padded(np.arange(len(lengths)), batch_sentences)


def sorted_by_length(lengths: Indices, batch_sentences: int) -> Layout:
    """One sentence a row, the whole set sorted by length first."""
    return padded(np.argsort(lengths, kind="stable"), batch_sentences)


def planned(kind: str, lengths: Indices, batch_sentences: int) -> Layout:
    """Our packed rows or buckets, with as many real tokens a batch as a padded batch has on average."""
    row_tokens = Batching().row_tokens
    tokens = max(row_tokens, round(float(lengths.mean()) * batch_sentences))
    chosen = Batching(kind=kind, tokens=tokens, row_tokens=row_tokens)
    return plan(lengths, chosen, np.arange(len(lengths)))


def spread(pieces: Sequence[Piece], count: int) -> list[Piece]:
    """At most `count` pieces, evenly spaced, so that long and short batches are taken alike."""
    count = min(count, len(pieces))
    return [pieces[int((number + 0.5) * len(pieces) / count)] for number in range(count)]


def real_share(batches: Sequence[Batch]) -> float:
    """Which share of what the encoder reads is not padding."""
    return sum(batch.real_tokens for batch in batches) / sum(batch.ids.numel() for batch in batches)
