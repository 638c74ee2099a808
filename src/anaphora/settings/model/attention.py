"""Settings of the token mixing of a layer: kinds of attention, and recurrent networks in place of attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from omegaconf import MISSING

from anaphora.base.checks import at_least, between
from anaphora.base.errors import UserError

if TYPE_CHECKING:
    from anaphora.model.mixer import Mixer

PROJECTIONS = ("query", "key", "value", "output")


@dataclass(kw_only=True)
class Attention:
    """Settings of the token mixing of a layer; each subclass that defines its own `kind` is a variant."""

    kind: str = MISSING
    # Names of the linear projections that a layer of this kind trains.
    projections: ClassVar[tuple[str, ...]] = PROJECTIONS

    def build(self, width: int) -> Mixer:
        """Build the attention of a layer, or the recurrent network that replaces it."""
        raise UserError(f"model.attention.kind ({self.kind!r}) is not one that this encoder can build")


@dataclass(kw_only=True)
class SeveralHeads(Attention):
    """Settings of multi-head attention with heads of equal width; each subclass that defines a `kind` is a variant."""

    heads: int = 2  # number of heads in each layer

    def __post_init__(self) -> None:
        at_least("model.attention.heads", self.heads, 1)


@dataclass(kw_only=True)
class MultiHead(SeveralHeads):
    """Several heads of equal width, each with its own projections (Vaswani et al. 2017, section 3.2.2)."""

    kind: str = "multi_head"
    scaled: bool = True  # divide scores by the square root of the number of features per head
    dropout: float = 0.0  # dropout rate of single attention weights, in training only
    head_dropout: float = 0.0  # dropout rate of whole heads, in training only (Zhou et al. 2020)

    def __post_init__(self) -> None:
        super().__post_init__()
        between("model.attention.dropout", self.dropout, 0, 1)
        between("model.attention.head_dropout", self.head_dropout, 0, 1)

    def build(self, width: int) -> Mixer:
        from anaphora.model.attention import Attention

        return Attention(width, self.heads, self.dropout, self.head_dropout, None if self.scaled else 1.0)


@dataclass(kw_only=True)
class SingleHead(Attention):
    """One head with the full width of the encoder."""

    kind: str = "single_head"
    dropout: float = 0.0  # dropout rate of single attention weights, in training only

    def __post_init__(self) -> None:
        between("model.attention.dropout", self.dropout, 0, 1)

    def build(self, width: int) -> Mixer:
        from anaphora.model.attention import Attention

        return Attention(width, 1, self.dropout)


@dataclass(kw_only=True)
class SharedQueryKey(MultiHead):
    """Multi-head attention with one projection for queries and keys (Kitaev et al. 2020, section 2)."""

    kind: str = "shared_query_key"
    projections: ClassVar[tuple[str, ...]] = ("query", "value", "output")

    def build(self, width: int) -> Mixer:
        from anaphora.model.attention import SharedQueryKey

        return SharedQueryKey(width, self.heads, self.dropout, self.head_dropout, None if self.scaled else 1.0)


@dataclass(kw_only=True)
class Uniform(SeveralHeads):
    """Equal attention to all tokens of the sentence: a control in which the attention weights carry no information."""

    kind: str = "uniform"
    projections: ClassVar[tuple[str, ...]] = ("value", "output")

    def build(self, width: int) -> Mixer:
        from anaphora.model.attention import Uniform

        return Uniform(width, self.heads)


@dataclass(kw_only=True)
class ParameterFree(SeveralHeads):
    """Attention without trained parameters: softmax(X X^T / sqrt(D)) X on each head's slice of the features."""

    kind: str = "parameter_free"
    projections: ClassVar[tuple[str, ...]] = ()

    def build(self, width: int) -> Mixer:
        from anaphora.model.attention import ParameterFree

        return ParameterFree(width, self.heads)


@dataclass(kw_only=True)
class Recurrent(Attention):
    """Settings of a bidirectional recurrent network in place of attention; each subclass is a variant."""

    projections: ClassVar[tuple[str, ...]] = ()


@dataclass(kw_only=True)
class Gru(Recurrent):
    """Bidirectional GRU (Cho et al. 2014) in place of attention, without attention maps."""

    kind: str = "gru"

    def build(self, width: int) -> Mixer:
        from anaphora.model.mixer import Gru

        return Gru(width)


@dataclass(kw_only=True)
class Lstm(Recurrent):
    """Bidirectional LSTM (Hochreiter and Schmidhuber 1997) in place of attention, without attention maps."""

    kind: str = "lstm"

    def build(self, width: int) -> Mixer:
        from anaphora.model.mixer import Lstm

        return Lstm(width)


def heads_of(attention: Attention) -> int:
    """Return the number of attention heads in a layer; 1 for a variant without the setting `heads`."""
    return int(getattr(attention, "heads", 1))
