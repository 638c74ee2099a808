"""Our encoder, and Hugging Face's BertModel, which most would take instead, in the same sizes."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from anaphora.benchmark.sentences import VOCABULARY
from anaphora.benchmark.settings import Size
from anaphora.data.batch import Batch
from anaphora.errors import UserError
from anaphora.model import settings
from anaphora.model.resolver import Resolver

BERT, BERT_MASKED = "BertModel", "BertForMaskedLM"


def resolver(
    size: Size, position: settings.Position, vocabulary: int = VOCABULARY, tied_output: bool = False
) -> Resolver:
    """A fresh model of ours without a read-out: encoder and vocabulary logits."""
    chosen = settings.Model(
        width=size.width,
        layers=size.layers,
        tied_output=tied_output,
        position=position,
        attention=settings.MultiHead(heads=size.heads),
        feed_forward=settings.Gelu(expansion=size.feed_forward / size.width),
        norm=settings.LayerNorm(),
        initialisation=settings.Normal(),
    )
    return Resolver(chosen, settings.NoReadout(), vocabulary)


def transformers() -> Any:
    """The library, which is optional and so is not imported by name.

    Raises:
        UserError: it is not installed.
    """
    try:
        return import_module("transformers")
    except ImportError:
        raise UserError("the benchmark needs transformers: pip install 'anaphora[bench]'") from None


def bert(size: Size, attention: str, places: int, vocabulary: int = VOCABULARY) -> nn.Module:
    """A fresh BertModel without pooler and dropout, for texts of at most `places` tokens.

    `attention` is "sdpa", or "eager", which alone can give maps.
    """
    config = _bert_config(size, attention, places, vocabulary)
    model: nn.Module = transformers().BertModel(config, add_pooling_layer=False)
    return model


def _bert_config(size: Size, attention: str, places: int, vocabulary: int) -> Any:
    return transformers().BertConfig(
        vocab_size=vocabulary,
        hidden_size=size.width,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        intermediate_size=size.feed_forward,
        max_position_embeddings=places,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        attn_implementation=attention,
    )


class BertForHiddenWords(nn.Module):
    """BertModel and logits at the hidden words alone, its fastest fair form."""

    def __init__(self, size: Size, places: int, vocabulary: int = VOCABULARY, tied_output: bool = False) -> None:
        super().__init__()
        self.encoder = bert(size, "sdpa", places, vocabulary)
        self.output = nn.Linear(size.width, vocabulary)
        if tied_output:
            self.output.weight = self.encoder.get_input_embeddings().weight  # type: ignore[operator]

    def forward(self, batch: Batch) -> Tensor:
        """The mean loss over the hidden words of a batch with one sentence a row."""
        read = self.encoder(input_ids=batch.inputs, attention_mask=attention_mask(batch)).last_hidden_state
        logits = self.output(read.flatten(0, 1)[batch.masked_positions])
        return functional.cross_entropy(logits, batch.ids.flatten()[batch.masked_positions])


class BertMasked(nn.Module):
    """BertForMaskedLM as it comes: its head, weights tied, and logits at every token."""

    def __init__(self, size: Size, places: int, vocabulary: int) -> None:
        super().__init__()
        self.model = transformers().BertForMaskedLM(_bert_config(size, "sdpa", places, vocabulary))

    def forward(self, batch: Batch) -> Tensor:
        """The mean loss over the hidden words of a batch with one text a row."""
        labels = torch.full_like(batch.ids, _NOT_ASKED)
        labels.view(-1)[batch.masked_positions] = batch.ids.view(-1)[batch.masked_positions]
        loss: Tensor = self.model(input_ids=batch.inputs, attention_mask=attention_mask(batch), labels=labels).loss
        return loss


_NOT_ASKED = -100  # the label of a token that the loss of transformers leaves out


def attention_mask(batch: Batch) -> Tensor:
    """1 for tokens and 0 for padding, as BertModel asks: (R, T)."""
    return (batch.segments >= 0).long()
