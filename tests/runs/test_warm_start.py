from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from published import write_folder

from anaphora.analysis.evidence.controls import control_config
from anaphora.base.errors import UserError
from anaphora.data.batches.batching import TrainingBatches
from anaphora.data.batches.encoded import EncodedSplit
from anaphora.data.example import Example
from anaphora.data.names import with_other_names
from anaphora.runs.directory import RunFiles, load, training_record
from anaphora.runs.warm_start import default_model, holds_run, with_start_model
from anaphora.settings.run import Config, config_yaml, read_config
from anaphora.training.optimizer import build_optimizer, layer_learning_rate_factors
from anaphora.training.run import freeze, train

SMALL = (
    "trainer=smoke",
    "trainer.limit_steps=null",
    "batching.tokens=128",
    "batching.row_tokens=64",
    "validation.every=2",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("published") / "bert", "bert")


@pytest.fixture
def begun(settings: Callable[..., Config], table: Path) -> Callable[..., Config]:
    """Return a function (output, start, overrides) that returns the settings of a short run with a start model."""

    def started(output: Path, start: object, *overrides: str) -> Config:
        places = (f"output={output}", "name=run", "data=jsonl", f"data.path={table}", f"start={start}")
        return settings(*places, *SMALL, "optimizer.steps=4", "optimizer.learning_rate=0.001", *overrides)

    return started


def test_the_untouched_model_is_the_one_that_is_composed(settings: Callable[..., Config]) -> None:
    assert settings().model == default_model()


def test_a_run_starts_from_pretrained_weights_and_stores_their_settings(
    begun: Callable[..., Config], folder: Path, tmp_path: Path
) -> None:
    config = with_start_model(
        begun(tmp_path, folder, "model.dropout=0.1", "optimizer.frozen_layers=2", "task/prediction=bilinear")
    )
    trained = load(train(config))
    source = load(folder)
    stored = trained.config.model
    assert (stored.width, stored.layers, stored.position.kind, stored.dropout) == (16, 2, "learned", 0.1)
    assert trained.tokenizer.dumps() == source.tokenizer.dumps()
    for name, value in source.model.encoder.state_dict().items():  # both blocks are frozen, so nothing moved
        assert torch.equal(trained.model.encoder.state_dict()[name], value), name


def test_a_run_starts_from_a_run_with_its_prediction_head(
    begun: Callable[..., Config], finished: Path, tmp_path: Path
) -> None:
    config = with_start_model(begun(tmp_path, finished, "optimizer.learning_rate=1e-12"))
    again, before = load(train(config)), load(finished)
    for name, value in before.model.state_dict().items():
        torch.testing.assert_close(again.model.state_dict()[name], value, atol=1e-6, rtol=0)


@pytest.mark.usefixtures("checkpoints_stay")
def test_a_killed_run_that_started_from_weights_resumes_to_the_same_end(
    begun: Callable[..., Config], folder: Path, tmp_path: Path
) -> None:
    whole = train(with_start_model(begun(tmp_path / "whole", folder, "model.dropout=0.1")))
    config = with_start_model(begun(tmp_path / "cut", folder, "model.dropout=0.1"))
    killed = train(replace(config, trainer=replace(config.trainer, limit_steps=2)))
    RunFiles(killed).weights.unlink()
    stored = RunFiles(killed).config  # as that of a run that was killed at its second step
    stored.write_text(
        stored.read_text(encoding="utf-8").replace("limit_steps: 2", "limit_steps: null"), encoding="utf-8"
    )
    resumed = train(replace(begun(tmp_path, "nowhere"), resume=str(killed)))
    for name, value in load(whole).model.state_dict().items():
        assert torch.equal(load(resumed).model.state_dict()[name], value), name


def test_a_run_killed_before_its_first_validation_starts_again_from_the_weights(
    begun: Callable[..., Config], folder: Path, tmp_path: Path
) -> None:
    whole = train(with_start_model(begun(tmp_path / "whole", folder)))
    killed = train(with_start_model(begun(tmp_path / "cut", folder)))
    RunFiles(killed).weights.unlink()
    assert not RunFiles(killed).last_checkpoint.exists()
    resumed = train(replace(begun(tmp_path, "nowhere"), resume=str(killed)))
    for name, value in load(whole).model.state_dict().items():
        assert torch.equal(load(resumed).model.state_dict()[name], value), name


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("model.width=64", r"model.width \(64\) cannot be set together with start="),
        ("model/position=alibi", r"model.position \(alibi\) cannot be set"),
        ("model.attention.heads=4", r"model.attention.heads \(4\) cannot be set"),
        ("vocabulary.min_count=3", r"vocabulary.min_count \(3\) cannot be set"),
        ("optimizer.frozen_layers=3", r"optimizer.frozen_layers \(3\) must be at least 0 and below 3"),
        ("task.supervision={weight: 1, layers: [2], heads: [0]}", "task.supervision.layers"),
    ],
)
def test_what_the_start_brings_itself_cannot_be_set(
    begun: Callable[..., Config], folder: Path, tmp_path: Path, override: str, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        with_start_model(begun(tmp_path, folder, override))


@pytest.mark.parametrize(
    ("attention", "dropout", "dropped"),
    [
        ("uniform", "dropout", "attention weights"),
        ("gru", "dropout", "attention weights"),
        ("single_head", "head_dropout", "heads"),
    ],
)
def test_a_dropout_that_the_attention_of_the_start_lacks_is_reported(
    begun: Callable[..., Config],
    settings: Callable[..., Config],
    tmp_path: Path,
    attention: str,
    dropout: str,
    dropped: str,
) -> None:
    start = tmp_path / "start"
    start.mkdir()
    (start / "config.yaml").write_text(config_yaml(settings(f"model/attention={attention}")), encoding="utf-8")
    with_start_model(begun(tmp_path, start, "model.dropout=0.1"))
    with pytest.raises(UserError, match=rf"model.attention.{dropout} \(0.2\) has no effect: .* drops no {dropped}$"):
        with_start_model(begun(tmp_path, start, f"model.attention.{dropout}=0.2"))


def test_layers_are_counted_in_the_encoder_that_the_start_brings(
    begun: Callable[..., Config], folder: Path, tmp_path: Path
) -> None:
    config = with_start_model(begun(tmp_path, folder, "task.supervision={weight: 1, layers: [1], heads: [1]}"))
    assert config.model.layers == 2


def test_a_wrong_start_is_reported_before_torch_is_imported(tmp_path: Path, script: Callable[..., Any]) -> None:
    (tmp_path / "empty").mkdir()
    status, _, err = script("train", f"start={tmp_path / 'empty'}")
    assert status == 2
    assert "neither config.yaml of a run nor config.json of pretrained weights is there" in err


def test_without_a_network_the_files_to_provide_are_reported(
    begun: Callable[..., Config], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub

    def unreachable(*arguments: object, **named: object) -> str:
        raise OSError("no network")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", unreachable)
    with pytest.raises(UserError, match=r"put config.json, model.safetensors and tokenizer.json or vocab.txt"):
        with_start_model(begun(tmp_path, "hf://someone/some-model"))


def test_a_hub_name_is_fetched_without_pickles(
    begun: Callable[..., Config], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub

    request: dict[str, Any] = {}

    def fetched(name: str, **named: Any) -> str:
        request.update(named, name=name)
        return str(folder)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetched)
    assert with_start_model(begun(tmp_path, "hf://someone/some-model")).model.width == 16
    assert request["name"] == "someone/some-model"
    assert not any(pattern.endswith(".bin") for pattern in request["allow_patterns"])
    assert {"metrics.json", "training.json", "calibration.json"} <= set(request["allow_patterns"])


def test_a_bare_name_that_is_no_folder_is_never_looked_up(
    begun: Callable[..., Config], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub

    def refused(*_: object, **__: object) -> str:
        raise AssertionError("looked up")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", refused)
    with pytest.raises(UserError, match=r"start \(outputs/demoo\): there is no such folder; .* hf://owner/name"):
        with_start_model(begun(tmp_path, "outputs/demoo"))


def test_models_of_the_hub_are_runs_whose_results_stay_here(
    folder: Path, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub

    for source, layers in ((folder, 2), (finished, load(finished).config.model.layers)):
        monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *_, source=source, **__: str(source))
        run = load("hf://someone/some-model")
        assert run.directory == Path("outputs/someone--some-model")
        assert run.config.model.layers == layers


def test_a_stored_run_is_read_without_what_it_started_from(
    begun: Callable[..., Config], finished: Path, tmp_path: Path
) -> None:
    directory = train(with_start_model(begun(tmp_path, finished)))
    stored = read_config(RunFiles(directory).config)
    assert stored.start == str(finished)
    assert stored.model == read_config(RunFiles(finished).config).model


@pytest.mark.parametrize("control", ["uniform", "no_positions", "frozen_query_key"])
def test_a_control_of_a_run_takes_over_what_it_still_has(
    begun: Callable[..., Config], folder: Path, tmp_path: Path, control: str
) -> None:
    config = control_config(with_start_model(begun(tmp_path, folder, "optimizer.learning_rate=1e-12")), control)
    trained, source = (load(each).model.encoder.state_dict() for each in (train(config), folder))
    assert 0 < len(trained) <= len(source)
    for name, value in trained.items():
        torch.testing.assert_close(value, source[name], atol=1e-6, rtol=0)


def test_frozen_layers_are_the_embedding_and_the_first_blocks(folder: Path) -> None:
    model = load(folder).model
    freeze(model, [], 1)
    still = {name for name, weight in model.named_parameters() if not weight.requires_grad}
    assert {name.split(".")[1] for name in still} == {"tokens", "position", "embedding_norm", "blocks"}
    assert {name.split(".")[2] for name in still if ".blocks." in name} == {"0"}


@pytest.mark.parametrize("matrices", ["adamw", "muon"])
def test_each_layer_learns_at_a_share_of_the_rate_above_it(
    folder: Path, settings: Callable[..., Config], matrices: str
) -> None:
    model = load(folder).model
    chosen = settings("optimizer.layer_decay=0.5", f"optimizer.matrices={matrices}", "optimizer.learning_rate=0.1")
    rates = {
        weight: group["lr"]
        for group in build_optimizer(model, chosen.optimizer).param_groups
        for weight in group["params"]
    }
    for name, weight in model.named_parameters():
        below = (
            0
            if name.startswith(("output", "prediction"))
            else 1
            if ".blocks.1." in name
            else 2
            if "blocks" in name
            else 3
        )
        assert rates[weight] == pytest.approx(0.1 * 0.5**below), name
    assert set(layer_learning_rate_factors(model, 1.0).values()) == {1.0}


def test_the_last_weights_are_kept_where_that_is_asked(
    begun: Callable[..., Config], finished: Path, tmp_path: Path
) -> None:
    wild = ("optimizer.learning_rate=3", "optimizer.decay=constant")
    for keep in ("best", "last"):
        directory = train(with_start_model(begun(tmp_path / keep, finished, f"validation.keep={keep}", *wild)))
        record = training_record(directory)
        losses = [one["validation/loss"] for one in record["validations"]]
        assert record["best_validation"] == (losses.index(min(losses)) if keep == "best" else len(losses) - 1)


def test_copies_under_other_names_join_the_training_items_alone(
    begun: Callable[..., Config], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches: list[list[Example]] = []

    def noted(data: EncodedSplit, *others: Any, **named: Any) -> TrainingBatches:
        batches.append(list(data.examples))
        return TrainingBatches(data, *others, **named)

    monkeypatch.setattr("anaphora.training.items.TrainingBatches", noted)
    for copies in (0, 2):
        train(with_start_model(begun(tmp_path / str(copies), folder, f"task.other_names={copies}")))
    plain, more = batches
    assert more == [*plain, *with_other_names(plain, 2, seed=0)]


def test_exchanged_names_double_the_training_items(
    begun: Callable[..., Config], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts: list[list[str]] = []

    def noted(data: EncodedSplit, *others: Any, **named: Any) -> TrainingBatches:
        texts.append([example.text for example in data.examples])
        return TrainingBatches(data, *others, **named)

    monkeypatch.setattr("anaphora.training.items.TrainingBatches", noted)
    for exchange in ("false", "true"):
        train(with_start_model(begun(tmp_path / exchange, folder, f"task.exchanged_names={exchange}")))
    plain, doubled = texts
    assert doubled[: len(plain)] == plain
    assert len(doubled) == 2 * len(plain)
    assert plain[0].startswith("Anna met Tom")
    assert doubled[len(plain)].startswith("Tom met Anna")


def test_a_name_on_the_hub_holds_a_run_if_a_file_of_its_settings_is_there(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.yaml").write_text("model: {}\n")
    for model, holds in ((tmp_path, True), (folder, False), (tmp_path / "missing", False)):

        def download(name: str, file: str, model: Path = model, **_: object) -> str:
            if name != "owner/name" or not (model / file).exists():
                raise OSError(file)
            return str(model / file)

        monkeypatch.setattr("huggingface_hub.hf_hub_download", download)
        assert holds_run("hf://owner/name") is holds
