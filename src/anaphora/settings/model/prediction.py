"""Settings of the prediction head, which predicts the antecedent or a label from the encoder's hidden states."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from omegaconf import MISSING

from anaphora.base.checks import at_least, between, one_of
from anaphora.base.errors import UserError
from anaphora.settings.model.attention import heads_of
from anaphora.settings.model.encoder import Model

if TYPE_CHECKING:
    from torch import nn

    from anaphora.model import prediction as modules


@dataclass(kw_only=True)
class Prediction:
    """Settings of the prediction head, which predicts the antecedent or a label; each subclass is a variant."""

    kind: str = MISSING
    none_of_them: bool = False  # add the answer "none of them", for data with items whose candidates are all wrong

    def build(self, model: Model, output: nn.Module) -> modules.PredictionHead:
        """Build the prediction head.

        `output` maps hidden states to logits over the vocabulary, (..., W) -> (..., V).
        """
        raise UserError(f"task.prediction.kind ({self.kind!r}) is not one that can be built")


@dataclass(kw_only=True)
class NoPrediction(Prediction):
    """No prediction of antecedents or labels: the model is trained on the masked-language-model loss only."""

    kind: str = "none"

    def __post_init__(self) -> None:
        if self.none_of_them:
            raise ValueError("task.prediction.none_of_them is an answer, and task.prediction=none gives none")

    def build(self, model: Model, output: nn.Module) -> modules.PredictionHead:
        from anaphora.model import prediction as modules

        return modules.PredictionHead()


@dataclass(kw_only=True)
class Word(Prediction):
    """Prediction of the antecedent's word from the pronoun's hidden state, by a softmax over the whole vocabulary."""

    kind: str = "word"

    def build(self, model: Model, output: nn.Module) -> modules.PredictionHead:
        from anaphora.model import prediction as modules

        return modules.Word(output, self.none_of_them)


@dataclass(kw_only=True)
class Slot(Prediction):
    """Prediction of the antecedent's candidate number from the pronoun's hidden state.

    The candidates of an item are numbered from 1. The embedding of a candidate's number (its slot) is added to the
    embeddings of the candidate's tokens.
    """

    kind: str = "slot"
    slots: int = 8  # maximum number of candidates of an item

    def __post_init__(self) -> None:
        between("task.prediction.slots", self.slots, 2, 10_000)

    def build(self, model: Model, output: nn.Module) -> modules.PredictionHead:
        from anaphora.model import prediction as modules

        return modules.Slot(model.width, self.slots, self.none_of_them)


@dataclass(kw_only=True)
class Pointer(Prediction):
    """Prediction of the candidate with the most attention from the pronoun in one head; labels supervise this head."""

    kind: str = "pointer"
    layer: int = -1  # layer of the head; negative numbers count from the last layer
    head: int = 0  # index of the head in its layer, from 0

    def build(self, model: Model, output: nn.Module) -> modules.PredictionHead:
        from anaphora.model import prediction as modules

        return modules.Pointer(self.layer, self.head, self.none_of_them)


@dataclass(kw_only=True)
class Bilinear(Prediction):
    """A bilinear score of each candidate, computed from the hidden states of the pronoun and the candidate."""

    kind: str = "bilinear"

    def build(self, model: Model, output: nn.Module) -> modules.PredictionHead:
        from anaphora.model import prediction as modules

        return modules.Bilinear(model.width, self.none_of_them)


@dataclass(kw_only=True)
class Pair(Prediction):
    """A score of each candidate from a small network on both hidden states (pronoun, candidate) and their product."""

    kind: str = "pair"
    attention: bool = False  # also input all heads' attention from pronoun to candidate; the labels then supervise it
    hidden: int = 128  # number of hidden features of the network
    dropout: float = 0.0  # dropout rate of the network's input and hidden features, in training only

    def __post_init__(self) -> None:
        at_least("task.prediction.hidden", self.hidden, 1)
        between("task.prediction.dropout", self.dropout, 0, 1)

    def build(self, model: Model, output: nn.Module) -> modules.PredictionHead:
        from anaphora.model import prediction as modules

        heads = model.layers * heads_of(model.attention) if self.attention else 0
        return modules.Pair(model.width, self.hidden, heads, self.dropout, self.none_of_them)


@dataclass(kw_only=True)
class Label(Prediction):
    """Classification of a text from one vector: the mean hidden state of its tokens, or the hidden state of [CLS]."""

    kind: str = "label"
    pooling: str = "mean"  # the vector: the mean of all tokens' states (mean), or the state of [CLS] (first)
    labels: list[str] = field(default_factory=list)  # the labels; by default those of the training split, sorted

    def __post_init__(self) -> None:
        one_of("task.prediction.pooling", self.pooling, ("mean", "first"))
        if self.none_of_them:
            raise ValueError("task.prediction.none_of_them is for pronouns: every text has one of the labels")
        if len(set(self.labels)) != len(self.labels):
            raise ValueError(f"task.prediction.labels ({self.labels}) must name each label once")

    def build(self, model: Model, output: nn.Module) -> modules.PredictionHead:
        from anaphora.model import prediction as modules

        return modules.Label(model.width, len(self.labels), self.pooling)


def slots_of(prediction: Prediction) -> int:
    """Return the maximum number of candidates that a `Slot` head can number; 0 for any other prediction head."""
    return prediction.slots if isinstance(prediction, Slot) else 0


def reads_candidates(prediction: Prediction) -> bool:
    """Return whether a prediction head compares the hidden states of the pronoun and the candidates.

    Such a head, unlike one that reads attention weights, can be right even if the pronoun attends to no candidate.
    """
    return isinstance(prediction, Bilinear) or (isinstance(prediction, Pair) and not prediction.attention)
