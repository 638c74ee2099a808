"""Settings of what mixes the tokens of a layer: kinds of attention, and recurrent networks."""

from __future__ import annotations

from dataclasses import dataclass

from omegaconf import MISSING

from anaphora.base.checks import at_least, between


@dataclass(kw_only=True)
class Attention:
    """How tokens exchange information; the variants are the subclasses."""

    kind: str = MISSING


@dataclass(kw_only=True)
class MultiHead(Attention):
    """Heads of equal width with projections of their own (Vaswani et al. 2017, section 3.2.2)."""

    kind: str = "multi_head"
    heads: int = 2
    scaled: bool = True  # divide scores by the square root of the number of features per head
    dropout: float = 0.0  # dropout rate of single attention weights, in training only
    head_dropout: float = 0.0  # dropout rate of whole heads, in training only (Zhou et al. 2020)

    def __post_init__(self) -> None:
        at_least("model.attention.heads", self.heads, 1)
        between("model.attention.dropout", self.dropout, 0, 1)
        between("model.attention.head_dropout", self.head_dropout, 0, 1)


@dataclass(kw_only=True)
class SingleHead(Attention):
    """One head over the full width."""

    kind: str = "single_head"
    dropout: float = 0.0

    def __post_init__(self) -> None:
        between("model.attention.dropout", self.dropout, 0, 1)


@dataclass(kw_only=True)
class SharedQueryKey(MultiHead):
    """Multi-head attention whose queries and keys are one projection (Kitaev et al. 2020, section 2)."""

    kind: str = "shared_query_key"


@dataclass(kw_only=True)
class Uniform(Attention):
    """Every token attends equally to all tokens of its sentence: the control in which no map can show anything."""

    kind: str = "uniform"
    heads: int = 2

    def __post_init__(self) -> None:
        at_least("model.attention.heads", self.heads, 1)


@dataclass(kw_only=True)
class ParameterFree(Attention):
    """softmax(X X^T / sqrt(D)) X on the heads' slices of the features: attention with nothing to train."""

    kind: str = "parameter_free"
    heads: int = 2

    def __post_init__(self) -> None:
        at_least("model.attention.heads", self.heads, 1)


@dataclass(kw_only=True)
class Recurrent(Attention):
    """A recurrent network in attention's place, in both directions; the variants are the subclasses."""


@dataclass(kw_only=True)
class Gru(Recurrent):
    """Gated recurrent units (Cho et al. 2014), half of the width in each direction, instead of attention: no maps."""

    kind: str = "gru"


@dataclass(kw_only=True)
class Lstm(Recurrent):
    """Long short-term memory (Hochreiter and Schmidhuber 1997), half of the width in each direction: no maps."""

    kind: str = "lstm"


PROJECTIONS = ("query", "key", "value", "output")
"""The linear maps of a layer of attention."""


def projections_of(attention: Attention) -> tuple[str, ...]:
    """Which of the projections a layer of this kind trains."""
    match attention:
        case ParameterFree() | Recurrent():
            return ()
        case Uniform():
            return ("value", "output")
        case SharedQueryKey():
            return ("query", "value", "output")
    return PROJECTIONS


def heads_of(attention: Attention) -> int:
    """How many heads a layer of this kind has."""
    return int(getattr(attention, "heads", 1))
