"""Settings of the token mixing of a layer: kinds of attention, and recurrent networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from omegaconf import MISSING

from anaphora.base.checks import at_least, between
from anaphora.base.errors import UserError

if TYPE_CHECKING:
    from anaphora.model.mixer import Mixer

PROJECTIONS = ("query", "key", "value", "output")
"""The linear maps of a layer of attention."""


@dataclass(kw_only=True)
class Attention:
    """How tokens exchange information; the variants are the subclasses.

    Attributes:
        projections: the linear maps that a layer of this kind trains.
    """

    kind: str = MISSING
    projections: ClassVar[tuple[str, ...]] = PROJECTIONS

    def build(self, width: int) -> Mixer:
        """Build the layer's attention, or the network in its place."""
        raise UserError(f"model.attention.kind ({self.kind!r}) is not one that this encoder can build")


@dataclass(kw_only=True)
class MultiHead(Attention):
    """Heads of equal width with projections of their own (Vaswani et al. 2017, section 3.2.2)."""

    kind: str = "multi_head"
    heads: int = 2  # number of heads in each layer
    scaled: bool = True  # divide scores by the square root of the number of features per head
    dropout: float = 0.0  # dropout rate of single attention weights, in training only
    head_dropout: float = 0.0  # dropout rate of whole heads, in training only (Zhou et al. 2020)

    def __post_init__(self) -> None:
        at_least("model.attention.heads", self.heads, 1)
        between("model.attention.dropout", self.dropout, 0, 1)
        between("model.attention.head_dropout", self.head_dropout, 0, 1)

    def build(self, width: int) -> Mixer:
        from anaphora.model.attention import Attention

        return Attention(width, self.heads, self.dropout, self.head_dropout, None if self.scaled else 1.0)


@dataclass(kw_only=True)
class SingleHead(Attention):
    """One head over the full width."""

    kind: str = "single_head"
    dropout: float = 0.0  # dropout rate of single attention weights, in training only

    def __post_init__(self) -> None:
        between("model.attention.dropout", self.dropout, 0, 1)

    def build(self, width: int) -> Mixer:
        from anaphora.model.attention import Attention

        return Attention(width, 1, self.dropout)


@dataclass(kw_only=True)
class SharedQueryKey(MultiHead):
    """Multi-head attention whose queries and keys are one projection (Kitaev et al. 2020, section 2)."""

    kind: str = "shared_query_key"
    projections: ClassVar[tuple[str, ...]] = ("query", "value", "output")

    def build(self, width: int) -> Mixer:
        from anaphora.model.attention import SharedQueryKey

        return SharedQueryKey(width, self.heads, self.dropout, self.head_dropout, None if self.scaled else 1.0)


@dataclass(kw_only=True)
class Uniform(Attention):
    """Every token attends equally to all tokens of its sentence: the control in which no map can show anything."""

    kind: str = "uniform"
    heads: int = 2  # number of heads in each layer
    projections: ClassVar[tuple[str, ...]] = ("value", "output")

    def __post_init__(self) -> None:
        at_least("model.attention.heads", self.heads, 1)

    def build(self, width: int) -> Mixer:
        from anaphora.model.attention import Uniform

        return Uniform(width, self.heads)


@dataclass(kw_only=True)
class ParameterFree(Attention):
    """softmax(X X^T / sqrt(D)) X on the heads' slices of the features: attention without trainable weights."""

    kind: str = "parameter_free"
    heads: int = 2  # number of heads in each layer
    projections: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        at_least("model.attention.heads", self.heads, 1)

    def build(self, width: int) -> Mixer:
        from anaphora.model.attention import ParameterFree

        return ParameterFree(width, self.heads)


@dataclass(kw_only=True)
class Recurrent(Attention):
    """A recurrent network in attention's place, in both directions; the variants are the subclasses."""

    projections: ClassVar[tuple[str, ...]] = ()


@dataclass(kw_only=True)
class Gru(Recurrent):
    """Gated recurrent units (Cho et al. 2014), half of the width in each direction, instead of attention: no maps."""

    kind: str = "gru"

    def build(self, width: int) -> Mixer:
        from anaphora.model.recurrent import Gru

        return Gru(width)


@dataclass(kw_only=True)
class Lstm(Recurrent):
    """Long short-term memory (Hochreiter and Schmidhuber 1997), half of the width in each direction: no maps."""

    kind: str = "lstm"

    def build(self, width: int) -> Mixer:
        from anaphora.model.recurrent import Lstm

        return Lstm(width)


def heads_of(attention: Attention) -> int:
    """How many heads a layer of this kind has."""
    return int(getattr(attention, "heads", 1))
