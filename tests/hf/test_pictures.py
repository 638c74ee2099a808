"""Tests of pictures of one head of a model of transformers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tiny import SIZE, TEXTS, random_model, tiny_folder, tokenizer

from anaphora.analysis.evidence.storage import metrics_path
from anaphora.base.files import write_json
from anaphora.runs.published import RUN_CONFIG


def test_a_head_of_any_family_is_drawn(
    tmp_path_factory: pytest.TempPathFactory,
    tmp_path: Path,
    script: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tiny_folder(tmp_path_factory, "gpt2")
    question = (f"run={folder}", f"text={TEXTS[0]}", "pronoun=she", "candidates=[Anna,Emma]", "output=one.svg")
    missing = script("attention", *question)
    assert missing.status == 2 and f"or choose it with anaphora score run={folder} data=..." in missing.err
    absent = script("attention", *question, "layer=1", "head=4")
    assert absent.status == 2 and "head (4)" in absent.err
    assert script("attention", *question, "layer=1", "head=2").status == 0
    assert {path.name for path in tmp_path.glob("*.svg")} == {"one_heat_map.svg", "one_pronoun_row.svg"}


def test_the_chosen_head_of_the_model_is_drawn_and_never_that_of_a_run_with_its_name(
    tmp_path_factory: pytest.TempPathFactory,
    tmp_path: Path,
    script: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tiny_folder(tmp_path_factory, "gpt2")
    question = (f"run={folder}", f"text={TEXTS[0]}", "pronoun=she", "candidates=[Anna,Emma]")
    assert script("attention", *question, "output=named.svg", "layer=1", "head=2").status == 0
    results = tmp_path / "outputs" / folder.name
    write_json(metrics_path(results, "test"), {"head": {"layer": 1, "head": 2}})
    chosen = script("attention", *question, "output=chosen.svg")
    assert chosen.status == 0, chosen.err
    for name in ("heat_map", "pronoun_row"):
        assert (tmp_path / f"chosen_{name}.svg").read_bytes() == (tmp_path / f"named_{name}.svg").read_bytes()
    (results / RUN_CONFIG).write_text("")
    other = script("attention", *question, "output=other.svg")
    assert other.status == 2 and "no head has been chosen yet" in other.err


@pytest.mark.parametrize(
    ("changes", "most"), [({"hidden_act": "gelu_new"}, "1GB"), ({"is_decoder": True}, "1GB"), ({}, "20KB")]
)
def test_whatever_gives_a_page_gives_pictures(
    changes: dict[str, Any], most: str, tmp_path: Path, script: Callable[..., Any]
) -> None:
    model = random_model("bert", **SIZE, **changes)
    folder = tmp_path / "bert"
    model.save_pretrained(folder, max_shard_size=most)
    assert (folder / "model.safetensors").exists() == (most == "1GB")
    tokenizer().save_pretrained(folder)
    question = (f"run={folder}", f"text={TEXTS[0]}", "pronoun=she")
    for more in (("output=one.html",), ("output=one.svg", "layer=1", "head=2")):
        place = more[0].replace("one", str(tmp_path / "one"))
        written = script("attention", *question, place, *more[1:])
        assert written.status == 0, written.err


def test_a_folder_that_is_missing_is_named_before_its_head(tmp_path: Path, script: Callable[..., Any]) -> None:
    missing = script(
        "attention", "run=nowhere", f"text={TEXTS[0]}", "pronoun=she", f"output={tmp_path / 'new/one.svg'}"
    )
    assert missing.status == 2 and "run (nowhere): there is no such folder" in missing.err
    assert not (tmp_path / "new").exists()
