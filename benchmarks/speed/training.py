"""Speed of training steps: forward, backward and AdamW on masked tokens, in real tokens per second.

All variants have the same set of sentences, share of masked tokens and optimizer, 32-bit floats and no dropout. Each
variant takes evenly spaced batches of its own layout, which have the same distribution of lengths but different
sentences. Batching is not included in the time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from anaphora.base.batch import Batch
from anaphora.data.batches.batching import mask_words
from anaphora.data.batches.encoded import EncodedSplit
from anaphora.model.pronoun_model import PronounModel
from anaphora.settings.model.position import Learned, Position, Rotary
from anaphora.settings.model.prediction import NoPrediction
from anaphora.settings.training import Task
from anaphora.training.losses import losses
from benchmarks.speed import layouts
from benchmarks.speed.layouts import BatchLayout
from benchmarks.speed.models import BERT, LeanBertMaskedLM, our_model
from benchmarks.speed.settings import EncoderSize
from benchmarks.speed.stopwatch import OURS, Variant

MASKED_SHARE = 0.15


def variants(
    size: EncoderSize, data: EncodedSplit, batch_sentences: int, steps: int, seed: int, device: torch.device
) -> list[Variant]:
    """Return the variants to compare, each with its own model."""
    lengths = data.ids.lengths
    positions = data.max_tokens()
    packed, buckets = (layouts.planned_layout(kind, lengths, batch_sentences) for kind in ("packed", "buckets"))

    def batches(layout: BatchLayout) -> list[Batch]:
        generator = np.random.default_rng(seed)
        batch_rows = layouts.evenly_spaced(layout, steps)
        return [
            mask_words(data.batch(rows), MASKED_SHARE, data.vocabulary, generator).to(device) for rows in batch_rows
        ]

    def ours(name: str, layout: BatchLayout, position: Position) -> Variant:
        model = our_model(size, position).to(device)
        return training_variant(OURS, name, model, partial(our_loss, model), batches(layout))

    def theirs(name: str, layout: BatchLayout) -> Variant:
        model = LeanBertMaskedLM(size, positions).to(device)
        return training_variant(BERT, name, model, model, batches(layout))

    return [
        ours("packed", packed, Learned(max_length=positions)),
        ours("packed, rotary", packed, Rotary()),
        ours("buckets", buckets, Learned(max_length=positions)),
        theirs("arrival order", layouts.in_arrival_order(lengths, batch_sentences)),
        theirs("our buckets", buckets),
        theirs("sorted", layouts.sorted_by_length(lengths, batch_sentences)),
    ]


def training_variant(
    implementation: str,
    name: str,
    model: nn.Module,
    loss: Callable[[Batch], Tensor],
    batches: list[Batch],
    optimizer: torch.optim.Optimizer | None = None,
) -> Variant:
    """Return a variant that trains one step on each batch, by default with AdamW."""
    optimizer = optimizer or torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    parts = [partial(_training_step, loss, optimizer, batch, batch.real_tokens) for batch in batches]
    parameters = sum(weight.numel() for weight in model.parameters())
    return Variant(implementation, name, parts, parameters, layouts.non_padding_share(batches))


def our_loss(model: PronounModel, batch: Batch) -> Tensor:
    """Return the mean loss over the masked tokens of a batch."""
    return losses(model, batch, Task(prediction=NoPrediction(), masked_lm=MASKED_SHARE)).total


def _training_step(
    loss: Callable[[Batch], Tensor], optimizer: torch.optim.Optimizer, batch: Batch, real_tokens: int
) -> int:
    optimizer.zero_grad()
    loss(batch).backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    return real_tokens
