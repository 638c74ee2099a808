"""Training steps: forward, backward and AdamW on hidden words, in real tokens a second.

Everyone gets the same sentences, share of hidden words, optimizer and 32-bit numbers, and no dropout. Batches are made
beforehand: only the steps are measured.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from anaphora.benchmark import layouts
from anaphora.benchmark.layouts import Layout
from anaphora.benchmark.models import BERT, BertForHiddenWords, resolver
from anaphora.benchmark.settings import Size
from anaphora.benchmark.stopwatch import OURS, Way
from anaphora.data.batch import Batch, Encoded, hide_words
from anaphora.model.resolver import Resolver
from anaphora.model.settings import Learned, NoReadout, Position, Rotary
from anaphora.training.losses import losses
from anaphora.training.settings import Task

HIDDEN_WORDS = 0.15


def ways(size: Size, data: Encoded, batch_sentences: int, steps: int, seed: int, device: torch.device) -> list[Way]:
    """What is compared; each way has a model of its own."""
    lengths = data.ids.lengths
    places = data.longest()
    packed, buckets = (layouts.planned(kind, lengths, batch_sentences) for kind in ("packed", "buckets"))

    def batches(layout: Layout) -> list[Batch]:
        draw = np.random.default_rng(seed)
        chosen = layouts.spread(layout, steps)
        return [hide_words(data.batch(rows), HIDDEN_WORDS, data.vocabulary, draw).to(device) for rows in chosen]

    def ours(name: str, layout: Layout, position: Position) -> Way:
        model = resolver(size, position).to(device)
        return way(OURS, name, model, partial(our_loss, model), batches(layout))

    def theirs(name: str, layout: Layout) -> Way:
        model = BertForHiddenWords(size, places).to(device)
        return way(BERT, name, model, model, batches(layout))

    return [
        ours("packed", packed, Learned(max_length=places)),
        ours("packed, rotary", packed, Rotary()),
        ours("buckets", buckets, Learned(max_length=places)),
        theirs("arrival order", layouts.in_arrival_order(lengths, batch_sentences)),
        theirs("our buckets", buckets),
        theirs("sorted", layouts.sorted_by_length(lengths, batch_sentences)),
    ]


def way(
    maker: str,
    name: str,
    model: nn.Module,
    loss: Callable[[Batch], Tensor],
    batches: list[Batch],
    optimizer: torch.optim.Optimizer | None = None,
) -> Way:
    """Training on these batches, one step each; with AdamW where no other optimizer is given."""
    optimizer = optimizer or torch.optim.AdamW(model.parameters(), lr=1e-4)
    pieces = [partial(_step, loss, optimizer, batch, batch.real_tokens) for batch in batches]
    parameters = sum(weight.numel() for weight in model.parameters())
    return Way(maker, name, pieces, parameters, layouts.real_share(batches))


def our_loss(model: Resolver, batch: Batch) -> Tensor:
    """The mean loss over the hidden words of a batch."""
    return losses(model, batch, Task(readout=NoReadout(), hidden_words=HIDDEN_WORDS)).total


def _step(loss: Callable[[Batch], Tensor], optimizer: torch.optim.Optimizer, batch: Batch, real_tokens: int) -> int:
    optimizer.zero_grad()
    loss(batch).backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    return real_tokens
