"""The verb-number model: this package's encoder with a classifier on the last state of [CLS], and its training.

B sentences, T tokens of the longest, W width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from anaphora.data.batch import Ragged, plan
from anaphora.data.settings import Batching
from anaphora.data.tokenizer import Tokenizer
from anaphora.model.encoder import Encoder, initialiser
from anaphora.model.settings import Gelu, LayerNorm, Learned, Model, MultiHead, Normal
from anaphora.place import device_of
from anaphora.replication.number_agreement import LONGEST, NumberItem
from anaphora.replication.settings import Replication
from anaphora.specials import PADDING, SPECIALS, UNKNOWN
from anaphora.training.optimizer import build, learning_rate_shape
from anaphora.training.settings import Optimizer


@dataclass(frozen=True)
class Rows:
    """Sentences one under the other, [CLS] first, padded: three of (B, T) as the encoder reads them."""

    ids: Tensor
    places: Tensor
    segments: Tensor

    def to(self, device: torch.device) -> Rows:
        """The same rows on another device."""
        return Rows(self.ids.to(device), self.places.to(device), self.segments.to(device))


def rows_of(sentences: Sequence[Sequence[int]]) -> Rows:
    """Sentences of token ids as padded rows."""
    ragged = Ragged(sentences)
    ids = np.full((len(sentences), int(ragged.lengths.max())), PADDING)
    segments, places = np.full(ids.shape, -1), np.zeros(ids.shape, dtype=np.int64)
    values, row, place = ragged.take(np.arange(len(sentences)))
    ids[row, place], segments[row, place], places[row, place] = values, row, place
    return Rows(torch.from_numpy(ids), torch.from_numpy(places), torch.from_numpy(segments))


@dataclass(frozen=True, eq=False)
class Coded:
    """Items as numbers: the token ids of each, [CLS] first, and whether its verb is plural."""

    ids: list[tuple[int, ...]]
    plural: Tensor

    @classmethod
    def of(cls, items: Sequence[NumberItem], tokenizer: Tokenizer) -> Coded:
        """Items under a vocabulary."""
        tokens = tokenizer.encode_batch([item.text for item in items])
        return cls([one.ids for one in tokens], torch.tensor([int(item.plural) for item in items]))


class NumberClassifier(nn.Module):
    """Singular or plural, from the last state of [CLS]: Abnar and Zuidema 2020, section 2."""

    def __init__(self, chosen: Model, vocabulary: int) -> None:
        super().__init__()
        self.encoder = Encoder(chosen, vocabulary)
        self.output = nn.Linear(chosen.width, 2)
        self.output.apply(initialiser(chosen.initialisation))

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return self.output.weight.device

    def forward(self, rows: Rows) -> Tensor:
        """Logits of singular and plural: (B, 2)."""
        rows = rows.to(self.device)
        count, length = rows.ids.shape
        first = torch.arange(count, device=rows.ids.device) * length
        hidden = self.encoder(rows.ids, rows.places, rows.segments, needed=first)
        logits: Tensor = self.output(hidden[:, 0])
        return logits


def encoder_settings(chosen: Replication) -> Model:
    """GPT-2's block without its causal mask, as in the paper: norms first, GELU, learned places."""
    return Model(
        width=chosen.width,
        layers=chosen.layers,
        dropout=chosen.dropout,
        values="hidden",
        position=Learned(max_length=LONGEST + 1),
        attention=MultiHead(heads=chosen.heads, dropout=chosen.dropout),
        feed_forward=Gelu(),
        norm=LayerNorm(placement="pre"),
        initialisation=Normal(),
    )


def fresh(chosen: Replication, vocabulary: int, seed: int) -> NumberClassifier:
    """A model at the random start of a seed, in evaluation mode; the caller's generator is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return NumberClassifier(encoder_settings(chosen), vocabulary).eval().to(device_of(chosen.trainer.device))


def train(
    chosen: Replication, data: Coded, vocabulary: int, seed: int, after_step: Callable[[float], None]
) -> NumberClassifier:
    """A trained model in evaluation mode; the caller's generator is left as it was.

    Args:
        chosen: the settings.
        data: the training sentences.
        vocabulary: number of tokens.
        seed: of the weights' start, the order, dropout and the hidden words.
        after_step: is told each step's loss.
    """
    model = fresh(chosen, vocabulary, seed).train()
    settings = Optimizer(steps=chosen.steps, learning_rate=chosen.learning_rate)
    optimizer = build(model, settings)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, learning_rate_shape(settings))
    batches = _batches(data, chosen, seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for _ in range(chosen.steps):
            rows, plural = next(batches)
            loss = nn.functional.cross_entropy(model(rows), plural.to(model.device))
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(model.parameters(), settings.clip)
            optimizer.step()
            schedule.step()
            after_step(loss.item())
    return model.eval()


def _batches(data: Coded, chosen: Replication, seed: int) -> Iterator[tuple[Rows, Tensor]]:
    """Batches of sentences of about one length, without end; some words of each are unknown."""
    lengths = Ragged(data.ids).lengths
    batching = Batching(kind="buckets", tokens=chosen.batch_tokens, row_tokens=1)
    draw = np.random.default_rng([seed, 1])
    while True:
        planned = plan(lengths, batching, draw.permutation(len(lengths)))
        for number in draw.permutation(len(planned)):
            items = [item for (item,) in planned[number]]
            rows = rows_of([data.ids[item] for item in items])
            yield hide(rows, chosen.unknown, draw), data.plural[items]


def hide(rows: Rows, share: float, draw: np.random.Generator) -> Rows:
    """The same rows with a share of the words unknown; [CLS] and padding stay."""
    hidden = torch.from_numpy(draw.random(rows.ids.shape) < share) & (rows.ids >= len(SPECIALS))
    return Rows(rows.ids.masked_fill(hidden, UNKNOWN), rows.places, rows.segments)
