"""Small encoders in every variant, and sentences to feed them."""

from __future__ import annotations

import torch
from torch import Tensor

from anaphora.model import settings
from anaphora.model.encoder import Encoder

VOCABULARY = 50
POSITIONS = [
    settings.NoPosition(),
    settings.Sinusoidal(),
    settings.Learned(max_length=32),
    settings.Rotary(),
    settings.Alibi(),
    settings.T5Relative(buckets=8, max_distance=16),
]
ATTENTIONS = [
    settings.MultiHead(heads=2),
    settings.SingleHead(),
    settings.SharedQueryKey(heads=2),
    settings.Uniform(heads=2),
    settings.ParameterFree(heads=2),
]
RECURRENT = [settings.Gru(), settings.Lstm()]
FEED_FORWARDS = [settings.Relu(), settings.Gelu(), settings.SwiGlu()]
NORMS = [
    settings.LayerNorm(placement="pre"),
    settings.LayerNorm(placement="post"),
    settings.RmsNorm(placement="pre"),
    settings.RmsNorm(placement="post"),
]


def shape(**changes: object) -> settings.Model:
    """Settings of a tiny encoder; wide weights, so that nothing is equal merely because all is small."""
    chosen: dict[str, object] = {
        "width": 16,
        "layers": 2,
        "position": settings.Rotary(),
        "attention": settings.MultiHead(heads=2),
        "feed_forward": settings.Gelu(),
        "norm": settings.LayerNorm(),
        "initialisation": settings.Normal(deviation=0.5),
    }
    return settings.Model(**(chosen | changes))  # type: ignore[arg-type]


def encoder(**changes: object) -> Encoder:
    """A tiny encoder in evaluation mode, float64, the same weights at each call."""
    torch.manual_seed(0)
    return Encoder(shape(**changes), VOCABULARY).double().eval()


def sentence(length: int, seed: int = 0) -> Tensor:
    """(T,) random ids."""
    return torch.randint(5, VOCABULARY, (length,), generator=torch.Generator().manual_seed(seed))


def pack(sentences: list[Tensor], padding: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """One row: ids, places, segments, each (1, T)."""
    ids = torch.cat([*sentences, torch.zeros(padding, dtype=torch.long)])
    places = torch.cat([*(torch.arange(len(one)) for one in sentences), torch.zeros(padding, dtype=torch.long)])
    segments = torch.cat(
        [*(torch.full((len(one),), number) for number, one in enumerate(sentences)), torch.full((padding,), -1)]
    )
    return ids[None], places[None], segments[None]
