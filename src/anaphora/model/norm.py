"""What keeps the features of a token at one scale: (B, T, W) -> (B, T, W)."""

from __future__ import annotations

from torch import nn

from anaphora.errors import UserError
from anaphora.model import settings
from anaphora.parts import extensible


@extensible(nn.Module)
def build(chosen: settings.Norm, width: int) -> nn.Module:
    """The normalisation that the settings name."""
    match chosen:
        case settings.LayerNorm(epsilon=epsilon):
            return nn.LayerNorm(width, eps=epsilon)
        case settings.RmsNorm(epsilon=epsilon):
            return nn.RMSNorm(width, eps=epsilon)
    raise UserError(f"model.norm.kind ({chosen.kind!r}) is not one that this encoder can build")
