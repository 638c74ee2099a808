"""Tests of this package's runs in the Auto classes of transformers: same weights and outputs, in both directions."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
import torch
from encoders import POSITIONS, RECURRENT, shape
from tiny import TEXTS, transformers

import anaphora
import anaphora.hf
from anaphora.analysis.evidence.storage import chosen_head
from anaphora.analysis.maps.capture import text_maps
from anaphora.analysis.results.scores import Head
from anaphora.base.errors import UserError
from anaphora.commands.export import Export, export
from anaphora.data.batches.batching import encode_plain_text
from anaphora.runs.directory import Run, RunFiles, load, randomly_initialised, save_settings, save_weights
from anaphora.runs.published import config_json
from anaphora.runs.warm_start import with_start_model
from anaphora.settings import data as data_settings
from anaphora.settings.model import encoder as model_settings
from anaphora.settings.model import position as position_settings
from anaphora.settings.model import prediction as prediction_settings
from anaphora.settings.run import Config

Script = Callable[..., Any]
VARIANTS: dict[str, dict[str, Any]] = {
    **{f"position_{each.kind}": {"position": each} for each in POSITIONS if each.kind != "learned"},
    "position_learned": {"position": position_settings.Learned(max_length=64)},
    "token_values": {"values": "token"},
    "tied": {"tied_output": True, "output_transform": True},
    "post_norm": {"norm": model_settings.RmsNorm(placement="post", embedding=True)},
}


@pytest.fixture
def stored(tiny: Callable[..., Config], finished: Path, tmp_path: Path) -> Callable[..., Run]:
    """Return a function (encoder, task) that stores a run with random weights and the finished run's tokenizer."""

    def store(model: model_settings.Model, **task: Any) -> Run:
        config = tiny(tmp_path)
        config = replace(config, model=model, task=replace(config.task, **task))
        tokenizer = load(finished).tokenizer
        run = Run(tmp_path / "run", config, tokenizer, randomly_initialised(config, tokenizer.size, 5))
        save_settings(RunFiles(run.directory), config, tokenizer)
        save_weights(RunFiles(run.directory).weights, run.model)
        return run

    return store


def published(run: Path, folder: Path, **settings: Any) -> Path:
    return export(Export(run=str(run), output=str(folder), format="anaphora", **settings))


def same_weights(one: torch.nn.Module, other: torch.nn.Module) -> bool:
    """Return whether two models have the same weights and buffers."""
    mine, yours = (
        dict(each.named_parameters(remove_duplicate=False)) | dict(each.named_buffers()) for each in (one, other)
    )
    return mine.keys() == yours.keys() and all(torch.equal(mine[name], yours[name]) for name in mine)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_run_goes_through_transformers_and_back_without_a_difference(
    variant: str, stored: Callable[..., Run], tmp_path: Path
) -> None:
    run = stored(shape(**VARIANTS[variant]))
    folder = published(run.directory, tmp_path / "published")
    model, loading = transformers.AutoModel.from_pretrained(folder, output_loading_info=True)
    assert not any(loading.values())
    assert same_weights(model, run.model)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    for text in TEXTS:
        inputs = tokenizer(text, return_tensors="pt")
        with torch.inference_mode():
            output = model(**inputs, output_attentions=True, output_hidden_states=True)
            wanted = run.model.encoder(encode_plain_text(text, run.tokenizer)[0])
        assert torch.equal(output.last_hidden_state, wanted) and torch.equal(output.hidden_states[-1], wanted)
        maps = text_maps(run.model, run.tokenizer, text)[1]
        assert (torch.stack([layer[0] for layer in output.attentions]).numpy() == maps).all()
    model.save_pretrained(tmp_path / "again")
    tokenizer.save_pretrained(tmp_path / "again")
    again = load(tmp_path / "again")
    assert again.config == replace(run.config, output=again.config.output, data=again.config.data)
    assert same_weights(again.model, run.model)
    assert again.tokenizer.encode_batch(TEXTS) == run.tokenizer.encode_batch(TEXTS)


def test_padding_changes_nothing(stored: Callable[..., Run], tmp_path: Path) -> None:
    folder = published(stored(shape()).directory, tmp_path / "published")
    model = transformers.AutoModel.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    alone = tokenizer(TEXTS[0], return_tensors="pt")
    length = alone["input_ids"].shape[1]
    for side in ("right", "left"):
        both = tokenizer(list(TEXTS[:2]), return_tensors="pt", padding=True, padding_side=side)
        own = slice(0, length) if side == "right" else slice(-length, None)
        with torch.inference_mode():
            expected, states = model(**alone).last_hidden_state[0], model(**both).last_hidden_state[0]
        torch.testing.assert_close(states[own], expected, atol=1e-5, rtol=0)


def test_what_has_no_maps_or_needs_the_pronoun_says_so(stored: Callable[..., Run], tmp_path: Path) -> None:
    folder = published(stored(shape(attention=RECURRENT[0])).directory, tmp_path / "recurrent")
    model = transformers.AutoModel.from_pretrained(folder)
    ids = torch.tensor([[2, 5, 6, 7]])
    assert model(ids).last_hidden_state.shape == (1, 4, 16)
    with pytest.raises(UserError, match="no attention"):
        model(ids, output_attentions=True)
    folder = published(stored(shape(second_sequence=True)).directory, tmp_path / "second")
    model = transformers.AutoModel.from_pretrained(folder)
    with pytest.raises(UserError, match="give pronoun_mask"):
        model(ids)
    maps = model(ids, pronoun_mask=torch.tensor([[0, 0, 1, 0]]), output_attentions=True, return_dict=False)[1]
    assert maps[0][0, :, :, 2].abs().sum() == 0


@pytest.mark.parametrize("tied", [True, False])
def test_a_run_on_masked_tokens_has_logits_and_a_loss(tied: bool, stored: Callable[..., Run], tmp_path: Path) -> None:
    run = stored(shape(tied_output=tied), masked_lm=0.15)
    folder = published(run.directory, tmp_path / "published")
    assert json.loads((folder / "config.json").read_text())["architectures"] == ["AnaphoraForMaskedLM"]
    model = transformers.AutoModelForMaskedLM.from_pretrained(folder)
    assert same_weights(model, run.model)
    tokens, _ = encode_plain_text(TEXTS[0], run.tokenizer)
    labels = torch.full_like(tokens.ids, -100)
    labels[0, 2] = 7
    with torch.inference_mode():
        output, wanted = model(tokens.ids, labels=labels), run.model.output(run.model.encoder(tokens))
    assert torch.equal(output.logits, wanted)
    assert torch.equal(output.loss, -wanted[0, 2].log_softmax(dim=0)[7])
    other = published(stored(shape()).directory, tmp_path / "other")
    with pytest.raises(UserError, match=r"was not trained on masked tokens \(task.masked_lm=0\)"):
        transformers.AutoModelForMaskedLM.from_pretrained(other)


def test_a_new_model_of_a_config_has_first_weights(stored: Callable[..., Run], tmp_path: Path) -> None:
    run = stored(shape())
    config = transformers.AutoConfig.from_pretrained(published(run.directory, tmp_path / "published"))
    assert (config.hidden_size, config.num_hidden_layers, config.num_attention_heads) == (16, 2, 2)
    torch.manual_seed(5)
    assert same_weights(transformers.AutoModel.from_config(config), run.model)


def test_a_published_run_is_read_wherever_a_run_is(finished: Path, tmp_path: Path, script: Script) -> None:
    assert script("score", f"run={finished}", f"output={tmp_path}", "untrained=1").status == 0
    own = Path(shutil.copytree(finished, tmp_path / "own"))
    shutil.copy(tmp_path / "metrics.json", own)
    folder = published(own, tmp_path / "published", licence="apache-2.0")
    run, before = anaphora.load(folder), anaphora.load(own)
    question = (TEXTS[0], "she", ["Anna", "Emma"])
    assert run.answer(*question) == before.answer(*question)
    assert run.chosen_head == before.chosen_head is not None
    maps = anaphora.attention(folder, TEXTS[0])
    assert (maps.weights == before.attention(TEXTS[0]).weights).all() and maps.chosen == run.chosen_head
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert card.startswith('---\nlibrary_name: "transformers"\nlanguage: ["en", "zh"]\nlicense: "apache-2.0"\n')
    assert "| English |" in card and "Another seed gives others" in card and "`data=jsonl`" in card
    plotted = ("text=Anna met Tom before she left.", "pronoun=she", f"output={tmp_path / 'one.svg'}")
    assert script("attention", f"run={folder}", *plotted).status == 0


def test_a_published_run_keeps_the_head_of_each_language(finished: Path, tmp_path: Path, script: Script) -> None:
    assert script("score", f"run={finished}", f"output={tmp_path}", "untrained=1").status == 0
    own = Path(shutil.copytree(finished, tmp_path / "own"))
    scores = json.loads((tmp_path / "metrics.json").read_text(encoding="utf-8"))
    for number, language in enumerate(("en", "zh")):
        of_one = {**scores, "head": {**scores["head"], "layer": number}, "languages": {}}
        of_one["languages"][language] = scores["languages"][language]
        (own / language).mkdir()
        (own / language / "metrics.json").write_text(json.dumps(of_one), encoding="utf-8")
    folder = published(own, tmp_path / "published")
    run = load(folder)
    assert [chosen_head(run, language) for language in ("en", "zh")] == [
        Head(number, scores["head"]["head"]) for number in range(2)
    ]
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert 'language: ["en", "zh"]' in card and "| English |" in card and "| Chinese |" in card
    assert "Nothing has been measured" not in card


def test_a_run_starts_from_a_published_one(finished: Path, tmp_path: Path, tiny: Callable[..., Config]) -> None:
    folder = published(finished, tmp_path / "published")
    config = replace(tiny(tmp_path), start=str(folder), model=tiny_default())
    assert with_start_model(config).model == load(finished).config.model


def tiny_default() -> model_settings.Model:
    from anaphora.runs.warm_start import default_model

    return default_model()


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return the folder of "hf://owner/name" in the Hub's cache, as after a download."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    repository, revision = tmp_path / "hub" / "models--owner--name", "0" * 40
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(revision)
    return repository / "snapshots" / revision


def test_a_name_on_the_hub_is_read_as_the_run_that_it_is(
    hub: Path, own_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (own_run / "metrics.json").write_text('{"head": {"layer": 1, "head": 0}}')
    wanted = anaphora.load(own_run).attention(TEXTS[0])
    for as_stored in (True, False):
        shutil.rmtree(hub, ignore_errors=True)
        if as_stored:
            shutil.copytree(own_run, hub)
        else:
            (own_run / "metrics.json").unlink()
            published(own_run, hub)
        maps = anaphora.attention("hf://owner/name", TEXTS[0])
        assert (maps.weights == wanted.weights).all()
        run = anaphora.load("hf://owner/name")
        assert run.run.directory == Path("outputs/owner--name")
        assert (run.chosen_head is not None) == as_stored
        anaphora.api.models._open_named.cache_clear()


def test_paths_of_the_machine_are_not_published(own_run: Path, tmp_path: Path) -> None:
    folder = published(own_run, tmp_path / "published")
    for file in folder.iterdir():
        assert str(tmp_path.parent).encode() not in file.read_bytes(), file
    assert load(folder).config.data.path == "items.jsonl"  # type: ignore[attr-defined]


def test_a_label_that_begins_like_a_path_is_published_as_it_is(finished: Path) -> None:
    labels = ["/r/news/ask", "/r/tech/ask", "~"]
    config = load(finished).config
    data = data_settings.LabelledText(path="/home/anna/posts.jsonl")
    task = replace(config.task, prediction=prediction_settings.Label(labels=labels))
    run = config_json(replace(config, data=data, task=task, output="/home/anna/runs"), 100)["run"]
    assert run["task"]["prediction"]["labels"] == labels
    assert (run["data"]["path"], run["output"]) == ("posts.jsonl", "runs")


def test_what_cannot_be_published_or_read_is_reported_in_one_line(
    own_run: Path, tmp_path: Path, script: Script
) -> None:
    given = (f"run={own_run}", f"output={tmp_path / 'out'}")
    assert (
        "output_layer (true) is only for format=bert"
        in script("export", *given, "format=anaphora", "output_layer=true").err
    )
    assert "licence ('mit') is only for format=anaphora" in script("export", *given, "licence=mit").err
    assert "format ('onnx') must be one of bert, anaphora" in script("export", *given, "format=onnx").err
    assert not (tmp_path / "out").exists()
    assert script("export", *given, "format=anaphora").status == 0
    config = tmp_path / "out" / "config.json"
    content = json.loads(config.read_text(encoding="utf-8"))
    for run, message in (
        (None, r"config.json: run \(None\) must hold the settings of a run"),
        ({**content["run"], "wdth": 3}, "config.json: unknown setting wdth"),
        ({**content["run"], "name": "${oc.env:HOME}"}, r"config.json: name \('\$\{oc.env:HOME\}'\) refers to"),
    ):
        config.write_text(json.dumps({**content, "run": run}), encoding="utf-8")
        with pytest.raises(UserError, match=message):
            load(tmp_path / "out")
    config.write_text(json.dumps({**content, "run": {**content["run"], "seed": 1}}), encoding="utf-8")
    (tmp_path / "out" / "model.safetensors").unlink()
    with pytest.raises(UserError, match=r"model\.safetensors is missing$"):
        load(tmp_path / "out")


def test_a_head_of_slots_is_published_with_its_marks(stored: Callable[..., Run], tmp_path: Path) -> None:
    run = stored(shape(), prediction=prediction_settings.Slot(slots=4))
    folder = published(run.directory, tmp_path / "published")
    model = transformers.AutoModel.from_pretrained(folder)
    model.save_pretrained(tmp_path / "again")
    run_again = tmp_path / "again"
    shutil.copy(folder / "tokenizer.json", run_again)
    assert same_weights(load(run_again).model, run.model)
