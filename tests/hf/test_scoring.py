from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import torch
from tiny import HYBRIDS, MIXED, random_model, tiny, tiny_language_model, tokenizer, transformers

import anaphora
from anaphora.analysis.evidence.other_models import evidence_from_records
from anaphora.analysis.evidence.storage import read_evidence, read_heads, write_measurement
from anaphora.analysis.results.scores import Head
from anaphora.api.head_choices import name_decisions
from anaphora.base.errors import UserError
from anaphora.data.own_sentence import example_from_query
from anaphora.hf.reader import open_model

ITEM = example_from_query("Anna helped Emma because she was weak.", "she", ["Anna", "Emma"], "Anna")


@pytest.fixture
def items(tmp_path: Path) -> Path:
    """Write forty sentences in which the pronoun refers to the first or to the second of two names."""
    lines = []
    for number in range(40):
        first, second = ("Anna", "Emma") if number % 2 else ("Emma", "Anna")
        text = f"{first} helped {second} because she was {'weak' if number % 4 < 2 else 'tired'} {number}."
        lines.append(
            {
                "text": text,
                "pronoun": [text.index(" she") + 1, text.index(" she") + 4],
                "candidates": [[0, 4], [12, 16]],
                "antecedents": [number % 4 // 2],
                "group": f"g{number // 2}",
                "language": "en",
            }
        )
    path = tmp_path / "items.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path


def test_heads_of_a_model_of_transformers_are_scored_on_ones_own_items(items: Path, tmp_path: Path) -> None:
    scores = anaphora.score(tiny("bert"), data="jsonl", path=items, tokenizer=tokenizer(), test_share=0.5)
    table = scores.table()
    row = table[table["language"] == "en"].iloc[0]
    assert row["items"] > 0 and 0 <= row["candidate_accuracy"] <= 1 and row["chance"] == 0.5
    assert row["low"] <= row["candidate_accuracy"] <= row["high"]
    assert row["best_shortcut"]
    assert "BertModel, layer" in repr(scores) and repr(scores).count(": en ") == 1 and repr(scores).count("; en ") == 0
    page = scores.page(tmp_path / "page.html").path.read_text(encoding="utf-8")
    assert "BertModel" in page and "https://" not in page


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_a_language_model_is_scored_with_its_causal_tests(family: str, items: Path) -> None:
    scores = anaphora.score(
        tiny_language_model(family), data="jsonl", path=items, tokenizer=tokenizer(), causal_items=2, untrained=1
    )
    assert scores.untested is None and scores.evidence.untrained_models == 1
    cell = scores.evidence.causal_cells["en"]["all"]
    assert cell.items == 2 and cell.task_accuracy is not None
    assert len(cell.head_ablation.cumulative) == 8 and cell.knockout["layer"].edges["gold"].drop is not None
    assert scores.evidence.causal is not None
    tested = scores.evidence.causal.head
    assert (tested.layer, tested.head) == (scores.head.layer, scores.head.head)


def test_logits_that_are_not_finite_leave_the_scores_of_the_heads(items: Path) -> None:
    model = tiny_language_model("bert", tie_word_embeddings=False)
    model.get_output_embeddings().weight.data[0] = torch.nan
    scores = anaphora.score(model, data="jsonl", path=items, tokenizer=tokenizer(), causal_items=2)
    assert "its output layer gives numbers that are not finite" in str(scores.untested)
    assert scores.evidence.causal is None and len(scores.table()) > 0


@pytest.mark.parametrize(
    ("family", "settings"),
    [*HYBRIDS, ("gpt_oss", {**MIXED, "num_hidden_layers": 2, "num_local_experts": 4, "num_experts_per_tok": 2})],
)
def test_causal_tests_skip_layers_without_attention_and_know_a_sink(
    family: str, settings: dict[str, Any], items: Path
) -> None:
    """Means of all heads are over the layers with attention, and a knockout does not change the score of the sink."""
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(family, **settings)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    scores = anaphora.score(model, "jsonl", items, tokenizer=tokenizer(), causal_items=2, untrained=0)
    assert scores.untested is None
    cell = scores.evidence.causal_cells["en"]["all"]
    assert cell.knockout["all_layers"].edges["gold"].drop is not None
    assert {one.layer for one in cell.head_ablation.single} <= ({1, 3} if family != "gpt_oss" else {0, 1})


def test_scoring_leaves_a_language_model_in_training_mode(items: Path) -> None:
    model = tiny_language_model("bert").train()
    scores = anaphora.score(model, "jsonl", items, tokenizer=tokenizer())
    assert scores.untested is None and all(part.training for part in model.modules())
    again = anaphora.score(model.eval(), "jsonl", items, tokenizer=tokenizer())
    assert again.evidence == scores.evidence


@pytest.mark.parametrize(("family", "settings"), HYBRIDS)
def test_layers_without_attention_have_no_scores(
    family: str, settings: dict[str, Any], items: Path, tmp_path: Path
) -> None:
    model = random_model(family, **settings)
    scores = anaphora.score(model, "jsonl", items, tokenizer=tokenizer(), test_share=0.5, untrained=1)
    write_measurement(scores.measurement, tmp_path, scores.evidence)
    for table in ("heads_dev.csv", "heads_test.csv"):
        assert set(pandas.read_csv(tmp_path / "tables" / table)["layer"]) == {1, 3}
    assert set(pandas.read_parquet(tmp_path / "tables" / "scores_test.parquet")["layer"]) == {1, 3}
    assert scores.evidence.heads_on_development is not None and scores.evidence.head_roles is not None
    assert [row[0] is None for row in scores.evidence.heads_on_development.p] == [True, False, True, False]
    assert {role.layer for role in scores.evidence.head_roles} == {1, 3}
    stored = read_evidence(tmp_path, "test")
    assert stored is not None and (heads := read_heads(tmp_path, stored)) is not None
    assert np.isnan(heads["en"]).all(axis=1).tolist() == [True, False, True, False]
    page = scores.page(tmp_path / "page.html").path.read_text(encoding="utf-8")
    assert "of 8 heads" in page and "best of 8" in page


@pytest.mark.parametrize(("family", "settings"), HYBRIDS)
def test_a_head_of_a_layer_without_attention_cannot_be_named(
    family: str, settings: dict[str, Any], items: Path, tmp_path: Path, script: Callable[..., Any]
) -> None:
    random_model(family, **settings).save_pretrained(tmp_path / family)
    tokenizer().save_pretrained(tmp_path / family)
    place = (f"run={tmp_path / family}", f"output={tmp_path / 'out'}", "data=jsonl", f"data.path={items}")
    done = script("score", *place, "layer=2", "head=0", "untrained=0")
    assert (done.status, done.err.strip()) == (2, "error: layer (2) has no attention; layers with attention: 1, 3")
    named = script("score", *place, "layer=3", "head=2", "untrained=0")
    assert named.status == 0, named.err
    model = open_model(tmp_path / family)
    with pytest.raises(UserError, match=r"layer \(0\) has no attention; layers with attention: 1, 3"):
        name_decisions(model, [], [], Head(0, 1), 0)
    (record,) = model.records([ITEM])
    other = replace(record, example=replace(ITEM, text=ITEM.text.replace("weak", "tiny")))
    with pytest.raises(UserError, match=r"layer \(0\) has no attention; layers with attention: 1, 3"):
        evidence_from_records("model", [record], [other], chosen=Head(0, 1))


def test_where_there_is_no_answer_the_scores_stand_alone_and_say_why(items: Path) -> None:
    scores = anaphora.score(tiny("bert"), data="jsonl", path=items, tokenizer=tokenizer())
    assert scores.evidence.causal is None
    assert (
        scores.untested
        == "BertModel: it has no output layer over the vocabulary that could be read, so it gives no answers"
    )
    assert repr(scores).endswith(f"no causal tests: {scores.untested}>")
    none_wanted = anaphora.score(tiny("bert"), data="jsonl", path=items, tokenizer=tokenizer(), causal_items=0)
    assert none_wanted.untested is None


def test_the_command_scores_a_folder_of_transformers(items: Path, tmp_path: Path, script: Callable[..., Any]) -> None:
    for model, name in ((tiny_language_model("gpt2"), "whole"), (tiny("distilbert"), "without")):
        model.save_pretrained(tmp_path / name)
        tokenizer().save_pretrained(tmp_path / name)
        done = script(
            "score", f"run={tmp_path / name}", f"output={tmp_path / 'of' / name}",
            *("data=jsonl", f"data.path={items}", "items=12", "untrained=1"),
        )  # fmt: skip
        assert done.status == 0, done.err
        metrics = json.loads((tmp_path / "of" / name / "metrics.json").read_text(encoding="utf-8"))
        assert (metrics.get("causal") is not None) == (name == "whole") and metrics["untrained_models"] == 1
        assert ("Causal tests" in done.out) == (name == "whole")
        assert ("no causal tests: without: it has no output layer" in done.out) == (name == "without")
        assert (tmp_path / "of" / name / "tables" / "heads_dev.csv").exists()


@pytest.mark.parametrize("place", [".", "tables"])
def test_a_model_of_transformers_does_not_replace_the_scores_of_a_run(
    place: str, items: Path, tmp_path: Path, script: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = tmp_path / "outputs" / "mine"
    run.mkdir(parents=True)
    before = dict.fromkeys(("config.yaml", "metrics.json"), "the run's own")
    for name, content in before.items():
        (run / name).write_text(content)
    tiny("bert").save_pretrained(tmp_path / "models" / "mine")
    tokenizer().save_pretrained(tmp_path / "models" / "mine")
    asked = ("score", "run=models/mine", "data=jsonl", f"data.path={items}", "items=12")
    for more in ((), (f"output=outputs/mine/{place}",)):
        done = script(*asked, *more)
        assert (done.status, done.err.count("\n")) == (2, 1) and "holds the files of another run" in done.err
        assert "files on models/mine need a folder of their own, e.g. output=outputs/other" in done.err
    assert {path.name: path.read_text() for path in run.iterdir()} == before
    assert script(*asked, "output=outputs/other").status == 0
    assert (tmp_path / "outputs" / "other" / "metrics.json").exists()


def test_a_run_is_scored_with_its_answers(finished: Path, items: Path) -> None:
    scores = anaphora.score(str(finished), data="jsonl", path=items, causal_items=4, untrained=1)
    assert scores.table()["task_accuracy"].notna().all()
    assert scores.evidence.causal is not None and scores.evidence.untrained_models == 1


def test_what_cannot_be_scored_is_reported(items: Path) -> None:
    with pytest.raises(UserError, match=r"data.kind \('dprr'\) must be one of"):
        anaphora.score(tiny("bert"), data="dprr", tokenizer=tokenizer())
    with pytest.raises(UserError, match="holds texts without pronoun questions"):
        anaphora.score(tiny("bert"), data="plain_text", path=items, tokenizer=tokenizer())
    with pytest.raises(UserError, match="nowhere"):
        anaphora.score(tiny("bert"), data="jsonl", path="nowhere.jsonl", tokenizer=tokenizer())
