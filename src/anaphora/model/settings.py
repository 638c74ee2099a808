"""What an encoder is made of, in the user's words. Imports nothing heavy: a wrong setting is told at once."""

from __future__ import annotations

from dataclasses import dataclass, field

from omegaconf import MISSING

from anaphora.errors import UserError


def between(name: str, value: float, low: float, high: float) -> None:
    """Refuse a number outside [low, high), naming the setting."""
    if not low <= value < high:
        raise ValueError(f"{name} ({value}) must be at least {low:g} and below {high:g}")


def at_least(name: str, value: float, low: float) -> None:
    """Refuse a number below `low`, naming the setting."""
    if value < low:
        raise ValueError(f"{name} ({value}) must be at least {low:g}")


def one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """Refuse a word that is not in the list, naming the setting."""
    if value not in allowed:
        raise ValueError(f"{name} ({value!r}) must be one of {', '.join(allowed)}")


@dataclass(kw_only=True)
class Position:
    """Where the order of the tokens enters; the variants are the subclasses."""

    kind: str = MISSING


@dataclass(kw_only=True)
class NoPosition(Position):
    """No position at all: the encoder sees a bag of tokens."""

    kind: str = "none"


@dataclass(kw_only=True)
class Sinusoidal(Position):
    """Fixed waves added to the embedding (Vaswani et al. 2017, section 3.5)."""

    kind: str = "sinusoidal"
    base: float = 10_000.0

    def __post_init__(self) -> None:
        at_least("model.position.base", self.base, 2)


@dataclass(kw_only=True)
class Learned(Position):
    """One trained vector a place, added to the embedding (Devlin et al. 2019)."""

    kind: str = "learned"
    max_length: int = 512

    def __post_init__(self) -> None:
        at_least("model.position.max_length", self.max_length, 1)


@dataclass(kw_only=True)
class Rotary(Position):
    """Queries and keys turned by an angle that grows with the place (Su et al. 2021)."""

    kind: str = "rotary"
    base: float = 10_000.0

    def __post_init__(self) -> None:
        at_least("model.position.base", self.base, 2)


@dataclass(kw_only=True)
class Alibi(Position):
    """A penalty on the score that grows with the distance (Press et al. 2022), the same in both directions."""

    kind: str = "alibi"


@dataclass(kw_only=True)
class T5Relative(Position):
    """A trained score for each bucket of distances (Raffel et al. 2020, section 2.1)."""

    kind: str = "t5_relative"
    buckets: int = 32
    max_distance: int = 128

    def __post_init__(self) -> None:
        if self.buckets < 4 or self.buckets % 4:
            raise ValueError(f"model.position.buckets ({self.buckets}) must be a positive multiple of 4")
        at_least("model.position.max_distance", self.max_distance, self.buckets // 4 + 1)


@dataclass(kw_only=True)
class Attention:
    """How tokens exchange information; the variants are the subclasses."""

    kind: str = MISSING


@dataclass(kw_only=True)
class MultiHead(Attention):
    """Heads of equal width with projections of their own (Vaswani et al. 2017, section 3.2.2)."""

    kind: str = "multi_head"
    heads: int = 2
    scaled: bool = True  # divide scores by the square root of the features a head has; false leaves them as they are
    dropout: float = 0.0  # of single weights, in training only
    head_dropout: float = 0.0  # of whole heads, in training only (Zhou et al. 2020)

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
    """Every token attends to all tokens of its sentence alike: the control in which no map can say anything."""

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
    """No attention but gated recurrent units, half of the width a direction (Cho et al. 2014): there are no maps."""

    kind: str = "gru"


@dataclass(kw_only=True)
class Lstm(Recurrent):
    """No attention but long short-term memory, half of the width a direction (Hochreiter and Schmidhuber 1997)."""

    kind: str = "lstm"


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
    placement: str = "pre"  # pre: inside the residual branch; post: after the sum
    epsilon: float = 1e-5
    embedding: bool = False  # one more norm, on the embedding with its positions, as BERT has it

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
    """How the weights begin; the variants are the subclasses."""

    kind: str = MISSING


@dataclass(kw_only=True)
class Normal(Initialisation):
    """Every weight from a normal distribution of one width (Devlin et al. 2019)."""

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
    """Shape of the encoder."""

    width: int = 128
    layers: int = 3
    dropout: float = 0.0  # of the embedding and of every branch's output, in training only
    values: str = "hidden"  # what attention mixes: the layer's own input, or in every layer the token's embedding
    second_sequence: bool = False  # what is asked about leaves the text and, a sequence of its own, queries it
    tied_output: bool = False  # word read-out and masked-language-model logits use the embedding's own weights
    output_transform: bool = False  # a dense layer, activation and norm before those logits, as in BERT's output
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
                f"model.attention={self.attention.kind} mixes hidden states, half of the width a direction: it needs "
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


@dataclass(kw_only=True)
class Readout:
    """How the answer leaves the encoder; the variants are the subclasses."""

    kind: str = MISSING
    none_of_them: bool = False  # one more answer, "none of the candidates", for data that need it


@dataclass(kw_only=True)
class NoReadout(Readout):
    """No answer is asked for: masked-language-model training alone."""

    kind: str = "no_readout"


@dataclass(kw_only=True)
class Word(Readout):
    """The antecedent's word, predicted at the pronoun's vector over the whole vocabulary."""

    kind: str = "word"


@dataclass(kw_only=True)
class Slot(Readout):
    """The antecedent's slot: candidates are marked by random slot vectors, the pronoun's vector names the slot."""

    kind: str = "slot"
    slots: int = 8  # the most candidates an item may have

    def __post_init__(self) -> None:
        at_least("task.readout.slots", self.slots, 2)


@dataclass(kw_only=True)
class Pointer(Readout):
    """One attention row is the answer, so the label trains that row: it counts as supervised."""

    kind: str = "pointer"
    layer: int = -1  # negative counts from the last
    head: int = 0


@dataclass(kw_only=True)
class Bilinear(Readout):
    """A score for each pair of pronoun vector and candidate vector."""

    kind: str = "bilinear"


@dataclass(kw_only=True)
class Pair(Readout):
    """A small network's score for each pair of pronoun vector and candidate vector, and for their product."""

    kind: str = "pair"
    attention: bool = False  # reads the pronoun's weights on the candidate too, all heads: the label then trains them
    hidden: int = 128  # features of the network between the pair and its score
    dropout: float = 0.0  # of what the network reads and of its features, in training only

    def __post_init__(self) -> None:
        at_least("task.readout.hidden", self.hidden, 1)
        between("task.readout.dropout", self.dropout, 0, 1)


@dataclass(kw_only=True)
class Label(Readout):
    """The label of a whole text, from one vector of it."""

    kind: str = "label"
    pooling: str = "mean"  # that vector: mean of all tokens' states, or the state of the first token, [CLS]
    labels: list[str] = field(default_factory=list)  # by default those of the training split, sorted

    def __post_init__(self) -> None:
        one_of("task.readout.pooling", self.pooling, ("mean", "first"))
        if self.none_of_them:
            raise ValueError("task.readout.none_of_them is for pronouns: every text has one of the labels")
        if len(set(self.labels)) != len(self.labels):
            raise ValueError(f"task.readout.labels ({self.labels}) must name each label once")


def slots_of(readout: Readout) -> int:
    """How many slots mark candidates in the input; 0 where the read-out marks none."""
    return readout.slots if isinstance(readout, Slot) else 0


def reads_candidates(readout: Readout) -> bool:
    """Whether answers are read off the candidates' own states, and so need no attention from the query to them."""
    return isinstance(readout, Bilinear) or (isinstance(readout, Pair) and not readout.attention)


def check_length(chosen: Model, longest: int) -> None:
    """Refuse texts of more tokens than the model has places for.

    Raises:
        UserError: `longest` is above `model.position.max_length`.
    """
    position = chosen.position
    if isinstance(position, Learned) and longest > position.max_length:
        raise UserError(f"a text of {longest} tokens is longer than model.position.max_length ({position.max_length})")
