"""Complete model: an encoder, a prediction head for antecedents, and an output layer over the vocabulary."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from anaphora.base.batch import Batch, EncoderInput
from anaphora.base.errors import UserError
from anaphora.base.translation import N_
from anaphora.model.encoder import Encoder, initialiser
from anaphora.model.linear import Linear
from anaphora.model.prediction import EncoderOutput
from anaphora.settings.model import encoder as model_settings
from anaphora.settings.model import prediction as prediction_settings


class VocabularyOutput(nn.Module):
    """Output layer over the V tokens of the vocabulary, (..., W) -> (..., V); it may share the embedding's weights."""

    def __init__(self, chosen: model_settings.Model, vocabulary: int, tied_to: nn.Embedding | None) -> None:
        super().__init__()
        self.transform = OutputTransform(chosen) if chosen.output_transform else nn.Identity()
        self.linear = Linear(chosen.width, vocabulary)
        if tied_to is not None:
            self.linear.weight = tied_to.weight

    def forward(self, vectors: Tensor) -> Tensor:
        logits: Tensor = self.linear(self.transform(vectors))
        return logits


class OutputTransform(nn.Module):
    """Layers before BERT's vocabulary logits: a dense layer, an activation and a norm, (..., W) -> (..., W).

    They are in the authors' code (Devlin et al. 2019, run_pretraining.py), not in the paper. The activation is
    ReLU if the feed-forward network has ReLU, and GELU otherwise.
    """

    def __init__(self, chosen: model_settings.Model) -> None:
        super().__init__()
        self.dense = Linear(chosen.width, chosen.width)
        self.activation = nn.ReLU() if isinstance(chosen.feed_forward, model_settings.Relu) else nn.GELU()
        self.norm = chosen.norm.build(chosen.width)

    def forward(self, vectors: Tensor) -> Tensor:
        normed: Tensor = self.norm(self.activation(self.dense(vectors)))
        return normed


class PronounModel(nn.Module):
    """Encoder with a prediction head for antecedents (or labels) and an output layer over the vocabulary."""

    def __init__(
        self, chosen: model_settings.Model, predicted: prediction_settings.Prediction, vocabulary: int
    ) -> None:
        super().__init__()
        self.prediction = predicted
        self.encoder = Encoder(chosen, vocabulary)
        tied_to = self.encoder.tokens if chosen.tied_output else None
        self.output = VocabularyOutput(chosen, vocabulary, tied_to)
        self.prediction_head = predicted.build(chosen, self.output)
        initialise = initialiser(chosen.initialisation)
        self.prediction_head.apply(initialise)
        # Tied weights are the embedding's and already initialised.
        (self.output if tied_to is None else self.output.transform).apply(initialise)

    @property
    def device(self) -> torch.device:
        """Return the device of the parameters."""
        return next(self.parameters()).device

    def forward(self, batch: Batch) -> EncoderOutput:
        """Encode a batch; the attention rows in the output are None if the prediction head does not need them."""
        if self.prediction_head.needs_rows():
            return self.forward_with_rows(batch)
        hidden = self.encoder(self.encoder_input(batch), self._needed_positions(batch))
        return EncoderOutput(hidden=hidden.flatten(0, 1), rows=None)

    def forward_with_rows(self, batch: Batch) -> EncoderOutput:
        """Encode a batch; also return the attention rows of the query (pronoun) tokens in every layer and head."""
        queries, needed = batch.row_and_token(batch.query_positions), self._needed_positions(batch)
        hidden, rows = self.encoder.forward_with_rows(self.encoder_input(batch), queries, needed)
        return EncoderOutput(hidden=hidden.flatten(0, 1), rows=rows)

    def encoder_input(self, batch: Batch) -> EncoderInput:
        """Return the encoder input of a batch, with the vectors by which the prediction head marks candidates."""
        marks = self.prediction_head.marks(batch.slots)
        return EncoderInput(batch.inputs, batch.positions, batch.segments, marks, self.second(batch))

    def second(self, batch: Batch) -> Tensor | None:
        """Return a mask of the pronouns' tokens, (R, T), if the model reads them as a second sequence, else None."""
        if not self.encoder.settings.second_sequence:
            return None
        is_query = torch.zeros_like(batch.ids, dtype=torch.bool).flatten()
        is_query[batch.query_positions] = True
        return is_query.view_as(batch.ids)

    def check_without_query(self) -> None:
        """Raise UserError if the model reads the pronoun as a second sequence, so that it needs a marked pronoun."""
        if self.encoder.settings.second_sequence:
            raise UserError(
                N_("this run reads the pronoun as a second sequence (model.second_sequence): name the pronoun")
            )

    def _needed_positions(self, batch: Batch) -> Tensor:
        """Return the sorted indices, (P,), among all tokens of the batch that the prediction and output heads need."""
        read = (*self.prediction_head.read_positions(batch), batch.masked_positions, batch.own_positions)
        positions: Tensor = torch.unique(torch.cat(read))
        return positions

    if TYPE_CHECKING:

        def __call__(self, batch: Batch) -> EncoderOutput: ...
