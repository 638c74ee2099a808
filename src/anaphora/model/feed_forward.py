"""The per-token network of a block: (B, T, W) -> (B, T, W)."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from anaphora.model.kernels.linear import Linear


class FeedForward(nn.Module):
    """Two linear layers with an activation in between, Vaswani et al. 2017, section 3.3."""

    def __init__(self, width: int, hidden: int, activation: nn.Module) -> None:
        super().__init__()
        self.widen = Linear(width, hidden)
        self.activation = activation
        self.narrow = Linear(hidden, width)

    def inside(self, features: Tensor) -> Tensor:
        """Return the hidden features between the two layers: (B, T, W) -> (B, T, hidden)."""
        active: Tensor = self.activation(self.widen(features))
        return active

    def forward(self, features: Tensor) -> Tensor:
        output: Tensor = self.narrow(self.inside(features))
        return output


class SwiGlu(nn.Module):
    """A gated network without biases, narrow(silu(gate) * content), Shazeer 2020, eq. 6."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.widen = Linear(width, 2 * hidden, bias=False)
        self.narrow = Linear(hidden, width, bias=False)

    def inside(self, features: Tensor) -> Tensor:
        """Return the hidden features between the two layers: (B, T, W) -> (B, T, hidden)."""
        gate, content = self.widen(features).chunk(2, dim=-1)
        active: Tensor = functional.silu(gate) * content
        return active

    def forward(self, features: Tensor) -> Tensor:
        output: Tensor = self.narrow(self.inside(features))
        return output
