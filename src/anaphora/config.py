"""Every setting in one typed tree: registered for Hydra, checked before anything heavy is imported.

A slot with variants (a position encoding, a corpus, a read-out) is a dataclass with a `kind`; `VARIANTS` lists them.
Adding one is a settings dataclass and an entry here; `register` adds one from outside the package.
"""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import re
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING, DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from anaphora.analysis.settings import (
    Analysis,
    AntecedentSelection,
    Comparison,
    CrossValidation,
    Description,
    Evidence,
    Export,
    LabelTable,
    NameDecisions,
    Report,
    Transfer,
)
from anaphora.benchmark.settings import Benchmark
from anaphora.data import settings as data_settings
from anaphora.errors import UserError
from anaphora.explain.settings import Explanation
from anaphora.model import settings as model_settings
from anaphora.parts import PARTS, Part
from anaphora.replication.settings import Replication
from anaphora.studies.settings import Plan
from anaphora.training import settings as training_settings

Setting = TypeVar("Setting")


@dataclass(kw_only=True)
class Config:
    """A training run."""

    name: str | None = None  # the run's directory below `output`; by default the time and the overrides
    output: str = "outputs"
    seed: int = 0
    resume: str | None = None  # a run directory to continue
    start: str | None = None  # a run directory, a folder of pretrained weights or a hub name to fine-tune from
    data: data_settings.Data = field(default=MISSING)
    vocabulary: data_settings.Vocabulary = field(default=MISSING)
    batching: data_settings.Batching = field(default_factory=data_settings.Batching)
    model: model_settings.Model = field(default=MISSING)
    task: training_settings.Task = field(default=MISSING)
    optimizer: training_settings.Optimizer = field(default_factory=training_settings.Optimizer)
    validation: training_settings.Validation = field(default_factory=training_settings.Validation)
    trainer: training_settings.Trainer = field(default_factory=training_settings.Trainer)

    def __post_init__(self) -> None:
        _check_question(self.data, self.task)
        if self.start is None:  # else the model is that of what it starts from, known once that is read
            self.check_model()

    def check_model(self) -> None:
        """Refuse what names a part that the model has not.

        Raises:
            ValueError: naming the setting, the value and what is allowed.
        """
        there = model_settings.projections_of(self.model.attention)
        for name in self.optimizer.frozen:
            if name not in there:
                raise ValueError(
                    f"optimizer.frozen ({name!r}) is not there: model.attention={self.model.attention.kind} trains "
                    f"{', '.join(there) or 'no projection'}"
                )
        if self.optimizer.frozen_layers is not None:
            highest = self.model.layers + 1
            model_settings.between("optimizer.frozen_layers", self.optimizer.frozen_layers, 0, highest)
        readout, heads = self.task.readout, model_settings.heads_of(self.model.attention)
        asked = [(name, self.task.supervision.layers, self.task.supervision.heads) for name in ("task.supervision",)]
        if not self.task.supervision.weight:
            asked = []
        if isinstance(readout, model_settings.Pointer):
            asked.append(("task.readout", [readout.layer], [readout.head]))
        if asked and isinstance(self.model.attention, model_settings.Recurrent):
            raise ValueError(
                f"{asked[0][0]} needs attention rows, and model.attention={self.model.attention.kind} has none"
            )
        for name, layers, chosen in asked:
            for layer in layers:
                model_settings.between(f"{name} layer", layer, -self.model.layers, self.model.layers)
            for head in chosen:
                model_settings.between(f"{name} head", head, 0, heads)


def _check_question(data: data_settings.Data, task: training_settings.Task) -> None:
    """Refuse a task whose question the data do not ask."""
    asks = f"task.readout={task.readout.kind}"
    if isinstance(data, data_settings.Texts):
        if not isinstance(task.readout, model_settings.NoReadout | model_settings.Label):
            raise ValueError(
                f"{asks} answers a question about a pronoun, and data={data.kind} asks none: "
                "choose task=hidden_words or task=classification"
            )
        if task.supervision.weight:
            raise ValueError(f"task.supervision pulls at a pronoun's attention, and data={data.kind} has no pronouns")
    labelled = isinstance(data, data_settings.LabelledText)
    if isinstance(task.readout, model_settings.Label) and not labelled:
        raise ValueError(f"{asks} needs texts with labels, for instance data=sst2, and data={data.kind} has none")
    if task.shuffled_labels and isinstance(data, data_settings.Texts) and not labelled:
        raise ValueError(f"task.shuffled_labels needs labels, and data={data.kind} has none")


VARIANTS: dict[type[Any], dict[str, type[Any]]] = {
    data_settings.Data: {
        "controlled": data_settings.Controlled,
        "jsonl": data_settings.Table,
        "dpr": data_settings.Dpr,
        "gap": data_settings.Gap,
        "wsc273": data_settings.Wsc273,
        "pdp60": data_settings.Pdp60,
        "winogrande": data_settings.Winogrande,
        "winobias": data_settings.Winobias,
        "winogender": data_settings.Winogender,
        "knowref": data_settings.Knowref,
        "xwino": data_settings.Xwino,
        "cluewsc": data_settings.Cluewsc,
        "mandarinograd": data_settings.Mandarinograd,
        "litbank": data_settings.LitBank,
        "ontogum": data_settings.OntoGum,
        "plain_text": data_settings.PlainText,
        "silver": data_settings.Silver,
        "labelled_text": data_settings.LabelledText,
        "sst2": data_settings.Sst2,
        "rotten_tomatoes": data_settings.RottenTomatoes,
        "ag_news": data_settings.AgNews,
        "chnsenticorp": data_settings.ChnSentiCorp,
    },
    data_settings.Vocabulary: {
        "word": data_settings.WordVocabulary,
        "character": data_settings.CharacterVocabulary,
        "wordpiece": data_settings.WordPiece,
        "bpe": data_settings.Bpe,
    },
    model_settings.Position: {
        "none": model_settings.NoPosition,
        "sinusoidal": model_settings.Sinusoidal,
        "learned": model_settings.Learned,
        "rotary": model_settings.Rotary,
        "alibi": model_settings.Alibi,
        "t5_relative": model_settings.T5Relative,
    },
    model_settings.Attention: {
        "multi_head": model_settings.MultiHead,
        "single_head": model_settings.SingleHead,
        "shared_query_key": model_settings.SharedQueryKey,
        "uniform": model_settings.Uniform,
        "parameter_free": model_settings.ParameterFree,
        "gru": model_settings.Gru,
        "lstm": model_settings.Lstm,
    },
    model_settings.FeedForward: {
        "relu": model_settings.Relu,
        "gelu": model_settings.Gelu,
        "swiglu": model_settings.SwiGlu,
    },
    model_settings.Norm: {"layer_norm": model_settings.LayerNorm, "rms_norm": model_settings.RmsNorm},
    model_settings.Initialisation: {"normal": model_settings.Normal, "xavier": model_settings.Xavier},
    model_settings.Readout: {
        "word": model_settings.Word,
        "slot": model_settings.Slot,
        "pointer": model_settings.Pointer,
        "bilinear": model_settings.Bilinear,
        "pair": model_settings.Pair,
        "no_readout": model_settings.NoReadout,
        "label": model_settings.Label,
    },
}

GROUPS: dict[str, type[Any]] = {
    "data": data_settings.Data,
    "vocabulary": data_settings.Vocabulary,
    "model/position": model_settings.Position,
    "model/attention": model_settings.Attention,
    "model/feed_forward": model_settings.FeedForward,
    "model/norm": model_settings.Norm,
    "model/initialisation": model_settings.Initialisation,
    "task/readout": model_settings.Readout,
}

BUILT_FROM: dict[str, tuple[str, ...]] = {
    "data": ("settings",),
    "vocabulary": ("settings", "texts", "words"),
    "model/position": ("settings", "width", "heads"),
    "model/attention": ("settings", "width", "position"),
    "model/feed_forward": ("settings", "width"),
    "model/norm": ("settings", "width"),
    "model/initialisation": ("settings", "weight"),
    "task/readout": ("settings", "model", "output"),
}
"""What the function that builds a part of a group is called with."""


def register_configs() -> None:
    """Tell Hydra every group and option; scripts call it before `hydra.main` composes."""
    store = ConfigStore.instance()
    store.store(name="run_schema", node=Config)
    store.store(name="analysis_schema", node=Analysis)
    store.store(name="antecedents_schema", node=AntecedentSelection)
    store.store(name="comparison_schema", node=Comparison)
    store.store(name="cross_validation_schema", node=CrossValidation)
    store.store(name="description_schema", node=Description)
    store.store(name="evidence_schema", node=Evidence)
    store.store(name="export_schema", node=Export)
    store.store(name="label_table_schema", node=LabelTable)
    store.store(name="name_decisions_schema", node=NameDecisions)
    store.store(name="explanation_schema", node=Explanation)
    store.store(name="report_schema", node=Report)
    store.store(name="benchmark_schema", node=Benchmark)
    store.store(name="replication_schema", node=Replication)
    store.store(name="study_schema", node=Plan)
    store.store(name="transfer_schema", node=Transfer)
    for group, base in GROUPS.items():
        for name, variant in VARIANTS[base].items():
            store.store(group=group, name=name, node=variant)


def resolve(composed: DictConfig, as_a: type[Setting]) -> Setting:
    """A composed configuration as typed, checked settings.

    Raises:
        UserError: an unknown, missing or impossible setting, named by its path.
    """
    try:
        plain = OmegaConf.to_container(composed, resolve=True)
    except OmegaConfBaseException as error:
        raise UserError(one_line(error)) from None
    assert isinstance(plain, dict)
    return construct(as_a, plain, "")


def read(path: Path) -> Config:
    """The settings of a stored run.

    Raises:
        UserError: the file is missing, is no YAML or holds an unknown or impossible setting.
    """
    try:
        composed = OmegaConf.load(path)
    except FileNotFoundError:
        raise UserError(f"{path}: there is no run here (config.yaml is missing)") from None
    except Exception as error:  # YAML and OmegaConf raise unrelated classes
        raise UserError(f"{path}: not readable as YAML ({one_line(error)})") from None
    try:
        if not isinstance(composed, DictConfig):
            raise UserError("must hold settings by name")
        return resolve(composed, Config)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def dumps(config: Config) -> str:
    """Settings as YAML text that `read` reads again."""
    return OmegaConf.to_yaml(OmegaConf.create(dataclasses.asdict(config)))


def construct(settings: type[Setting], plain: Mapping[Any, Any], path: str) -> Setting:
    """Settings of one dataclass from plain values; variants are chosen by their `kind`.

    Raises:
        UserError: naming the path, the value and what is allowed.
    """
    chosen: type[Any] = settings
    if settings in VARIANTS:
        options = VARIANTS[settings]
        kinds = {variant.kind: variant for variant in options.values()}
        kind = plain.get("kind", "???")
        if not isinstance(kind, str) or kind not in kinds:
            slot = next(group for group, base in GROUPS.items() if base is settings)
            own = f"; if it is a part of your own in {slot}, import the module that registers it first"
            hint = "" if kind == MISSING else own
            raise UserError(f"{path}.kind ({kind!r}) must be one of {', '.join(kinds)}{hint}")
        chosen = kinds[kind]
    hints = typing.get_type_hints(chosen)
    names = [one.name for one in dataclasses.fields(chosen)]
    values: dict[str, Any] = {}
    for name, value in plain.items():
        here = f"{path}.{name}" if path else str(name)
        if name not in names:
            close = difflib.get_close_matches(str(name), names, n=1)
            meant = f"; did you mean {close[0]}?" if close else ""
            raise UserError(f"unknown setting {here}{meant} (allowed: {', '.join(names)})")
        if value == MISSING:
            raise UserError(f"{here} is missing; give it a value, for instance {here}=...")
        values[name] = _value(hints[name], value, here)
    required = [one.name for one in dataclasses.fields(chosen) if _is_required(one) and one.name not in values]
    if required:
        raise UserError(f"{path + '.' if path else ''}{required[0]} is missing")
    try:
        made: Setting = chosen(**values)
        return made
    except ValueError as error:
        raise UserError(str(error)) from None


def _value(hint: Any, value: Any, path: str) -> Any:
    options = [one for one in typing.get_args(hint) if one is not type(None)]
    optional = type(None) in typing.get_args(hint)
    if value is None and (optional or hint is type(None)):
        return None
    if optional:
        hint = options[0]
    inner = typing.get_args(hint)
    if typing.get_origin(hint) is list and dataclasses.is_dataclass(inner[0]):
        if not isinstance(value, list):
            raise UserError(f"{path} ({value!r}) must be a list")
        return [_value(inner[0], one, f"{path}[{place}]") for place, one in enumerate(value)]
    if dataclasses.is_dataclass(hint):
        if not isinstance(value, Mapping):
            raise UserError(f"{path} ({value!r}) must be a group of settings")
        return construct(typing.cast(type[Any], hint), value, path)
    try:
        checked = OmegaConf.merge(
            OmegaConf.structured(dataclasses.make_dataclass("One", [("value", hint)])), {"value": value}
        )
        plain = OmegaConf.to_container(checked)
        assert isinstance(plain, dict)
        return plain["value"]
    except OmegaConfBaseException:
        raise UserError(f"{path} ({value!r}) must be of type {_type_name(hint)}") from None


def _is_required(one: dataclasses.Field[Any]) -> bool:
    unset = one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING
    return unset or one.default == MISSING


def _type_name(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint)


def one_line(error: BaseException) -> str:
    """The first sentence of an error that may span many lines."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    key = next((line.partition(":")[2].strip() for line in lines if line.startswith("full_key:")), "")
    first = lines[0] if lines else type(error).__name__
    if first.endswith(":") and len(lines) > 1:  # Hydra names the file there, and what is wrong with it below
        first = f"{first.partition(':')[0]}: {lines[1]}"
    return f"{key}: {first}" if key and key not in first else first


def register(slot: str, name: str, settings: type[Any], build: Callable[..., Any]) -> None:
    """Add a part from outside the package: from then on `slot=name` chooses it, and runs that have it can be loaded.

    What is registered lasts as long as the process. The same class of the same module may be registered again, as a
    notebook does; the new one counts.

    Args:
        slot: a group of settings, such as "model/position" (`GROUPS`).
        name: what chooses the part: small letters, digits, underscores.
        settings: a dataclass below the slot's own, with `kind: str = name`.
        build: called with `BUILT_FROM[slot]`, the settings first; returns what the package's own builder of that slot
            returns.

    Raises:
        UserError: the slot does not exist, the name is taken, or settings or build do not fit.
    """
    if slot not in GROUPS:
        raise UserError(f"slot ({slot!r}) must be one of {', '.join(GROUPS)}")
    option, base, options = f"{slot}={name}", GROUPS[slot], VARIANTS[GROUPS[slot]]
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise UserError(f"{option}: name ({name!r}) must be small letters, digits and underscores, a letter first")
    known = options.get(name)
    if known is not None and not (known in PARTS and _origin(known) == _origin(settings)):
        raise UserError(f"{option} exists already; choose another name")
    if not (isinstance(settings, type) and issubclass(settings, base) and "__dataclass_fields__" in vars(settings)):
        raise UserError(
            f"{option}: settings ({getattr(settings, '__name__', settings)}) must be a class below "
            f"{base.__module__}.{base.__name__} with @dataclass(kw_only=True) above it"
        )
    if settings.kind != name:
        raise UserError(f'{option}: settings ({settings.__name__}) must have kind: str = "{name}"')
    try:
        OmegaConf.structured(settings)
    except (OmegaConfBaseException, NameError) as error:
        raise UserError(f"{option}: settings ({settings.__name__}) cannot be used: {one_line(error)}") from None
    wanted = BUILT_FROM[slot]
    try:
        inspect.signature(build).bind(*wanted)
    except (TypeError, ValueError):
        raise UserError(f"{option}: build must be a function of {', '.join(wanted)}") from None
    options[name] = settings
    PARTS[settings] = Part(option, build)


def _origin(settings: type[Any]) -> tuple[str, str]:
    return settings.__module__, settings.__qualname__


def paths(plain: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Every leaf of nested settings with its dotted path."""
    for name, value in plain.items():
        here = f"{before}.{name}" if before else name
        if isinstance(value, Mapping):
            yield from paths(value, here)
        else:
            yield here, value
