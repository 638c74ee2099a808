"""Settings of training: batching, task, optimizer, validation and trainer; and a check that settings have an effect."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from omegaconf import MISSING, OmegaConf

from anaphora.base.checks import at_least, between, one_of
from anaphora.base.device import DEVICES
from anaphora.base.errors import UserError
from anaphora.settings.data import TextCorpus
from anaphora.settings.model.attention import PROJECTIONS, Recurrent, Uniform
from anaphora.settings.model.prediction import Prediction

LATEST_END = 2 / 3  # maximum `end` of a value curriculum, as a share of the steps


@dataclass(kw_only=True)
class Batching:
    """Settings of the batches, which consist of rows (token sequences) with one or more sentences each."""

    kind: str = "packed"  # packed: several sentences in a row; buckets: one in a row, batched by length
    tokens: int = 4096  # maximum number of tokens in a batch, padding included
    # Maximum number of tokens in a packed row; plain texts are split into chunks of this size, and labelled texts are
    # truncated to it, with buckets too.
    row_tokens: int = 128
    window: int = 1024  # number of sentences that are sorted into rows or buckets at a time
    # For each of the first epochs, the share of the groups to train on, shortest groups first.
    shortest_first: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        one_of("batching.kind", self.kind, ("packed", "buckets"))
        at_least("batching.row_tokens", self.row_tokens, 1)
        at_least("batching.window", self.window, 1)
        for share in self.shortest_first:
            if not 0 < share <= 1:
                raise UserError(f"batching.shortest_first ({share:g}) must be above 0 and at most 1, a share an epoch")
        if self.kind == "packed":
            self.check_rows_fit()

    def check_rows_fit(self) -> None:
        """Check that a batch can hold a row of the maximum length, or a chunk of a text; raise UserError if not."""
        if self.tokens < self.row_tokens:
            raise UserError(f"batching.tokens ({self.tokens}) must be at least batching.row_tokens ({self.row_tokens})")


@dataclass(kw_only=True)
class Supervision:
    """Settings of a loss on the attention weights from the pronoun.

    The loss is KL(target || attention weights), where the target is uniform over the antecedent's tokens.
    """

    weight: float = 0.0  # weight of the supervision loss; 0 turns it off
    layers: list[int] = field(default_factory=lambda: [-1])  # supervised layers; negative numbers count from the last
    heads: list[int] = field(default_factory=lambda: [0])  # supervised heads in each supervised layer, from 0

    def __post_init__(self) -> None:
        at_least("task.supervision.weight", self.weight, 0)
        if self.weight and not (self.layers and self.heads):
            raise ValueError("task.supervision needs at least one layer and one head where its weight is above 0")


@dataclass(kw_only=True)
class Task:
    """Settings of the model's task and of the losses that train the model."""

    prediction: Prediction = field(default=MISSING)
    masked_lm: float = 0.0  # share of the words that are masked for the masked-language-model loss
    masked_lm_weight: float = 1.0  # weight of the masked-language-model loss
    own_token: float = 0.0  # share of the unmasked words whose own tokens are also predicted, as in BERT
    own_token_weight: float = 1.0  # weight of the loss on the words' own tokens
    exchanged_names: bool = False  # add a copy of each training item with the candidates' names exchanged
    other_names: int = 0  # number of further copies of each training item, whose candidates get names from other items
    # Weight of a loss equal to the probability that both items of a minimal pair get the same answer; 0 turns it off.
    minimal_pair_contrast: float = 0.0
    labels: str = "gold"  # gold; for controls, shuffled (random candidates) or nearest (nearest compatible candidate)
    supervision: Supervision = field(default_factory=Supervision)

    def __post_init__(self) -> None:
        between("task.masked_lm", self.masked_lm, 0, 1)
        at_least("task.masked_lm_weight", self.masked_lm_weight, 0)
        between("task.own_token", self.own_token, 0, 1)
        at_least("task.own_token_weight", self.own_token_weight, 0)
        at_least("task.other_names", self.other_names, 0)
        one_of("task.labels", self.labels, ("gold", "shuffled", "nearest"))
        at_least("task.minimal_pair_contrast", self.minimal_pair_contrast, 0)
        if self.minimal_pair_contrast and self.prediction.kind in ("none", "label"):
            raise ValueError(
                f"task.minimal_pair_contrast ({self.minimal_pair_contrast}) compares answers about pronouns, and "
                f"task.prediction={self.prediction.kind} gives none: leave it at 0"
            )
        if self.prediction.kind == "none" and not self.masked_lm:
            raise ValueError("task.prediction=none trains on masked tokens alone: task.masked_lm must be above 0")
        if self.labels != "gold" and not self.learns_labels:
            raise ValueError(
                f"task.labels={self.labels} replaces labels, and task.prediction=none learns none without "
                "task.supervision: leave it at gold"
            )

    @property
    def learns_labels(self) -> bool:
        """Return whether the prediction head's loss, or a loss that supervises attention, depends on the labels."""
        return self.prediction.kind != "none" or self.supervision.weight > 0


@dataclass(kw_only=True)
class ValueCurriculum:
    """Settings of a curriculum for the attention values.

    At first the values are projected from the token embeddings, and at the end from the layer's input. In between, they
    are projected from (1 - s) * embedding + s * input, where s rises linearly from 0 to 1. With pre-norm, the
    interpolated vector is normalised before the projection.
    """

    start: float = 0.0  # share of the steps after which the layers' inputs are mixed in
    end: float = 0.0  # share of the steps after which only the layers' inputs are used, at most 2/3; 0: no curriculum

    def __post_init__(self) -> None:
        between("optimizer.value_curriculum.start", self.start, 0, 1)
        if not self.start <= self.end <= LATEST_END:
            raise ValueError(
                f"optimizer.value_curriculum.end ({self.end:g}) must be from its start ({self.start:g}) to 2/3: at "
                "least the last third of the steps trains the encoder that is kept"
            )

    def hidden_share(self, step: int, steps: int) -> float:
        """Return the weight s of the layer's input in the interpolation, from 0 to 1.

        It is 0 up to step `start` * `steps` and exactly 1 from step `end` * `steps` on.
        """
        start, end = self.start * steps, self.end * steps
        if step >= end:
            return 1.0
        return max(0.0, (step - start) / (end - start))


@dataclass(kw_only=True)
class Optimizer:
    """Settings of AdamW (Loshchilov and Hutter 2019) with warm-up and decay, and of Muon for weight matrices."""

    matrices: str = "adamw"  # optimizer of the blocks' weight matrices: adamw, or muon (orthogonalised momentum)
    steps: int = 1000  # training steps, one batch each
    learning_rate: float = 1e-3  # peak learning rate, reached after the warm-up
    matrices_learning_rate: float | None = None  # learning rate of muon; by default `learning_rate`
    warmup: float = 0.05  # share of the steps in which the learning rate rises linearly
    # Learning rate after the warm-up: linear or cosine decay to zero, cooldown (constant for 70 % of these steps, then
    # linear decay to zero), or constant.
    decay: str = "linear"
    weight_decay: float = 0.01  # weight decay of matrices; biases and norms have none
    beta2: float = 0.98  # decay of AdamW's second moments; that of the first is 0.9
    clip: float = 1.0  # maximum gradient norm; larger gradients are scaled down
    frozen: list[str] = field(default_factory=list)  # projections that are not trained: query, key, value, output
    # Number of blocks, from the lowest, that are frozen together with the embedding; 0 freezes only the embedding.
    frozen_layers: int | None = None
    # Layer-wise decay: the prediction head has `learning_rate`, each layer the rate of the layer above it times this.
    layer_decay: float = 1.0
    value_curriculum: ValueCurriculum = field(default_factory=ValueCurriculum)

    def __post_init__(self) -> None:
        at_least("optimizer.steps", self.steps, 1)
        between("optimizer.warmup", self.warmup, 0, 1)
        one_of("optimizer.matrices", self.matrices, ("adamw", "muon"))
        one_of("optimizer.decay", self.decay, ("linear", "cosine", "cooldown", "constant"))
        between("optimizer.beta2", self.beta2, 0, 1)
        at_least("optimizer.weight_decay", self.weight_decay, 0)
        if not 0 < self.layer_decay <= 1:
            raise ValueError(f"optimizer.layer_decay ({self.layer_decay}) must be above 0 and at most 1")
        for name in self.frozen:
            one_of("optimizer.frozen", name, PROJECTIONS)
        if self.matrices_learning_rate is not None and self.matrices != "muon":
            raise ValueError(
                "optimizer.matrices_learning_rate is only for optimizer.matrices=muon; set that, or leave this out"
            )
        for name in ("learning_rate", "matrices_learning_rate", "clip"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ValueError(f"optimizer.{name} ({value}) must be positive")


@dataclass(kw_only=True)
class Validation:
    """Settings of validation on the development split during training, and of early stopping."""

    every: int = 100  # steps between two validations
    patience: int = 0  # stop after this many validations without a lower loss; 0: never stop early
    keep: str = "best"  # which weights to keep: those with the lowest validation loss (best), or the final ones (last)
    # Maximum number of development items for validation during training, evenly spaced; heads are chosen on all
    # development items.
    items: int = 2000

    def __post_init__(self) -> None:
        at_least("validation.every", self.every, 1)
        at_least("validation.patience", self.patience, 0)
        at_least("validation.items", self.items, 1)
        one_of("validation.keep", self.keep, ("best", "last"))
        if self.keep == "last" and self.patience:
            raise ValueError(
                f"validation.patience ({self.patience}) waits for the best weights: leave it at 0 with "
                "validation.keep=last"
            )


DECIDE_RESULTS = ("precision", "compile", "limit_steps", "limit_items")
"""Settings of `trainer` that a resumed run keeps; the others affect only rounding and, for `device`, dropout masks."""


@dataclass(kw_only=True)
class Trainer:
    """Settings of device, precision, logging and limits.

    Precision and limits change the results. Compilation and the kind of device (CPU, CUDA or MPS) change the dropout
    masks. The other settings change results by rounding errors at most.
    """

    device: str = "auto"  # `auto` (the first of cuda, mps and cpu that is available), `cpu`, `cuda` or `mps`
    precision: str | None = None  # 32 or bf16-mixed; by default bf16-mixed if device=cuda, otherwise 32
    compile: bool = False  # compile the encoder with torch before training
    progress: bool = True  # show a progress bar
    loggers: list[str] = field(default_factory=lambda: ["tensorboard"])  # `tensorboard`, `csv`, `wandb`, `mlflow`
    pictures: int = 8  # number of times that figures and sentences' answers are written to TensorBoard; 0: never
    limit_steps: int | None = None  # for smoke runs: stop after this many steps
    limit_items: int | None = None  # for smoke runs: use only this many items of each split

    def __post_init__(self) -> None:
        one_of("trainer.device", self.device, DEVICES)
        if self.precision is None:
            # The default depends on `device`, not on the machine, and is resolved here, so that config.yaml records it.
            self.precision = "bf16-mixed" if self.device == "cuda" else "32"
        one_of("trainer.precision", self.precision, ("32", "bf16-mixed"))
        for name in self.loggers:
            one_of("trainer.loggers", name, ("tensorboard", "csv", "wandb", "mlflow"))
        at_least("trainer.pictures", self.pictures, 0)
        at_least("trainer.limit_steps", self.limit_steps, 1)
        at_least("trainer.limit_items", self.limit_items, 1)


class WithoutEffect(NamedTuple):
    """Settings that have no effect under a condition.

    In `names`, a name that ends with a dot stands for all settings below it. `condition` describes the condition in
    messages. `holds` returns whether the condition holds; it is called with a function that returns a setting's value.
    """

    names: tuple[str, ...]
    condition: str
    holds: Callable[[Callable[[str], Any]], bool]


_NO_SCORES = (Recurrent, Uniform)
_OF_SCORES = ("rotary", "alibi", "t5_relative")  # position encodings that act only on the scores of attention
_NO_OUTPUT = ("none", "slot", "pointer", "bilinear", "pair", "label")  # prediction heads without output layer
WITHOUT_EFFECT = (
    WithoutEffect(("task.masked_lm_weight",), "task.masked_lm is 0", lambda of: not of("task.masked_lm")),
    WithoutEffect(("task.own_token_weight",), "task.own_token is 0", lambda of: not of("task.own_token")),
    WithoutEffect(
        ("task.supervision.layers", "task.supervision.heads"),
        "task.supervision.weight is 0",
        lambda of: not of("task.supervision.weight"),
    ),
    WithoutEffect(
        ("task.supervision.",),
        "model.attention is uniform, whose weights are not trained",
        lambda of: _is_a(of("model.attention"), Uniform),
    ),
    WithoutEffect(
        ("data.shared_nouns",),
        "data.types has none of gender, number and animacy",
        lambda of: bool(of("data.types")) and not {"gender", "number", "animacy"} & set(of("data.types")),
    ),
    WithoutEffect(
        ("batching.row_tokens",),
        "batching.kind is buckets and the data are no texts",
        lambda of: of("batching.kind") == "buckets" and not _is_a(of("data"), TextCorpus),
    ),
    WithoutEffect(
        ("model/position", "model.position."),
        "model.attention is recurrent or uniform, without scores that depend on positions",
        lambda of: _is_a(of("model.attention"), *_NO_SCORES) and of("model.position.kind") in _OF_SCORES,
    ),
    WithoutEffect(
        ("model.output_transform", "model.tied_output"),
        "task.prediction needs no output layer, and task.masked_lm and task.own_token are 0",
        lambda of: of("task.prediction.kind") in _NO_OUTPUT and not of("task.masked_lm") and not of("task.own_token"),
    ),
    WithoutEffect(
        ("optimizer.value_curriculum.",),
        "model.layers is 1, since the input of the first layer is the embeddings",
        lambda of: of("model.layers") == 1,
    ),
    WithoutEffect(
        ("optimizer.frozen", "optimizer.layer_decay", "optimizer.matrices", "optimizer.matrices_learning_rate"),
        "optimizer.frozen_layers freezes all layers",
        lambda of: of("start") is None and of("optimizer.frozen_layers") == of("model.layers"),
    ),
    WithoutEffect(
        ("validation.keep",),
        "task.prediction is none and the data are no texts, since there is no loss to compare",
        lambda of: (
            of("validation.keep") == "best"
            and of("task.prediction.kind") == "none"
            and not _is_a(of("data"), TextCorpus)
        ),
    ),
    WithoutEffect(
        ("trainer.pictures",),
        "trainer.loggers has no tensorboard",
        lambda of: "tensorboard" not in of("trainer.loggers"),
    ),
    WithoutEffect(
        ("trainer.pictures",),
        "task.prediction is none and the data are texts, which have no pictures",
        lambda of: of("task.prediction.kind") == "none" and _is_a(of("data"), TextCorpus),
    ),
    WithoutEffect(
        ("trainer.pictures", "validation.items"),
        "task.prediction is none and model.attention is recurrent, so that validation measures nothing",
        lambda of: (
            of("task.prediction.kind") == "none"
            and _is_a(of("model.attention"), Recurrent)
            and not _is_a(of("data"), TextCorpus)
        ),
    ),
    WithoutEffect(("slurm.",), "executor is here", lambda of: of("executor") == "here"),
    WithoutEffect(("minutes",), "train is false", lambda of: of("train") is False),
)
"""Settings of `train`, `demo` and `study` that would be ignored, with the condition."""


def _is_a(node: Any, *kinds: type[Any]) -> bool:
    """Return whether the composed settings of a group are an instance of one of the given settings classes."""
    return issubclass(OmegaConf.get_type(node) or object, kinds)


def refuse_without_effect(
    typed: Mapping[str, str],
    value_of: Callable[[str], Any],
    swept: Collection[str] = (),
    elsewhere: Callable[[], Iterable[Callable[[str], Any]]] = tuple,
) -> None:
    """Check that the settings of a command have an effect; a value such as 0 or false need not have one.

    Args:
        typed: values as the user has typed them, by the name of the setting or config group.
        value_of: function that returns the value of any setting, or None if the command has no such setting.
        swept: names of settings over which a sweep may run. A setting whose effect depends on one of them is allowed.
        elsewhere: function that returns a `value_of` function for each other job of a sweep. A setting with an effect
            in one of these jobs is allowed.

    Raises:
        UserError: a setting has no effect (`WITHOUT_EFFECT`).
    """
    read: set[str] = set()

    def recorded_value_of(name: str) -> Any:
        read.add(name)
        return value_of(name)

    for name, value in typed.items():
        place = name.replace("/", ".")
        rows = [row for row in WITHOUT_EFFECT if any(_is_named(name, one) for one in row.names)]
        for row in rows if value_of(place) else ():
            read.clear()
            if not row.holds(recorded_value_of) or any(_is_below(one, swept) for one in read):
                continue
            if not any(there(place) and not any(one.holds(there) for one in rows) for there in elsewhere()):
                raise UserError(f"{name}={value} has no effect while {row.condition}")


def _is_named(name: str, pattern: str) -> bool:
    """Return whether `name` equals `pattern`, or begins with it if `pattern` ends with a dot."""
    return name == pattern or (pattern.endswith(".") and name.startswith(pattern))


def _is_below(name: str, groups: Collection[str]) -> bool:
    """Return whether a setting is one of `groups`, or belongs to one of them."""
    return any(name == group or name.startswith(f"{group}.") for group in groups)
