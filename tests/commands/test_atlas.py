from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from books import books, gap
from tiny import tiny, tiny_language_model, tokenizer

from anaphora.analysis.evidence.evidence import Provenance
from anaphora.analysis.evidence.measurement import current_evidence, items_digest
from anaphora.analysis.evidence.storage import write_measurement
from anaphora.api.runs import load
from anaphora.api.scoring import read_splits, score_on
from anaphora.base.translation import in_language
from anaphora.report.numbers import format_percent
from anaphora.runs.items import analysis_code_digest, weights_digest
from anaphora.settings.data import OwnExamples

pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("atlas")
    for name, model in (("decoder", tiny_language_model("gpt2")), ("silent", tiny("bert"))):
        model.save_pretrained(folder / name)
        tokenizer().save_pretrained(folder / name)
    return folder


def draw(script: Callable[..., Any], models: Path, own: Path, table: Path, output: Path, *more: str) -> Any:
    runs = f"runs=[{models / 'decoder'},{models / 'silent'},{own}]"
    data = ("data=jsonl", f"data.path={table}", "causal_items=4", "untrained=1")
    return script("report", runs, *data, f"output={output}", *more)


def test_models_stand_side_by_side_and_are_measured_once(
    models: Path,
    finished: Path,
    table: Path,
    tmp_path: Path,
    script: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done = draw(script, models, finished, table, tmp_path)
    assert done.status == 0, done.err
    page = (tmp_path / "atlas.html").read_text(encoding="utf-8")
    assert "Atlas: 3 models" in page and "https://" not in page
    assert "Not tested, because they give no answers: silent." in page
    assert "In decoder, a pronoun sees only what comes before it" in page
    assert "no causal tests: silent: it has no output layer" in done.out
    lines = (tmp_path / "atlas.csv").read_text(encoding="utf-8").splitlines()
    assert {line.split(",")[0] for line in lines[1:]} == {"decoder", "silent", finished.name}
    decoder = json.loads((tmp_path / "decoder" / "jsonl" / "metrics.json").read_text(encoding="utf-8"))
    assert decoder["causal"]["items"] and decoder["untrained_models"] == 1

    def measured_again(*_: object, **__: object) -> None:
        raise AssertionError("measured again")

    monkeypatch.setattr("anaphora.commands.parts.atlas.score_on", measured_again)
    again = draw(script, models, finished, table, tmp_path, "interface_language=zh")
    assert again.status == 0, again.err
    page = (tmp_path / "atlas.html").read_text(encoding="utf-8")
    assert '<html lang="zh">' in page and "图册：3 个模型的注意力头" in page


def test_a_run_that_was_measured_on_the_same_items_is_read(
    own_run: Path, table: Path, tmp_path: Path, script: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, splits = load(own_run), read_splits(OwnExamples(path=str(table)), "test", None)
    scores = score_on(opened, splits, causal_items=0)
    about = Provenance(
        items=1, untrained=0, weights=weights_digest(opened.run), data=items_digest(splits), code=analysis_code_digest()
    )
    write_measurement(scores.measurement, own_run, replace(scores.evidence, provenance=about))
    assert current_evidence(opened.run, splits) is not None
    assert current_evidence(opened.run, replace(splits, measured=splits.measured[:-1])) is None

    def measured_again(*_: object, **__: object) -> None:
        raise AssertionError("measured again")

    monkeypatch.setattr("anaphora.commands.parts.atlas.score_on", measured_again)
    done = script("report", f"runs=[{own_run}]", "data=jsonl", f"data.path={table}", f"output={tmp_path / 'atlas'}")
    assert done.status == 0, done.err
    assert not (tmp_path / "atlas" / own_run.name).exists()


def test_what_lost_the_table_of_its_heads_is_measured_again(
    finished: Path, table: Path, tmp_path: Path, script: Callable[..., Any]
) -> None:
    arguments = (f"runs=[{finished}]", "data=jsonl", f"data.path={table}", "causal_items=0", f"output={tmp_path}")
    heads = tmp_path / finished.name / "jsonl" / "tables" / "heads_dev.csv"
    assert script("report", *arguments).status == 0
    before, page = heads.read_bytes(), (tmp_path / "atlas.html").read_bytes()
    for left in (b"", before.replace(b"0,0,", b"0,1,"), None):
        heads.unlink() if left is None else heads.write_bytes(left)
        done = script("report", *arguments)
        assert done.status == 0, done.err
        assert (heads.read_bytes(), (tmp_path / "atlas.html").read_bytes()) == (before, page)


def test_a_wrong_corpus_is_refused_before_anything_is_read(script: Callable[..., Any]) -> None:
    done = script("report", "runs=[outputs/none]", "corpora=[dprr:file]")
    assert done.status == 2 and "corpora (dprr:file).kind ('dprr') must be one of" in done.err
    assert len(done.err.splitlines()) == 1
    for given in (["corpora=[dpr:a,dpr:b]"], ["data=dpr", "data.path=a", "corpora=[dpr:b]"]):
        done = script("report", "runs=[outputs/none]", *given)
        assert done.status == 2
        assert "corpora ('dpr:b'): an atlas holds one dpr, and another one is given already" in done.err
    done = script("report", "runs=[outputs/none]", "corpora=[dpr]")
    assert (done.status, done.err) == (
        2,
        "error: corpora ('dpr') must be a corpus and its path, such as dpr:train.c.txt\n",
    )


def test_documents_have_clarks_table_and_gap_its_measures(
    models: Path, finished: Path, tmp_path: Path, script: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The models are a transformers model and a run; the second atlas reuses the first one's measurements."""
    runs = f"runs=[{models / 'silent'},{finished}]"
    data = ("data=litbank", f"data.path={books(tmp_path / 'books')}", "data.dev_share=0.3", "data.test_share=0.6")
    corpora = f"corpora=[gap:{gap(tmp_path / 'gap')}]"
    settings = (*data, "data.words=30", corpora, "untrained=1", "causal_items=0")
    done = script("report", runs, *settings, f"output={tmp_path / 'atlas'}")
    assert done.status == 0, done.err
    page = (tmp_path / "atlas" / "atlas.html").read_text(encoding="utf-8").replace("\N{NO-BREAK SPACE}", " ")
    assert all(title in page for title in titles("en"))
    folder = tmp_path / "atlas" / "silent"
    picked = json.loads((folder / "litbank" / "antecedents.json").read_text(encoding="utf-8"))["rows"]
    nearest = next(row for row in picked if (row["selector"], row["column"]) == ("nearest", "pronoun"))
    assert format_percent(nearest["accuracy"], (nearest["low"], nearest["high"])) in page
    decided = json.loads((folder / "gap" / "names.json").read_text(encoding="utf-8"))["rows"]
    policies = ["random", "nearest", "first", "parallel roles", "head", "head with threshold", "untrained"]
    assert [row["policy"] for row in decided] == policies
    own = json.loads((tmp_path / "atlas" / finished.name / "gap" / "names.json").read_text(encoding="utf-8"))["rows"]
    assert [row["policy"] for row in own] == [*policies, "answers"]
    assert [row["f1"] for row in own[:4]] == [row["f1"] for row in decided[:4]]

    def measured_again(*_: object, **__: object) -> None:
        raise AssertionError("measured again")

    for name in ("score_on", "select_antecedents", "name_decisions"):
        monkeypatch.setattr(f"anaphora.commands.parts.atlas.{name}", measured_again)
    again = script("report", runs, *settings, f"output={tmp_path / 'atlas'}", "interface_language=zh")
    assert again.status == 0, again.err
    page = (tmp_path / "atlas" / "atlas.html").read_text(encoding="utf-8").replace("\N{NO-BREAK SPACE}", " ")
    assert all(title in page for title in titles("zh"))


def titles(language: str) -> list[str]:
    """Return the titles of the two sections."""
    return [
        in_language(title, language).format(corpus=corpus)
        for title, corpus in (
            ("{corpus}: a head as an antecedent selector", "LitBank"),
            ("Antecedents picked correctly, in % [95 % over documents] (layer.head that picks)", "LitBank"),
            ("{corpus}: name decisions, and whether they favour a gender", "GAP"),
            ("Name decisions in %, [95 % over texts]; the ratio is feminine / masculine F1, 1 is even", "GAP"),
        )
    ]
