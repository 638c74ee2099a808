"""What keeps the features of a token at one scale: (B, T, W) -> (B, T, W)."""

from __future__ import annotations

from torch import nn

from anaphora.base.errors import UserError
from anaphora.settings.extensions import extensible
from anaphora.settings.model import encoder as model_settings


@extensible(nn.Module)
def build(chosen: model_settings.Norm, width: int) -> nn.Module:
    """The normalisation that the settings name."""
    match chosen:
        case model_settings.LayerNorm(epsilon=epsilon):
            return nn.LayerNorm(width, eps=epsilon)
        case model_settings.RmsNorm(epsilon=epsilon):
            return nn.RMSNorm(width, eps=epsilon)
    raise UserError(f"model.norm.kind ({chosen.kind!r}) is not one that this encoder can build")
