"""Settings of a training run (data, vocabulary, model, task, optimizer, validation, trainer) and their YAML file."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar

from omegaconf import MISSING, DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from anaphora.base import checks
from anaphora.base.errors import UserError, one_line
from anaphora.settings import data as data_settings
from anaphora.settings import training as training_settings
from anaphora.settings import vocabulary as vocabulary_settings
from anaphora.settings.model import attention as attention_settings
from anaphora.settings.model import encoder as model_settings
from anaphora.settings.model import prediction as prediction_settings
from anaphora.settings.typed import construct

MOST_WEIGHTS = 2e9  # maximum number of encoder weights; with gradients and optimizer state, these take 32 GB


@dataclass(kw_only=True)
class MovedData:
    """Settings for the new paths of the data of a resumed run; null keeps the old path.

    On the command line, `data.path=`, `data.also=` and `data.without=` set these paths if `resume=` is given.
    """

    path: str | None = None  # the new `data.path`
    also: list[str] | None = None  # the new `data.also`
    without: list[str] | None = None  # the new `data.without`

    @property
    def places(self) -> dict[str, str | list[str]]:
        return {one.name: place for one in fields(self) if (place := getattr(self, one.name)) is not None}


@dataclass(kw_only=True)
class Config:
    """Settings of a training run."""

    most_used: ClassVar[tuple[str, ...]] = (
        *("name", "output", "seed", "start", "resume", "optimizer.steps", "optimizer.learning_rate"),
        *("batching.tokens", "model.width", "model.layers", "validation.every", "trainer.device"),
    )
    """Settings in the short help text."""

    name: str | None = None  # name of the run directory in `output`; by default the time, or in a sweep the overrides
    output: str = "outputs"  # folder for the run directories
    seed: int = 0  # seed of the initial weights and of the order of the training items
    resume: str | None = None  # the directory of an unfinished run that is to be continued
    resume_data: MovedData = field(default_factory=MovedData)
    objective: str = "validation_loss"  # what a sweep minimises: validation_loss, or best_head (1 - highest accuracy)
    start: str | None = None  # model to fine-tune: a run directory, a folder of pretrained weights, or hf://owner/name
    data: data_settings.Data = field(default=MISSING)
    vocabulary: vocabulary_settings.Vocabulary = field(default=MISSING)
    batching: training_settings.Batching = field(default_factory=training_settings.Batching)
    model: model_settings.Model = field(default=MISSING)
    task: training_settings.Task = field(default=MISSING)
    optimizer: training_settings.Optimizer = field(default_factory=training_settings.Optimizer)
    validation: training_settings.Validation = field(default_factory=training_settings.Validation)
    trainer: training_settings.Trainer = field(default_factory=training_settings.Trainer)

    def __post_init__(self) -> None:
        if self.name is not None:
            checks.directory_name("name", self.name)
        if self.resume is None:
            for name, place in self.resume_data.places.items():
                raise ValueError(f"resume_data.{name} ({place}) needs resume=...; a new run takes data.{name}")
        checks.one_of("objective", self.objective, ("validation_loss", "best_head"))
        _check_task_fits_data(self.data, self.task)
        if isinstance(self.data, data_settings.TextCorpus):
            self.batching.check_rows_fit()
        if self.validation.patience and not self.has_validation_loss:
            raise ValueError(
                f"validation.patience ({self.validation.patience}) waits for a lower validation loss, and "
                f"task.prediction=none on data={self.data.kind} has none: leave it at 0"
            )
        if self.start is None and self.model.second_sequence and isinstance(self.data, data_settings.TextCorpus):
            raise ValueError(
                f"model.second_sequence takes the pronoun out of the text, and data={self.data.kind} has no pronouns"
            )
        if self.objective == "best_head" and isinstance(self.data, data_settings.TextCorpus):
            raise ValueError(
                f"objective (best_head) is measured on pronouns, and data={self.data.kind} has none: use "
                "validation_loss"
            )
        if self.start is None:  # otherwise the start model determines the encoder, and is read later
            self.check_model()

    @property
    def steps(self) -> int:
        """Return the number of training steps if training is not stopped early."""
        return min(self.optimizer.steps, self.trainer.limit_steps or self.optimizer.steps)

    @property
    def has_validation_loss(self) -> bool:
        """Return whether validation computes a loss: with a prediction head, or on texts without pronouns."""
        no_answers = isinstance(self.task.prediction, prediction_settings.NoPrediction)
        return not no_answers or isinstance(self.data, data_settings.TextCorpus)

    @property
    def chooses_on_its_fold(self) -> bool:
        """Return whether the fold on which the run is evaluated also selects the best weights, in cross-validation."""
        folds = isinstance(self.data, data_settings.ExternalCorpus) and self.data.folds
        return bool(folds) and self.validation.keep != "last"

    def supervises(self, layer: int, head: int) -> bool:
        """Return whether a training loss is computed directly from the attention weights of a head.

        This is so if the head's attention is supervised, or if the model predicts from its attention weights.
        """
        prediction, supervision, layers = self.task.prediction, self.task.supervision, self.model.layers
        if isinstance(prediction, prediction_settings.Pair) and prediction.attention:
            return True
        supervised_layers = supervision.layers if supervision.weight else []
        trained = {(each % layers, one) for each in supervised_layers for one in supervision.heads}
        return (layer, head) in trained or self.answers_from(layer, head)

    def answers_from(self, layer: int, head: int) -> bool:
        """Return whether the model's answers are read from the attention weights of a head."""
        prediction = self.task.prediction
        if not isinstance(prediction, prediction_settings.Pointer):
            return False
        return (layer, head) == (prediction.layer % self.model.layers, prediction.head)

    def head_training(self, layer: int, head: int) -> str:
        """Return how labels train a head: "answering" (answers are read from it), "supervised" or "" (indirectly)."""
        if self.answers_from(layer, head):
            return "answering"
        return "supervised" if self.supervises(layer, head) else ""

    def check_objective(self) -> None:
        """Check that a run with these settings measures the quantity that a sweep minimises (`objective`).

        Raises:
            UserError: the objective is the validation loss, and the run has none.
        """
        if self.objective == "validation_loss" and not self.has_validation_loss:
            raise UserError(
                f"objective ({self.objective}): task.prediction=none on data={self.data.kind} has no validation loss; "
                "use best_head"
            )

    def check_model(self) -> None:
        """Check that the encoder is not too large and fits the settings of task, optimizer, objective and compilation.

        Raises:
            ValueError: a setting is invalid; the message names the setting, its value and what is allowed.
        """
        weights = model_settings.about_weights(self.model)
        if weights > MOST_WEIGHTS:
            raise ValueError(
                f"model.width ({self.model.width}), model.layers ({self.model.layers}) and "
                f"model.feed_forward.expansion ({self.model.feed_forward.expansion:g}) make {weights:.2g} weights; "
                f"at most {MOST_WEIGHTS:g} fit"
            )
        projections = self.model.attention.projections
        for name in self.optimizer.frozen:
            if name not in projections:
                raise ValueError(
                    f"optimizer.frozen ({name!r}) is no projection of model.attention={self.model.attention.kind}; "
                    f"allowed: {', '.join(projections) or 'none'}"
                )
        if self.optimizer.value_curriculum.end:
            self._check_value_curriculum()
        checks.between("optimizer.frozen_layers", self.optimizer.frozen_layers, 0, self.model.layers + 1)
        prediction, heads = self.task.prediction, attention_settings.heads_of(self.model.attention)
        readers: list[tuple[str, list[int], str, list[int]]] = []  # settings of layers and heads, with their values
        if self.task.supervision.weight:
            supervision = self.task.supervision
            readers.append(("task.supervision.layers", supervision.layers, "task.supervision.heads", supervision.heads))
        if isinstance(prediction, prediction_settings.Pointer):
            readers.append(("task.prediction.layer", [prediction.layer], "task.prediction.head", [prediction.head]))
        needing = [of_layers.rpartition(".")[0] for of_layers, *_ in readers]
        if isinstance(prediction, prediction_settings.Pair) and prediction.attention:
            needing.append("task.prediction.attention=true")
        if needing and self.trainer.compile:
            raise ValueError(
                f"trainer.compile has no effect where each step reads attention rows, as {needing[0]} does: set "
                "trainer.compile=false"
            )
        if self.objective == "best_head":
            needing.append("objective=best_head")
        if needing and isinstance(self.model.attention, attention_settings.Recurrent):
            raise ValueError(
                f"{needing[0]} needs attention rows, and model.attention={self.model.attention.kind} has none"
            )
        for of_layers, named_layers, of_heads, named_heads in readers:
            for layer in named_layers:
                checks.between(of_layers, layer, -self.model.layers, self.model.layers)
            if len({layer % self.model.layers for layer in named_layers}) < len(named_layers):
                raise ValueError(
                    f"{of_layers} ({named_layers}) names one of the {self.model.layers} layers twice: a negative "
                    "number counts from the last"
                )
            for head in named_heads:
                checks.between(of_heads, head, 0, heads)

    def _check_value_curriculum(self) -> None:
        if self.model.values != "hidden" or isinstance(self.model.attention, attention_settings.Recurrent):
            raise ValueError(
                "optimizer.value_curriculum ends at attention that mixes hidden states: it needs model.values=hidden "
                f"(not {self.model.values}) and attention (not {self.model.attention.kind})"
            )
        if self.validation.keep != "last":
            raise ValueError(
                "optimizer.value_curriculum changes the encoder during training, and only the last one is what "
                f"the settings describe: set validation.keep=last (not {self.validation.keep})"
            )
        if self.trainer.compile:
            raise ValueError(
                "optimizer.value_curriculum changes a number at every step, and trainer.compile would compile the "
                "encoder again for each: set trainer.compile=false"
            )


def _check_task_fits_data(data: data_settings.Data, task: training_settings.Task) -> None:
    """Check that the data have the pronouns, candidates or labels that the task needs; raise ValueError if not."""
    head = f"task.prediction={task.prediction.kind}"
    if isinstance(data, data_settings.TextCorpus):
        if not isinstance(task.prediction, prediction_settings.NoPrediction | prediction_settings.Label):
            raise ValueError(
                f"{head} answers a question about a pronoun, and data={data.kind} has none: "
                "choose task=masked_lm or task=classification"
            )
        if task.supervision.weight:
            raise ValueError(f"task.supervision trains a pronoun's attention, and data={data.kind} has no pronouns")
        for name in ("exchanged_names", "other_names"):
            if getattr(task, name):
                raise ValueError(f"task.{name} gives candidates other names, and data={data.kind} has no candidates")
    labelled = isinstance(data, data_settings.LabelledText)
    if isinstance(task.prediction, prediction_settings.Label) and not labelled:
        raise ValueError(f"{head} needs texts with labels, for instance data=sst2, and data={data.kind} has none")
    if task.labels == "nearest" and isinstance(data, data_settings.TextCorpus):
        raise ValueError(f"task.labels=nearest needs pronouns with candidates, and data={data.kind} has none")


def same_settings(stored: Config, wanted: Config) -> bool:
    """Return whether two runs have the same settings, apart from those that change only rounding or dropout masks.

    The name, the output folder, the objective, and the settings of `trainer` that are not in `DECIDE_RESULTS` are not
    compared. If `wanted` lists no labels for classification, the labels of `stored`, which training took from the data,
    are not compared either.
    """
    head, wanted_head = stored.task.prediction, wanted.task.prediction
    takes_labels = isinstance(wanted_head, prediction_settings.Label) and not wanted_head.labels
    if takes_labels and isinstance(head, prediction_settings.Label):
        stored = replace(stored, task=replace(stored.task, prediction=replace(head, labels=[])))
    here = wanted.trainer
    if any(getattr(stored.trainer, name) != getattr(here, name) for name in training_settings.DECIDE_RESULTS):
        return False
    return replace(stored, name=None, output="", trainer=here, objective=wanted.objective) == replace(
        wanted, name=None, output=""
    )


def load_yaml(path: Path, missing: str) -> Any:
    """Return the content of a YAML file as OmegaConf containers.

    Raises:
        UserError: the file does not exist (`missing` is then the message), or is not YAML.
    """
    try:
        return OmegaConf.load(path)
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(f"{path}: {missing}") from None
    except Exception as error:  # YAML and OmegaConf raise unrelated classes
        raise UserError(f"{path}: not readable as YAML ({one_line(error)})") from None


def read_config(path: Path) -> Config:
    """Read the settings of a run from its config.yaml.

    Raises:
        UserError: the file is missing, is not YAML, or has an unknown or invalid setting.
    """
    composed = load_yaml(path, "there is no run here (config.yaml is missing)")
    if not isinstance(composed, DictConfig):
        raise UserError(f"{path}: must hold settings by name")
    try:
        # References are not resolved, so that a downloaded run cannot read anything from this machine.
        plain = OmegaConf.to_container(composed, resolve=False)
    except OmegaConfBaseException as error:
        raise UserError(f"{path}: {one_line(error)}") from None
    assert isinstance(plain, dict)
    try:
        return from_plain({str(name): value for name, value in plain.items()}, str(path))
    except UserError as error:
        raise UserError(f"{error}; restore the file, or train again if another version of Anaphora wrote it") from None


def from_plain(plain: Mapping[str, Any], place: str) -> Config:
    """Return the settings of a run from nested dictionaries and lists of strings, numbers and None.

    `place` is the file or other source of the settings, for error messages.

    Raises:
        UserError: a setting is unknown or invalid, or contains an interpolation (${...}).
    """
    try:
        _refuse_interpolations(plain)
        return construct(Config, plain, "")
    except OmegaConfBaseException as error:
        raise UserError(f"{place}: {one_line(error)}") from None
    except UserError as error:
        raise UserError(f"{place}: {error}") from None


def _refuse_interpolations(plain: Any, place: str = "") -> None:
    inner = plain.items() if isinstance(plain, Mapping) else enumerate(plain) if isinstance(plain, list) else ()
    for name, value in inner:
        _refuse_interpolations(value, f"{place}.{name}" if place else str(name))
    if isinstance(plain, str) and "${" in plain:
        raise UserError(f"{place} ({plain[:80]!r}) refers to another setting; a stored run may hold only values")


def to_plain(config: Config) -> dict[str, Any]:
    """Return settings as nested dictionaries and lists, which `from_plain` can read.

    `resume_data` is left out, since new paths of moved data must change neither the settings file nor its hash.
    """
    return {name: value for name, value in dataclasses.asdict(config).items() if name != "resume_data"}


def config_yaml(config: Config) -> str:
    """Return settings as YAML text that `read_config` can read."""
    return OmegaConf.to_yaml(OmegaConf.create(to_plain(config)))
