"""Settings of the prediction head: how the answer is computed from the hidden states."""

from __future__ import annotations

from dataclasses import dataclass, field

from omegaconf import MISSING

from anaphora.base.checks import at_least, between, one_of


@dataclass(kw_only=True)
class Prediction:
    """How the answer is computed from the encoder's states; the variants are the subclasses."""

    kind: str = MISSING
    none_of_them: bool = False  # allow a further answer, "none of the candidates", for data that need it


@dataclass(kw_only=True)
class NoPrediction(Prediction):
    """No answers: only masked-language-model training."""

    kind: str = "none"

    def __post_init__(self) -> None:
        if self.none_of_them:
            raise ValueError("task.prediction.none_of_them is an answer, and task.prediction=none gives none")


@dataclass(kw_only=True)
class Word(Prediction):
    """The antecedent's word, predicted at the pronoun's vector over the whole vocabulary."""

    kind: str = "word"


@dataclass(kw_only=True)
class Slot(Prediction):
    """The antecedent's slot: vectors of random slots mark the candidates, and the pronoun's vector names a slot."""

    kind: str = "slot"
    slots: int = 8  # most candidates that an item may have

    def __post_init__(self) -> None:
        between("task.prediction.slots", self.slots, 2, 10_000)


@dataclass(kw_only=True)
class Pointer(Prediction):
    """One attention row is the answer, so the label trains that row: it counts as supervised."""

    kind: str = "pointer"
    layer: int = -1  # layer of this row; negative numbers count from the last
    head: int = 0


@dataclass(kw_only=True)
class Bilinear(Prediction):
    """A score for each pair of pronoun vector and candidate vector."""

    kind: str = "bilinear"


@dataclass(kw_only=True)
class Pair(Prediction):
    """A small network scores each pair of pronoun vector and candidate vector, together with their product."""

    kind: str = "pair"
    attention: bool = False  # also read the pronoun's weights on the candidate in all heads; the label then trains them
    hidden: int = 128  # hidden features of this network
    dropout: float = 0.0  # dropout rate of the network's input and its hidden features, in training only

    def __post_init__(self) -> None:
        at_least("task.prediction.hidden", self.hidden, 1)
        between("task.prediction.dropout", self.dropout, 0, 1)


@dataclass(kw_only=True)
class Label(Prediction):
    """The label of a whole text, predicted from a single vector."""

    kind: str = "label"
    pooling: str = "mean"  # the vector: the mean of all tokens' states (mean), or the state of [CLS] (first)
    labels: list[str] = field(default_factory=list)  # the labels; by default those of the training split, sorted

    def __post_init__(self) -> None:
        one_of("task.prediction.pooling", self.pooling, ("mean", "first"))
        if self.none_of_them:
            raise ValueError("task.prediction.none_of_them is for pronouns: every text has one of the labels")
        if len(set(self.labels)) != len(self.labels):
            raise ValueError(f"task.prediction.labels ({self.labels}) must name each label once")


def slots_of(prediction: Prediction) -> int:
    """How many slots mark candidates in the input; 0 where the prediction head marks none."""
    return prediction.slots if isinstance(prediction, Slot) else 0


def reads_candidates(prediction: Prediction) -> bool:
    """Whether answers are read off the candidates' own states, and so need no attention from the query to them."""
    return isinstance(prediction, Bilinear) or (isinstance(prediction, Pair) and not prediction.attention)
