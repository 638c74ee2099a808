"""Small encoders in all variants, and input sentences."""

from __future__ import annotations

import torch
from torch import Tensor

from anaphora.base.batch import EncoderInput
from anaphora.model.encoder import Encoder
from anaphora.settings.model import attention as attention_settings
from anaphora.settings.model import encoder as model_settings
from anaphora.settings.model import position as position_settings

VOCABULARY = 50
POSITIONS = [
    position_settings.NoPosition(),
    position_settings.Sinusoidal(),
    position_settings.Learned(max_length=32),
    position_settings.Rotary(),
    position_settings.Alibi(),
    position_settings.T5Relative(buckets=8, max_distance=16),
]
ATTENTIONS = [
    attention_settings.MultiHead(heads=2),
    attention_settings.SingleHead(),
    attention_settings.SharedQueryKey(heads=2),
    attention_settings.Uniform(heads=2),
    attention_settings.ParameterFree(heads=2),
]
RECURRENT = [attention_settings.Gru(), attention_settings.Lstm()]
FEED_FORWARDS = [model_settings.Relu(), model_settings.Gelu(), model_settings.SwiGlu()]
NORMS = [
    model_settings.LayerNorm(placement="pre"),
    model_settings.LayerNorm(placement="post"),
    model_settings.RmsNorm(placement="pre"),
    model_settings.RmsNorm(placement="post"),
]


def shape(**changes: object) -> model_settings.Model:
    """Return the settings of a tiny encoder with wide initial weights, so that differences are visible."""
    chosen: dict[str, object] = {
        "width": 16,
        "layers": 2,
        "position": position_settings.Rotary(),
        "attention": attention_settings.MultiHead(heads=2),
        "feed_forward": model_settings.Gelu(),
        "norm": model_settings.LayerNorm(),
        "initialisation": model_settings.Normal(deviation=0.5),
    }
    return model_settings.Model(**(chosen | changes))  # type: ignore[arg-type]


def encoder(**changes: object) -> Encoder:
    """Return a tiny encoder in evaluation mode and float64, with the same weights at each call."""
    torch.manual_seed(0)
    return Encoder(shape(**changes), VOCABULARY).double().eval()


def sentence(length: int, seed: int = 0) -> Tensor:
    """Return random token ids, (T,)."""
    return torch.randint(5, VOCABULARY, (length,), generator=torch.Generator().manual_seed(seed))


def pack(sentences: list[Tensor], padding: int = 0) -> EncoderInput:
    """Return one row of concatenated sentences: (1, T)."""
    ids = torch.cat([*sentences, torch.zeros(padding, dtype=torch.long)])
    positions = torch.cat([*(torch.arange(len(words)) for words in sentences), torch.zeros(padding, dtype=torch.long)])
    segments = torch.cat(
        [*(torch.full((len(words),), number) for number, words in enumerate(sentences)), torch.full((padding,), -1)]
    )
    return EncoderInput(ids[None], positions[None], segments[None])
