"""Encoder and read-out together: what is trained, stored and asked."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor, nn

from anaphora.errors import UserError
from anaphora.model import norm, readout, settings
from anaphora.model.encoder import Encoder, initialiser
from anaphora.model.readout import Questions, Seen


class Packed(Questions, Protocol):
    """A batch of packed rows with its questions; adds to them what the encoder reads."""

    @property
    def inputs(self) -> Tensor: ...
    @property
    def masked_positions(self) -> Tensor: ...


class VocabularyOutput(nn.Module):
    """Logits over the vocabulary: (..., W) -> (..., V), with weights of its own or the embedding's (tied)."""

    def __init__(self, chosen: settings.Model, vocabulary: int, tied_to: nn.Embedding | None) -> None:
        super().__init__()
        self.transform = Transform(chosen) if chosen.output_transform else nn.Identity()
        self.linear = nn.Linear(chosen.width, vocabulary)
        if tied_to is not None:
            self.linear.weight = tied_to.weight

    def forward(self, vectors: Tensor) -> Tensor:
        logits: Tensor = self.linear(self.transform(vectors))
        return logits


class Transform(nn.Module):
    """What BERT puts before its vocabulary logits: a dense layer, an activation and a norm; (..., W) -> same.

    Not in the paper; it is in the authors' code (Devlin et al. 2019, run_pretraining.py). The activation is that of the
    feed-forward network, GELU for a gated one.
    """

    def __init__(self, chosen: settings.Model) -> None:
        super().__init__()
        self.dense = nn.Linear(chosen.width, chosen.width)
        self.activation = nn.ReLU() if isinstance(chosen.feed_forward, settings.Relu) else nn.GELU()
        self.norm = norm.build(chosen.norm, chosen.width)

    def forward(self, vectors: Tensor) -> Tensor:
        normed: Tensor = self.norm(self.activation(self.dense(vectors)))
        return normed


class Resolver(nn.Module):
    """An encoder, the read-out that asks it, and the vocabulary's logits where a loss needs them."""

    def __init__(self, chosen: settings.Model, asked: settings.Readout, vocabulary: int) -> None:
        super().__init__()
        self.encoder = Encoder(chosen, vocabulary)
        tied_to = self.encoder.tokens if chosen.tied_output else None
        self.output = VocabularyOutput(chosen, vocabulary, tied_to)
        self.readout = readout.build(asked, chosen, self.output)
        initialise = initialiser(chosen.initialisation)
        self.readout.apply(initialise)
        # Tied weights have begun as the embedding's.
        (self.output if tied_to is None else self.output.transform).apply(initialise)

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return next(self.parameters()).device

    def see(self, batch: Packed) -> Seen:
        """Encode a batch; attention rows only if the read-out is one."""
        return self.see_with_rows(batch) if self.readout.needs_rows() else self._see(batch)

    def see_with_rows(self, batch: Packed) -> Seen:
        """Encode a batch and keep the query tokens' attention rows of every layer and head."""
        length = batch.ids.shape[1]
        asked = (batch.query_positions // length, batch.query_positions % length)
        marks = self.readout.marks(batch.slots)
        needed = self._needed(batch)
        hidden, rows = self.encoder.with_rows(
            batch.inputs, batch.places, batch.segments, asked, marks, needed, self.second(batch)
        )
        return Seen(hidden=hidden.flatten(0, 1), rows=rows)

    def second(self, batch: Packed) -> Tensor | None:
        """Which tokens ask as a sequence of their own: (R, T), the queries, or None where all are one sequence."""
        if not self.encoder.settings.second_sequence:
            return None
        asking = torch.zeros_like(batch.ids, dtype=torch.bool).flatten()
        asking[batch.query_positions] = True
        return asking.view_as(batch.ids)

    def check_unasked(self) -> None:
        """Refuse a text about which nothing is asked where what is asked about leaves the text.

        Raises:
            UserError: `model.second_sequence` is set.
        """
        if self.encoder.settings.second_sequence:
            raise UserError("this run reads the pronoun as a second sequence (model.second_sequence): name the pronoun")

    def _see(self, batch: Packed) -> Seen:
        marks = self.readout.marks(batch.slots)
        needed = self._needed(batch)
        hidden = self.encoder(batch.inputs, batch.places, batch.segments, marks, needed, self.second(batch))
        return Seen(hidden=hidden.flatten(0, 1), rows=None)

    def _needed(self, batch: Packed) -> Tensor:
        """Where the read-out and the hidden words look: (P,) flat positions, each once."""
        looked_at: Tensor = torch.cat((*self.readout.looks_at(batch), batch.masked_positions))
        positions: Tensor = torch.unique(looked_at)
        return positions
