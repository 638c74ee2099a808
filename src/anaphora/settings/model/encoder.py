"""Settings of the encoder."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from omegaconf import MISSING

from anaphora.base.checks import at_least, between, one_of
from anaphora.base.errors import UserError
from anaphora.base.translation import N_
from anaphora.settings.model.attention import Attention, Recurrent, heads_of
from anaphora.settings.model.position import Position

if TYPE_CHECKING:
    from torch import Tensor, nn

    from anaphora.model import layers as networks


@dataclass(kw_only=True)
class FeedForward:
    """Settings of the feed-forward network of a block; each subclass is a variant."""

    kind: str = MISSING
    expansion: float = 4.0  # number of hidden features, as a multiple of the encoder's width

    def __post_init__(self) -> None:
        at_least("model.feed_forward.expansion", self.expansion, 0.25)

    def build(self, width: int) -> networks.FeedForward | networks.SwiGlu:
        """Build the network; its `inside` returns the activations of the hidden layer: (B, T, W) -> (B, T, hidden)."""
        raise UserError(f"model.feed_forward.kind ({self.kind!r}) is not one that this encoder can build")

    def hidden_features(self, width: int) -> int:
        """Return the size of the hidden layer: width * `expansion`, rounded, and at least 1."""
        return max(1, round(width * self.expansion))


@dataclass(kw_only=True)
class Relu(FeedForward):
    """Two linear layers with a ReLU in between (Vaswani et al. 2017, section 3.3)."""

    kind: str = "relu"

    def build(self, width: int) -> networks.FeedForward | networks.SwiGlu:
        from torch import nn

        from anaphora.model import layers as networks

        return networks.FeedForward(width, self.hidden_features(width), nn.ReLU())


@dataclass(kw_only=True)
class Gelu(FeedForward):
    """Two linear layers with a GELU in between (Hendrycks and Gimpel 2016)."""

    kind: str = "gelu"

    def build(self, width: int) -> networks.FeedForward | networks.SwiGlu:
        from torch import nn

        from anaphora.model import layers as networks

        return networks.FeedForward(width, self.hidden_features(width), nn.GELU())


@dataclass(kw_only=True)
class SwiGlu(FeedForward):
    """Feed-forward network with a SiLU-gated linear unit, SwiGLU (Shazeer 2020)."""

    kind: str = "swiglu"

    def build(self, width: int) -> networks.FeedForward | networks.SwiGlu:
        from anaphora.model import layers as networks

        return networks.SwiGlu(width, self.hidden_features(width))


@dataclass(kw_only=True)
class Norm:
    """Settings of the normalisation of each token's features; each subclass is a variant."""

    kind: str = MISSING
    placement: str = "pre"  # pre: at the start of the residual branch; post: after the sum
    epsilon: float = 1e-5  # added under the square root, to avoid division by zero
    embedding: bool = False  # add a norm after the sum of token and position embeddings, as in BERT

    def __post_init__(self) -> None:
        one_of("model.norm.placement", self.placement, ("pre", "post"))
        if self.epsilon <= 0:
            raise ValueError(f"model.norm.epsilon ({self.epsilon}) must be positive")

    def build(self, width: int) -> nn.Module:
        """Build the normalisation over the last axis: (..., W) -> (..., W)."""
        raise UserError(f"model.norm.kind ({self.kind!r}) is not one that this encoder can build")


@dataclass(kw_only=True)
class LayerNorm(Norm):
    """Normalisation of each token's features to zero mean and unit variance (Ba et al. 2016)."""

    kind: str = "layer_norm"

    def build(self, width: int) -> nn.Module:
        from torch import nn

        return nn.LayerNorm(width, eps=self.epsilon)


@dataclass(kw_only=True)
class RmsNorm(Norm):
    """Normalisation of each token's features to a root mean square of 1 (Zhang and Sennrich 2019)."""

    kind: str = "rms_norm"

    def build(self, width: int) -> nn.Module:
        from torch import nn

        return nn.RMSNorm(width, eps=self.epsilon)


@dataclass(kw_only=True)
class Initialisation:
    """Settings of the initialisation of the weight matrices; each subclass is a variant."""

    kind: str = MISSING

    def build(self, weight: Tensor) -> None:
        """Initialise a weight matrix in place."""
        raise UserError(f"model.initialisation.kind ({self.kind!r}) is not one that this encoder can build")


@dataclass(kw_only=True)
class Normal(Initialisation):
    """Initialisation from a normal distribution with mean 0, as in BERT (Devlin et al. 2019)."""

    kind: str = "normal"
    deviation: float = 0.02  # standard deviation of the weights

    def __post_init__(self) -> None:
        if self.deviation <= 0:
            raise ValueError(f"model.initialisation.deviation ({self.deviation}) must be positive")

    def build(self, weight: Tensor) -> None:
        from torch import nn

        nn.init.normal_(weight, std=self.deviation)


@dataclass(kw_only=True)
class Xavier(Initialisation):
    """Initialisation from a uniform distribution scaled by fan-in and fan-out (Glorot and Bengio 2010)."""

    kind: str = "xavier"

    def build(self, weight: Tensor) -> None:
        from torch import nn

        nn.init.xavier_uniform_(weight)


@dataclass(kw_only=True)
class Model:
    """Settings of the architecture of the encoder."""

    width: int = 128  # number of features of a token, over all heads
    layers: int = 3  # number of blocks of attention and feed-forward network
    dropout: float = 0.0  # dropout rate of the embedding and of every branch's output, in training only
    values: str = "hidden"  # source of the attention values: the layer's input (hidden), or token embeddings (token)
    second_sequence: bool = False  # move the pronoun from the text to a second sequence, which attends to the text
    tied_output: bool = False  # share the weights of the embedding and of the output layer over the vocabulary
    output_transform: bool = False  # dense layer, activation and norm before the logits over the vocabulary, as in BERT
    position: Position = field(default=MISSING)
    attention: Attention = field(default=MISSING)
    feed_forward: FeedForward = field(default=MISSING)
    norm: Norm = field(default=MISSING)
    initialisation: Initialisation = field(default=MISSING)

    def __post_init__(self) -> None:
        at_least("model.width", self.width, 2)
        at_least("model.layers", self.layers, 1)
        between("model.dropout", self.dropout, 0, 1)
        one_of("model.values", self.values, ("hidden", "token"))
        heads = heads_of(self.attention)
        if self.width % heads:
            raise ValueError(f"model.width ({self.width}) must be a multiple of model.attention.heads ({heads})")
        self.position.check_shape(self.width, heads)
        if isinstance(self.attention, Recurrent) and (self.values == "token" or self.width % 2):
            raise ValueError(
                f"model.attention={self.attention.kind} mixes hidden states, half of the width in each direction: it "
                f"needs model.values=hidden (not {self.values}) and an even model.width (not {self.width})"
            )
        if isinstance(self.attention, Recurrent) and self.second_sequence:
            raise ValueError(
                f"model.second_sequence needs attention from one sequence to another, and model.attention="
                f"{self.attention.kind} reads one alone"
            )


def check_length(chosen: Model, longest: int) -> None:
    """Check that the position encoding allows a text of `longest` tokens; raise UserError if it is too long."""
    limit = chosen.position.longest_text
    if limit is not None and longest > limit:
        message = N_("a text of {tokens} tokens is longer than model.position.max_length ({most})")
        raise UserError(message, tokens=longest, most=limit)


def about_weights(model: Model) -> float:
    """Return the approximate number of weights of an encoder without its embeddings."""
    width = float(model.width)
    return model.layers * width * width * (4 + 2 * model.feed_forward.expansion)
