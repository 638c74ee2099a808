"""Our encoder, and Hugging Face's BertModel, which most would take instead, in the same sizes."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from torch import Tensor, nn
from torch.nn import functional

from anaphora.benchmark.sentences import VOCABULARY
from anaphora.benchmark.settings import Size
from anaphora.data.batch import Batch
from anaphora.errors import UserError
from anaphora.model import settings
from anaphora.model.resolver import Resolver

BERT = "BertModel"


def resolver(size: Size, position: settings.Position) -> Resolver:
    """A fresh model of ours without a read-out: encoder and vocabulary logits."""
    chosen = settings.Model(
        width=size.width,
        layers=size.layers,
        position=position,
        attention=settings.MultiHead(heads=size.heads),
        feed_forward=settings.Gelu(expansion=size.feed_forward / size.width),
        norm=settings.LayerNorm(),
        initialisation=settings.Normal(),
    )
    return Resolver(chosen, settings.NoReadout(), VOCABULARY)


def transformers() -> Any:
    """The library, which is optional and so is not imported by name.

    Raises:
        UserError: it is not installed.
    """
    try:
        return import_module("transformers")
    except ImportError:
        raise UserError("the benchmark needs transformers: pip install 'anaphora[bench]'") from None


def bert(size: Size, attention: str, places: int) -> nn.Module:
    """A fresh BertModel without pooler and dropout, for texts of at most `places` tokens.

    `attention` is "sdpa", or "eager", which alone can give maps.
    """
    library = transformers()
    config = library.BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=size.width,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        intermediate_size=size.feed_forward,
        max_position_embeddings=places,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        attn_implementation=attention,
    )
    model: nn.Module = library.BertModel(config, add_pooling_layer=False)
    return model


class BertForHiddenWords(nn.Module):
    """BertModel and logits at the hidden words alone, its fastest fair form."""

    def __init__(self, size: Size, places: int) -> None:
        super().__init__()
        self.encoder = bert(size, "sdpa", places)
        self.output = nn.Linear(size.width, VOCABULARY)

    def forward(self, batch: Batch) -> Tensor:
        """The mean loss over the hidden words of a batch with one sentence a row."""
        read = self.encoder(input_ids=batch.inputs, attention_mask=attention_mask(batch)).last_hidden_state
        logits = self.output(read.flatten(0, 1)[batch.masked_positions])
        return functional.cross_entropy(logits, batch.ids.flatten()[batch.masked_positions])


def attention_mask(batch: Batch) -> Tensor:
    """1 for tokens and 0 for padding, as BertModel asks: (R, T)."""
    return (batch.segments >= 0).long()
