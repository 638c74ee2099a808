"""Tests of components that a user registers from outside the package."""

from __future__ import annotations

import dataclasses
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import anaphora
from anaphora import cli
from anaphora.base import checks
from anaphora.base.errors import UserError
from anaphora.data import store
from anaphora.data.corpora.division import ReadingReport
from anaphora.data.example import Example
from anaphora.model import attention, layers, position
from anaphora.model import prediction as prediction
from anaphora.model.pronoun_model import PronounModel
from anaphora.settings import data as data_settings
from anaphora.settings import vocabulary as vocabulary_settings
from anaphora.settings.model import attention as attention_settings
from anaphora.settings.model import encoder as model_settings
from anaphora.settings.model import position as position_settings
from anaphora.settings.model import prediction as prediction_settings
from anaphora.settings.registered import REGISTERED
from anaphora.settings.run import Config, config_yaml, read_config
from anaphora.settings.typed import resolve
from anaphora.settings.variants import SLOTS, VARIANTS, register

pytestmark = pytest.mark.usefixtures("own_parts")
ROOT = Path(__file__).parents[2]


@dataclass(kw_only=True)
class Decay(position_settings.Position):
    kind: str = "decay"
    start: float = 0.5

    def __post_init__(self) -> None:
        checks.at_least("model.position.start", self.start, 0)


class TrainedDecay(position.Position):
    def __init__(self, heads: int, start: float) -> None:
        super().__init__()
        self.rate = nn.Parameter(torch.full((heads,), start))

    def bias(self, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        distance = (query_positions.unsqueeze(-1) - key_positions.unsqueeze(-2)).abs().unsqueeze(1)
        return -self.rate.view(1, -1, 1, 1) * distance


def decay(chosen: Decay, width: int, heads: int) -> TrainedDecay:
    return TrainedDecay(heads, chosen.start)


def kind_of(base: type[Any], name: str) -> type[Any]:
    """Return the settings class of a component without settings."""
    return dataclasses.make_dataclass("Own", [("kind", str, name)], bases=(base,), kw_only=True)


def test_an_own_part_is_composed_checked_stored_and_read(compose: Callable[..., Any], tmp_path: Path) -> None:
    register(slot="model/position", name="decay", settings=Decay, build=decay)
    config = resolve(compose("model/position=decay", "model.position.start=3"), Config)
    assert config.model.position == Decay(start=3.0)
    (tmp_path / "config.yaml").write_text(config_yaml(config))
    assert read_config(tmp_path / "config.yaml") == config
    with pytest.raises(UserError, match=r"model.position.start \(-1.0\) must be at least 0"):
        resolve(compose("model/position=decay", "model.position.start=-1"), Config)


def test_an_own_position_trains_and_is_loaded_again(tiny: Callable[..., Any], tmp_path: Path) -> None:
    from anaphora.training.run import train

    register("model/position", "decay", Decay, decay)
    run = anaphora.load(train(tiny(tmp_path, "model/position=decay", "model.position.start=0.25")))
    rates = run.run.model.encoder.position.rate
    assert isinstance(rates, nn.Parameter)
    assert bool((rates != 0.25).any())
    row = run.attention("Anna met Tom before she went.").row("she", layer=0, head=0)
    assert sum(row.weights) == pytest.approx(1, abs=1e-5)


def test_a_run_whose_own_part_is_not_registered_says_what_to_import(
    compose: Callable[..., Any], tmp_path: Path
) -> None:
    register("model/position", "decay", Decay, decay)
    (tmp_path / "config.yaml").write_text(config_yaml(resolve(compose("model/position=decay"), Config)))
    del VARIANTS[position_settings.Position]["decay"]
    message = (
        r"kind \('decay'\) must be one of none, .*; if it is a part of your own in model/position, import the module"
    )
    with pytest.raises(UserError, match=message):
        anaphora.load(tmp_path)


def shape(**changes: Any) -> model_settings.Model:
    parts: dict[str, Any] = {
        "position": position_settings.Rotary(),
        "attention": attention_settings.MultiHead(heads=2),
        "feed_forward": model_settings.Gelu(),
        "norm": model_settings.LayerNorm(),
        "initialisation": model_settings.Normal(),
    }
    return model_settings.Model(width=8, layers=1, **(parts | changes))


class Doubled(attention.Attention): ...


class Plain(layers.FeedForward): ...


class Scaled(nn.LayerNorm): ...


class Longest(prediction.PredictionHead): ...


def ones(chosen: object, weight: Tensor) -> None:
    nn.init.ones_(weight)


MODEL_PARTS: dict[str, tuple[type[Any], Callable[..., Any], Callable[[PronounModel], bool]]] = {
    "model/position": (
        position_settings.Position,
        lambda chosen, width, heads: TrainedDecay(heads, 1.0),
        lambda made: isinstance(made.encoder.position, TrainedDecay),
    ),
    "model/attention": (
        attention_settings.MultiHead,
        lambda chosen, width: Doubled(width, chosen.heads),
        lambda made: isinstance(made.encoder.blocks[0].attention, Doubled),
    ),
    "model/feed_forward": (
        model_settings.FeedForward,
        lambda chosen, width: Plain(width, 3, nn.Tanh()),
        lambda made: isinstance(made.encoder.blocks[0].feed_forward, Plain),
    ),
    "model/norm": (
        model_settings.Norm,
        lambda chosen, width: Scaled(width),
        lambda made: isinstance(made.encoder.norm, Scaled),
    ),
    "model/initialisation": (
        model_settings.Initialisation,
        ones,
        lambda made: bool((made.encoder.tokens.weight == 1).all()),
    ),
    "task/prediction": (
        prediction_settings.Prediction,
        lambda chosen, model, output: Longest(),
        lambda made: isinstance(made.prediction_head, Longest),
    ),
}


@pytest.mark.parametrize("slot", MODEL_PARTS)
def test_the_model_has_the_own_part_of_every_slot(slot: str) -> None:
    base, build, holds = MODEL_PARTS[slot]
    own = kind_of(base, "own")
    register(slot, "own", own, build)
    room, _, name = slot.partition("/")
    model = shape(**{name: own()}) if room == "model" else shape()
    answer = own() if slot == "task/prediction" else prediction_settings.Word()
    assert holds(PronounModel(model, answer, 20))


def test_settings_below_a_built_in_variant_are_built_by_their_own_function() -> None:
    own = kind_of(position_settings.Rotary, "own")
    register("model/position", "own", own, lambda chosen, width, heads: TrainedDecay(heads, 1.0))
    assert isinstance(own().build(8, 2), TrainedDecay)
    assert isinstance(position_settings.Rotary().build(8, 2), position.Rotary)


def test_an_own_vocabulary_cuts_the_text() -> None:
    known = vocabulary_settings.CharacterVocabulary(min_count=1).build(["she left"])
    own = kind_of(vocabulary_settings.Vocabulary, "own")
    register("vocabulary", "own", own, lambda chosen, texts, words: known)
    assert own().build(["anything"]) is known


def examples(text: str) -> dict[str, list[Example]]:
    one = Example(text=text, language="en", pronoun=(0, 3), candidates=(((4, 8),),), antecedents=(0,))
    return {"train": [one], "dev": [one], "test": [one, one]}


def test_an_own_corpus_is_read_and_made_anew_when_its_reader_changes(tmp_path: Path) -> None:
    source = "TEXT = {!r}\n\n\ndef build(chosen):\n    return examples(TEXT), ReadingReport(rows=4)\n"
    own, file = kind_of(data_settings.Data, "own"), tmp_path / "reader.py"

    def read_with(text: str) -> str:
        file.write_text(source.format(text))
        namespace: dict[str, Any] = {"examples": examples, "ReadingReport": ReadingReport, "__name__": "reader"}
        exec(compile(file.read_text(), str(file), "exec"), namespace)
        register("data", "own", own, namespace["build"])
        corpus = store.load(own())
        assert [len(corpus.examples(split)) for split in ("train", "dev", "test")] == [1, 1, 2]
        return corpus.examples("train")[0].text

    assert read_with("she, Anna") == "she, Anna"
    assert read_with("she saw Anna") == "she saw Anna"


@pytest.mark.parametrize(
    ("slot", "kind"), [(slot, kind) for slot, one in SLOTS.items() for kind in VARIANTS[one.settings].values()]
)
def test_every_variant_builds_itself_from_the_arguments_of_its_slot(slot: str, kind: type[Any]) -> None:
    assert ("settings", *list(inspect.signature(kind.build).parameters)[1:]) == SLOTS[slot].arguments
    assert slot == "data" or kind.build is not SLOTS[slot].settings.build


def test_a_settings_class_with_a_build_of_its_own_needs_no_function() -> None:
    @dataclass(kw_only=True)
    class Steep(position_settings.Position):
        kind: str = "steep"

        def build(self, width: int, heads: int) -> TrainedDecay:
            return TrainedDecay(heads, 9.0)

    register("model/position", "steep", Steep)
    register("model/position", "steep", Steep)
    built = Steep().build(8, 2)
    assert isinstance(built, TrainedDecay) and built.rate.tolist() == [9.0, 9.0]


class Undecorated(position_settings.Position):
    kind: str = "decay"


@dataclass(kw_only=True)
class Odd(position_settings.Position):
    kind: str = "decay"
    what: complex = 1j


@dataclass(kw_only=True)
class Bare(position_settings.Position):
    kind: str = "decay"


GOOD: dict[str, Any] = {"slot": "model/position", "name": "decay", "settings": Decay, "build": decay}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"slot": "model/magic"}, "slot ('model/magic') must be one of data, vocabulary, model/position"),
        ({"name": "rotary"}, "model/position=rotary exists already"),
        ({"name": "My Decay"}, "name ('My Decay') must be lower-case letters, digits and underscores"),
        ({"name": "other"}, 'model/position=other: settings (Decay) must have kind: str = "other"'),
        (
            {"settings": Undecorated},
            "settings (Undecorated) must be a subclass of anaphora.settings.model.position.Position with @d",
        ),
        ({"slot": "model/norm"}, "settings (Decay) must be a subclass of anaphora.settings.model.encoder.Norm"),
        ({"settings": Decay()}, "must be a subclass of"),
        ({"settings": Odd}, "settings (Odd) cannot be used"),
        ({"build": TrainedDecay}, "build must be a function of settings, width, heads"),
        ({"settings": Bare, "build": None}, "build must be a function of settings, width, heads"),
    ],
)
def test_a_wrong_registration_is_reported_and_registers_nothing(changes: dict[str, Any], message: str) -> None:
    before = dict(REGISTERED)
    with pytest.raises(UserError, match=re.escape(message)):
        register(**{**GOOD, **changes})
    assert before == REGISTERED


def test_a_name_is_taken_by_the_first_but_its_own_class_may_come_again() -> None:
    register(**GOOD)
    register(**GOOD)  # as a notebook's cell that is run twice
    other = kind_of(position_settings.Position, "decay")
    with pytest.raises(UserError, match="model/position=decay exists already; choose another name"):
        register("model/position", "decay", other, decay)


@pytest.mark.parametrize(
    ("slot", "base", "built", "message"),
    [
        (
            "model/position",
            position_settings.Position,
            nn.Identity(),
            "must return anaphora.model.position.Position, but returned",
        ),
        ("model/feed_forward", model_settings.FeedForward, nn.Identity(), "Identity needs a method inside"),
        ("model/initialisation", model_settings.Initialisation, 3, "build must return nothing, but returned int"),
        (
            "model/norm",
            model_settings.Norm,
            None,
            "build must return torch.nn.modules.module.Module, but returned nothing",
        ),
    ],
)
def test_a_build_that_returns_something_else_is_reported(
    slot: str, base: type[Any], built: object, message: str
) -> None:
    own = kind_of(base, "own")
    register(slot, "own", own, lambda *_: built)
    with pytest.raises(UserError, match=message):
        PronounModel(shape(**{slot.partition("/")[2]: own()}), prediction_settings.Word(), 20)


@pytest.mark.parametrize(
    ("built", "message"),
    [
        (None, "data=own: build must return tuple, but returned nothing"),
        (({"train": []}, ReadingReport(rows=0)), r"items by split \(train, dev, test\), and a ReadingReport"),
        (
            ({"train": ["she"], "dev": [], "test": []}, ReadingReport(rows=1)),
            "item 0 of its train split must be a anaphora.data.example.Example, not a str",
        ),
    ],
)
def test_a_reader_that_returns_something_else_is_reported(built: object, message: str) -> None:
    own = kind_of(data_settings.Data, "own")
    register("data", "own", own, lambda chosen: built)
    with pytest.raises(UserError, match=message):
        store.load(own())


def test_the_command_line_works_outside_the_repository_and_knows_its_commands(tmp_path: Path) -> None:
    def ran(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        call = [sys.executable, "-m", "anaphora", *arguments]
        return subprocess.run(call, capture_output=True, text=True, env=environment, cwd=tmp_path)

    process = ran("train", "--cfg", "job", "experiment=token_values", "model/position=alibi")
    assert (process.returncode, process.stderr) == (0, "")
    assert "kind: alibi" in process.stdout and "values: token" in process.stdout


@pytest.mark.parametrize(("arguments", "message"), [((), "a command is missing"), (("trian",), "no command 'trian'")])
def test_an_unknown_command_is_reported_with_all_there_are(
    arguments: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["mine.py", *arguments])
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert left.value.code == 2
    err = capsys.readouterr().err
    assert message in err and ", score, " in err and err.count("\n") == 1


def test_the_wheel_carries_what_the_command_line_needs() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    carried = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert carried == {"configs": "anaphora/configs"}
