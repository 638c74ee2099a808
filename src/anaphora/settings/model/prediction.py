"""Settings of the prediction head, which computes the answer from the hidden states."""

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
    """Prediction head, which computes the answer from the encoder's states; each subclass is a variant."""

    kind: str = MISSING
    none_of_them: bool = False  # add the answer "none of them", for data with items whose candidates are all wrong

    def build(self, model: Model, output: nn.Module) -> modules.PredictionHead:
        """Build the prediction head; `output` turns vectors into vocabulary logits, (..., W) -> (..., V)."""
        raise UserError(f"task.prediction.kind ({self.kind!r}) is not one that can be built")


@dataclass(kw_only=True)
class NoPrediction(Prediction):
    """No answers: only masked-language-model training."""

    kind: str = "none"

    def __post_init__(self) -> None:
        if self.none_of_them:
            raise ValueError("task.prediction.none_of_them is an answer, and task.prediction=none gives none")

    def build(self, model: Model, output: nn.Module) -> modules.PredictionHead:
        from anaphora.model import prediction as modules

        return modules.PredictionHead()


@dataclass(kw_only=True)
class Word(Prediction):
    """The antecedent's word, predicted from the pronoun's vector over the whole vocabulary."""

    kind: str = "word"

    def build(self, model: Model, output: nn.Module) -> modules.PredictionHead:
        from anaphora.model import prediction as modules

        return modules.Word(output, self.none_of_them)


@dataclass(kw_only=True)
class Slot(Prediction):
    """The antecedent's slot, predicted from the pronoun's vector.

    Each candidate has a slot: a number from 1, whose embedding is added to the embeddings of the candidate's tokens.
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
    """The answer read from the pronoun's attention weights in one head, which the labels therefore supervise."""

    kind: str = "pointer"
    layer: int = -1  # layer of the head; negative numbers count from the last layer
    head: int = 0  # index of the head in its layer, from 0

    def build(self, model: Model, output: nn.Module) -> modules.PredictionHead:
        from anaphora.model import prediction as modules

        return modules.Pointer(self.layer, self.head, self.none_of_them)


@dataclass(kw_only=True)
class Bilinear(Prediction):
    """A bilinear score of each pair of pronoun vector and candidate vector."""

    kind: str = "bilinear"

    def build(self, model: Model, output: nn.Module) -> modules.PredictionHead:
        from anaphora.model import prediction as modules

        return modules.Bilinear(model.width, self.none_of_them)


@dataclass(kw_only=True)
class Pair(Prediction):
    """A score from a small network on the pronoun vector, each candidate's vector and their product."""

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

    def build(self, model: Model, output: nn.Module) -> modules.PredictionHead:
        from anaphora.model import prediction as modules

        return modules.Label(model.width, len(self.labels), self.pooling)


def slots_of(prediction: Prediction) -> int:
    """Return the number of slots that mark candidates in the input; 0 for a prediction head without slots."""
    return prediction.slots if isinstance(prediction, Slot) else 0


def reads_candidates(prediction: Prediction) -> bool:
    """Return whether a prediction head compares pronoun and candidate states, which needs no attention between them."""
    return isinstance(prediction, Bilinear) or (isinstance(prediction, Pair) and not prediction.attention)
