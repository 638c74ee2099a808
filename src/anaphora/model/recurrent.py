"""Recurrent networks as an alternative to attention; they have no attention maps."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from anaphora.base.errors import UserError
from anaphora.base.locale.translation import N_
from anaphora.model.attention import split_heads
from anaphora.model.mixer import AttentionContext, Mixer

NO_MAPS = N_("model.attention is a recurrent network, which has no attention maps: only its answers can be measured")


class Recurrent(Mixer):
    """A bidirectional recurrent network that reads each sentence separately and has no attention maps.

    Each direction has half the width, so that a layer has about as many weights as an attention layer.
    """

    network_class: type[nn.GRU] | type[nn.LSTM]

    def __init__(self, width: int) -> None:
        super().__init__(heads=1)
        self.network = self.network_class(width, width // 2, batch_first=True, bidirectional=True)

    def project(self, hidden: Tensor, content: Tensor, context: AttentionContext) -> tuple[Tensor, Tensor, Tensor]:
        """Return the hidden states as query, key and value: (B, T, W) -> three (B, 1, T, W)."""
        read = split_heads(hidden, self.heads)
        return read, read, read

    def mix(self, query: Tensor, key: Tensor, value: Tensor, context: AttentionContext) -> Tensor:
        """Run the network on each sentence separately: three (B, 1, T, W) -> (B, T, W), zeros at padding.

        Raises:
            UserError: there are edits, which need attention.
        """
        if self.edits:
            raise UserError(NO_MAPS)
        rows = value.squeeze(1)
        real = context.segments >= 0
        row = torch.arange(len(rows), device=rows.device).unsqueeze(1).expand_as(context.segments)
        numbers = torch.stack((row[real], context.segments[real]), dim=1)
        _, sentence, lengths = torch.unique(numbers, dim=0, return_inverse=True, return_counts=True)
        positions = context.positions[real]
        first = positions.new_zeros(len(lengths)).scatter_reduce(0, sentence, positions, "amin", include_self=False)
        positions = positions - first[sentence]
        padded = rows.new_zeros(len(lengths), int(lengths.max()), rows.shape[-1])
        padded[sentence, positions] = rows[real]
        packed = nn.utils.rnn.pack_padded_sequence(padded, lengths.cpu(), batch_first=True, enforce_sorted=False)
        states, _ = nn.utils.rnn.pad_packed_sequence(self.network(packed)[0], batch_first=True)
        mixed = torch.zeros_like(rows)
        mixed[real] = states[sentence, positions].to(rows.dtype)
        return mixed


class Gru(Recurrent):
    """Gated recurrent units, Cho et al. 2014."""

    network_class = nn.GRU


class Lstm(Recurrent):
    """Long short-term memory, Hochreiter and Schmidhuber 1997."""

    network_class = nn.LSTM
