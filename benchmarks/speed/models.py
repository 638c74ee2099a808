"""This package's encoder and Hugging Face's BertModel in the same sizes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from anaphora.base.batch import Batch
from anaphora.base.hub import import_transformers
from anaphora.model.pronoun_model import PronounModel
from anaphora.settings.model import attention as attention_settings
from anaphora.settings.model import encoder as model_settings
from anaphora.settings.model import position as position_settings
from anaphora.settings.model import prediction as prediction_settings
from benchmarks.speed.sentences import VOCABULARY
from benchmarks.speed.settings import EncoderSize

BERT, BERT_MASKED = "BertModel", "BertForMaskedLM"


def our_model(
    size: EncoderSize, position: position_settings.Position, vocabulary: int = VOCABULARY, tied_output: bool = False
) -> PronounModel:
    """Return a randomly initialised model of this package without prediction head: encoder and vocabulary logits."""
    settings = model_settings.Model(
        width=size.width,
        layers=size.layers,
        tied_output=tied_output,
        position=position,
        attention=attention_settings.MultiHead(heads=size.heads),
        feed_forward=model_settings.Gelu(expansion=size.feed_forward / size.width),
        norm=model_settings.LayerNorm(),
        initialisation=model_settings.Normal(),
    )
    return PronounModel(settings, prediction_settings.NoPrediction(), vocabulary)


def bert_model(size: EncoderSize, attention: str, positions: int, vocabulary: int = VOCABULARY) -> nn.Module:
    """Return a randomly initialised BertModel without pooler and dropout, for texts of at most `positions` tokens.

    `attention` is "sdpa", or "eager" for attention maps.
    """
    config = _bert_config(size, attention, positions, vocabulary)
    model: nn.Module = import_transformers("bench").BertModel(config, add_pooling_layer=False)
    return model


def _bert_config(size: EncoderSize, attention: str, positions: int, vocabulary: int) -> Any:
    return import_transformers("bench").BertConfig(
        vocab_size=vocabulary,
        hidden_size=size.width,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        intermediate_size=size.feed_forward,
        max_position_embeddings=positions,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        attn_implementation=attention,
    )


class LeanBertMaskedLM(nn.Module):
    """BertModel with vocabulary logits only at masked tokens, which is its fastest comparable form."""

    def __init__(
        self, size: EncoderSize, positions: int, vocabulary: int = VOCABULARY, tied_output: bool = False
    ) -> None:
        super().__init__()
        self.encoder = bert_model(size, "sdpa", positions, vocabulary)
        self.output = nn.Linear(size.width, vocabulary)
        if tied_output:
            self.output.weight = self.encoder.get_input_embeddings().weight  # type: ignore[operator]

    def forward(self, batch: Batch) -> Tensor:
        """Return the mean loss over the masked tokens of a batch with one sentence per row."""
        hidden = self.encoder(input_ids=batch.inputs, attention_mask=attention_mask(batch)).last_hidden_state
        logits = self.output(hidden.flatten(0, 1)[batch.masked_positions])
        return functional.cross_entropy(logits, batch.ids.flatten()[batch.masked_positions])


class FullBertMaskedLM(nn.Module):
    """Unmodified BertForMaskedLM, with its output layers, tied weights, and logits at every token."""

    def __init__(self, size: EncoderSize, positions: int, vocabulary: int) -> None:
        super().__init__()
        self.model = import_transformers("bench").BertForMaskedLM(_bert_config(size, "sdpa", positions, vocabulary))

    def forward(self, batch: Batch) -> Tensor:
        """Return the mean loss over the masked tokens of a batch with one text per row."""
        labels = torch.full_like(batch.ids, _IGNORED_LABEL)
        labels.view(-1)[batch.masked_positions] = batch.ids.view(-1)[batch.masked_positions]
        loss: Tensor = self.model(input_ids=batch.inputs, attention_mask=attention_mask(batch), labels=labels).loss
        return loss


_IGNORED_LABEL = -100  # the label of a token that the loss of transformers leaves out


def attention_mask(batch: Batch) -> Tensor:
    """Return BertModel's attention mask, 1 for tokens and 0 for padding: (R, T)."""
    return (batch.segments >= 0).long()
