"""What an encoder is made of, in the user's words. Imports nothing heavy: a wrong setting is reported at once."""

from __future__ import annotations

from dataclasses import dataclass, field

from omegaconf import MISSING

from anaphora.base.checks import at_least, between, one_of
from anaphora.base.errors import UserError
from anaphora.settings.model.attention import Attention, Recurrent, heads_of
from anaphora.settings.model.position import Learned, Position, Rotary, Sinusoidal


@dataclass(kw_only=True)
class FeedForward:
    """The per-token network of a block; the variants are the subclasses."""

    kind: str = MISSING
    expansion: float = 4.0  # hidden features per feature of the encoder's width

    def __post_init__(self) -> None:
        at_least("model.feed_forward.expansion", self.expansion, 0.25)


@dataclass(kw_only=True)
class Relu(FeedForward):
    """Two linear maps with a ReLU between (Vaswani et al. 2017, section 3.3)."""

    kind: str = "relu"


@dataclass(kw_only=True)
class Gelu(FeedForward):
    """Two linear maps with a GELU between (Hendrycks and Gimpel 2016)."""

    kind: str = "gelu"


@dataclass(kw_only=True)
class SwiGlu(FeedForward):
    """A gated pair of linear maps, SiLU on the gate (Shazeer 2020)."""

    kind: str = "swiglu"


@dataclass(kw_only=True)
class Norm:
    """What keeps the features of a token at one scale, and where it stands; the variants are the subclasses."""

    kind: str = MISSING
    placement: str = "pre"  # pre: at the start of the residual branch; post: after the sum
    epsilon: float = 1e-5
    embedding: bool = False  # a further norm on the embedding and its positions, as in BERT

    def __post_init__(self) -> None:
        one_of("model.norm.placement", self.placement, ("pre", "post"))
        if self.epsilon <= 0:
            raise ValueError(f"model.norm.epsilon ({self.epsilon}) must be positive")


@dataclass(kw_only=True)
class LayerNorm(Norm):
    """Zero mean and unit variance over a token's features (Ba et al. 2016)."""

    kind: str = "layer_norm"


@dataclass(kw_only=True)
class RmsNorm(Norm):
    """Unit root mean square over a token's features (Zhang and Sennrich 2019)."""

    kind: str = "rms_norm"


@dataclass(kw_only=True)
class Initialisation:
    """How the weights are initialised; the variants are the subclasses."""

    kind: str = MISSING


@dataclass(kw_only=True)
class Normal(Initialisation):
    """All weights are drawn from one normal distribution (Devlin et al. 2019)."""

    kind: str = "normal"
    deviation: float = 0.02

    def __post_init__(self) -> None:
        if self.deviation <= 0:
            raise ValueError(f"model.initialisation.deviation ({self.deviation}) must be positive")


@dataclass(kw_only=True)
class Xavier(Initialisation):
    """Uniform weights whose variance depends on both sides' sizes (Glorot and Bengio 2010)."""

    kind: str = "xavier"


@dataclass(kw_only=True)
class Model:
    """The shape of the encoder."""

    width: int = 128
    layers: int = 3
    dropout: float = 0.0  # dropout rate of the embedding and of every branch's output, in training only
    values: str = "hidden"  # what attention mixes: the layer's own input (hidden), or the tokens' embeddings (token)
    second_sequence: bool = False  # take the pronoun out of the text and let it query the text as a second sequence
    tied_output: bool = False  # word prediction and masked-language-model logits use the embedding's own weights
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
        if isinstance(self.position, Rotary) and (self.width // heads) % 2:
            raise ValueError(
                f"model.position=rotary turns pairs of features: model.width / heads ({self.width // heads}) "
                "must be even"
            )
        if isinstance(self.attention, Recurrent) and (self.values == "token" or self.width % 2):
            raise ValueError(
                f"model.attention={self.attention.kind} mixes hidden states, half of the width in each direction: it "
                "needs "
                f"model.values=hidden (not {self.values}) and an even model.width (not {self.width})"
            )
        if isinstance(self.attention, Recurrent) and self.second_sequence:
            raise ValueError(
                f"model.second_sequence needs attention from one sequence to another, and model.attention="
                f"{self.attention.kind} reads one alone"
            )
        if isinstance(self.position, Sinusoidal) and self.width % 2:
            raise ValueError(
                f"model.position=sinusoidal pairs sines with cosines: model.width ({self.width}) must be even"
            )


def check_length(chosen: Model, longest: int) -> None:
    """Refuse texts of more tokens than the model has places for.

    Raises:
        UserError: `longest` is above `model.position.max_length`.
    """
    position = chosen.position
    if isinstance(position, Learned) and longest > position.max_length:
        raise UserError(f"a text of {longest} tokens is longer than model.position.max_length ({position.max_length})")


def about_weights(model: Model) -> float:
    """About how many weights an encoder has, its vocabulary aside."""
    width = float(model.width)
    return model.layers * width * width * (4 + 2 * model.feed_forward.expansion)
