from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from anaphora.analysis.evidence import measurement
from anaphora.analysis.maps.rows import COLUMNS
from anaphora.base.errors import UserError
from anaphora.commands.demo import demo as demonstrate
from anaphora.commands.report import Report
from anaphora.settings.run import Config

Script = Callable[..., tuple[int, str, str]]
ROOT = Path(__file__).parents[1]
SMALL = ("trainer=smoke", "model.width=16", "model.layers=2", "trainer.limit_items=24")


@pytest.fixture
def done(script: Script) -> Callable[..., str]:
    """Return a function that runs a script without errors and returns its output."""

    def ran(name: str, *arguments: str) -> str:
        status, out, err = script(name, *arguments)
        assert status == 0, err
        return out

    return ran


def metrics(run: Path) -> dict[str, dict[str, dict[str, object]]]:
    return dict(json.loads((run / "metrics.json").read_text(encoding="utf-8")))


def test_rows_are_a_parquet_table_with_the_documented_columns_and_sum_to_one(
    own_run: Path, done: Callable[..., str]
) -> None:
    done("extract", f"run={own_run}")
    table = parquet.read_table(own_run / "attention" / "test.parquet")
    assert table.column_names == list(COLUMNS)
    rows = table.to_pylist()
    assert [row["item"] for row in rows] == list(range(12))
    for row in rows:
        shares = np.array(row["weights"]).reshape(row["layers"], row["heads"], len(row["starts"]))
        sums = shares.sum(axis=2) * np.reshape(row["scales"], (2, 2))
        np.testing.assert_allclose(sums, 1, atol=1e-3)
    lines = (own_run / "attention" / "test_items.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["item"] for line in lines] == list(range(12))


def test_scoring_writes_the_documented_keys_and_tables(own_run: Path, done: Callable[..., str]) -> None:
    done("score", f"run={own_run}", "untrained=2")
    content = metrics(own_run)
    assert {"seed", "split", "head", "languages", "strata", "dropped", "untrained_models", "train_seconds"} <= set(
        content
    )
    assert {"items", "task_accuracy", "candidate_accuracy", "chance", "baselines", "intervals", "set"} <= set(
        content["languages"]["en"]
    )
    assert set(content["languages"]) == {"en", "zh"}
    assert all(
        (own_run / "tables" / f"{name}.csv").stat().st_size for name in ("heads_dev", "heads_test", "templates_test")
    )


def test_evaluating_writes_every_answer(own_run: Path, done: Callable[..., str]) -> None:
    assert "task accuracy, dev split" in done("evaluate", f"run={own_run}", "split=dev")
    answers = json.loads((own_run / "evaluation" / "dev_answers.json").read_text(encoding="utf-8"))
    assert len(answers) == 12
    assert all(one["correct"] == (one["answer"] in one["antecedents"]) for one in answers)


def test_names_that_are_one_token_to_the_run_are_right_by_chance_and_counted(
    own_run: Path, tmp_path: Path, script: Callable[..., tuple[int, str, str]]
) -> None:
    """The names are Greek, and an English vocabulary has none of their letters, so the run cannot distinguish them."""
    path = tmp_path / "greek.jsonl"
    row = {"text": "Ωψ met Λθ before she left.", "pronoun": [17, 20], "candidates": [[0, 2], [7, 9]], "language": "en"}
    row |= {"antecedents": [0], "split": "test"}
    path.write_text(3 * f"{json.dumps(row)}\n")
    asked = (f"run={own_run}", "data=jsonl", f"data.path={path}", f"output={tmp_path / 'greek'}")
    status, out, err = script("evaluate", *asked)
    assert status == 0, err
    assert "equal scores: in 3 of 3 items the model gives a right and a wrong candidate the same score" in out
    answers = json.loads((tmp_path / "greek" / "test_answers.json").read_text(encoding="utf-8"))
    assert [one["correct"] for one in answers] == [None] * 3
    assert re.search(r" 3 \D+ 0\.50", out)


def test_plotting_draws_every_figure_in_every_format(own_run: Path, done: Callable[..., str]) -> None:
    done("attention", f"run={own_run}")
    for stem in ("scoreboard", "heads_en", "heads_zh", "alignment_through_training"):
        for suffix in ("png", "svg", "pdf"):
            assert (own_run / "figures" / f"test_{stem}.{suffix}").stat().st_size > 500


def test_figures_are_drawn_in_the_languages_that_are_wanted(own_run: Path, done: Callable[..., str]) -> None:
    folder = own_run / "figures"
    where = (f"run={own_run}", f"output={folder / 'sentence.svg'}", "layer=0", "head=0")
    sentence = (*where, "text=Anna met Tom before she left.", "pronoun=she")
    done("attention", *sentence)
    english = (folder / "sentence_heat_map.svg").read_bytes()
    done("attention", *sentence, "interface_language=zh", "overwrite=true")
    chinese = (folder / "sentence_heat_map.svg").read_bytes()
    done("attention", *sentence, "interface_language=both", "overwrite=true")
    assert english != chinese
    assert (folder / "sentence_heat_map.svg").read_bytes() == english
    assert (folder / "sentence_heat_map.zh.svg").read_bytes() == chinese


@pytest.mark.parametrize(
    "arguments",
    [
        ("text=Anna met Tom before she left.", "pronoun=she"),
        ("text=Anna met Tom before she left.", "pronoun=she", "candidates=[Anna,Tom]", "antecedent=Anna"),
        ("text=王芳碰到李强以后,她走了。", "pronoun=她"),
        ("text=王芳碰到李强以后,她走了。", "pronoun=她", "candidates=['王芳','李强']", "antecedent=王芳"),
    ],
)
def test_one_sentence_is_drawn_and_extracted(
    arguments: tuple[str, ...], own_run: Path, done: Callable[..., str]
) -> None:
    output = own_run / "figures" / "one.png"
    done("attention", f"run={own_run}", "layer=0", "head=1", f"output={output}", *arguments)
    drawn = {path.name for path in output.parent.glob("one*")}
    assert drawn == {"one_heat_map.png", "one_pronoun_row.png"}
    done("extract", f"run={own_run}", *arguments)
    (path,) = (own_run / "attention").glob("sentence_*.parquet")
    assert set(parquet.read_table(path)["item"].to_pylist()) == {0}


@pytest.mark.parametrize(
    ("name", "pattern", "further"),
    [
        ("extract", "own/attention/sentence_*.parquet", ()),
        ("explain", "outputs/explain/sentence_*_en.html", ("layer=0", "head=1", "form=page")),
        ("attention", "attention_*.html", ()),
    ],
)
def test_files_of_one_sentence_are_replaced_by_those_of_no_other(
    name: str, pattern: str, further: tuple[str, ...], own_run: Path, tmp_path: Path,
    done: Callable[..., str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    for asked in (("text=Anna met Tom before she left.", "pronoun=she"), ("text=Anna saw him.", "pronoun=him")):
        for candidates in ("[Anna]", "[Anna]", "[]"):
            done(name, f"run={own_run}", *asked, f"candidates={candidates}", *further)
    names = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob(pattern))
    assert len(names) == 4
    assert [("Anna_met_Tom_before_she" in one, "Anna_saw_him" in one) for one in names] == [(True, False)] * 2 + [
        (False, True)
    ] * 2


def test_two_runs_share_a_folder_without_replacing_a_file(
    own_run: Path, tmp_path: Path, done: Callable[..., str]
) -> None:
    other = own_run.with_name("other")
    shutil.copytree(own_run, other)
    sentence = ("text=Anna met Tom before she left.", "pronoun=she", f"output={tmp_path / 'all'}")
    for run in (own_run, other):
        done("extract", f"run={run}", *sentence)
    assert len(list((tmp_path / "all").glob("sentence_*.parquet"))) == 2


def test_a_page_in_another_language_is_another_file(
    own_run: Path, tmp_path: Path, done: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for language in ("en", "zh"):
        done("attention", f"run={own_run}", "text=Anna left.", f"interface_language={language}")
    assert len(list(tmp_path.glob("attention_Anna_left_*.html"))) == 2


def test_names_in_chinese_commas_are_ranked_one_by_one(own_run: Path, tmp_path: Path, done: Callable[..., str]) -> None:
    asked = ("text=王芳碰到李强以后,她走了。", "pronoun=她", "candidates=王芳、李强", f"output={tmp_path / 'a.html'}")
    printed = done("attention", f"run={own_run}", *asked)
    assert "王芳、" not in printed and "王芳" in printed and "李强" in printed


def test_a_folder_of_results_is_not_named_like_a_file(own_run: Path, tmp_path: Path, script: Script) -> None:
    status, _, err = script("extract", f"run={own_run}", f"output={tmp_path / 'rows.parquet'}")
    assert status == 2 and "rows.parquet) must name a folder, not a file" in err
    assert not list(tmp_path.glob("rows*"))


def test_a_sentence_without_a_chosen_head_says_how_to_choose_one(own_run: Path, script: Script) -> None:
    status, _, err = script("attention", f"run={own_run}", "text=she left", "pronoun=she", f"output={own_run}/x.png")
    assert status == 2
    assert "name one with layer=... head=..." in err


def table_as(suffix: str, table: Path, folder: Path) -> Path:
    rows = [json.loads(line) for line in table.read_text(encoding="utf-8").splitlines()]
    path = folder / f"items.{suffix}"
    if suffix == "parquet":
        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    elif suffix == "csv":
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            for row in rows:
                writer.writerow({k: v if isinstance(v, str) else json.dumps(v) for k, v in row.items()})
    else:
        path.write_bytes(table.read_bytes())
    return path


def dpr(folder: Path) -> Path:
    names = [("Anna", "Berta"), ("Clara", "Dora"), ("Emma", "Fay"), ("Gina", "Hanna"), ("Ida", "Jana")]
    text = "".join(
        f"{one} asked {two} because she {verb}.\nshe\n{one},{two}\n{right}\n\n"
        for one, two in names * 2
        for verb, right in (("wondered", one), ("knew", two))
    )
    path = folder / "train.c.txt"
    path.write_text(text)
    return path


def gap(folder: Path) -> Path:
    header = "ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\tURL\n"
    for name in ("development", "validation"):
        rows = []
        for number in range(20):
            text = f"Anna met Berta on day {number} of {name} and she left."
            right = ("TRUE\t", "FALSE\t", "FALSE\t")[number % 3], ("FALSE", "TRUE", "FALSE")[number % 3]
            rows.append(
                f"{number}\t{text}\tshe\t{text.index('she')}\tAnna\t0\t{right[0]}Berta\t9\t{right[1]}\thttp://x\n"
            )
        (folder / f"gap-{name}.tsv").write_text(header + "".join(rows))
    return folder


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("source", ["jsonl", "csv", "parquet", "dpr", "gap"])
def test_own_data_and_public_corpora_go_all_the_way(
    source: str, table: Path, tmp_path: Path, done: Callable[..., str]
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    path = {"dpr": dpr, "gap": gap}.get(source, lambda where: table_as(source, table, where))(folder)
    kind = source if source in ("dpr", "gap") else "jsonl"
    more = ("task/prediction=slot", "task.prediction.none_of_them=true") if source == "gap" else ()
    done(
        "train",
        f"data={kind}",
        f"data.path={path}",
        "data.dev_share=0.3",
        f"output={tmp_path}",
        "name=run",
        *SMALL,
        *more,
    )
    run = tmp_path / "run"
    done("score", f"run={run}", "untrained=1")
    assert metrics(run)["languages"]
    done("attention", f"run={run}")
    assert (run / "figures" / "test_scoreboard.png").exists()


@pytest.mark.usefixtures("undrawn")
def test_the_demonstration_trains_then_reuses_and_resumes(
    tmp_path: Path, done: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class AskedError(Exception): ...

    def refuse(*_: object) -> None:
        raise AskedError

    # The demo asks for the whole report, which takes long on the smallest run too.
    small = partial(Report, items=40, untrained=2, sentences=8, formats=["svg"])
    monkeypatch.setattr("anaphora.commands.report.Report", small)
    arguments = (f"output={tmp_path}", "name=demo", "data.train_items=100", "data.test_items=40", "trainer=smoke")
    first = done("demo", *arguments)
    assert "demo: training" in first and "metrics.json" in first
    assert (tmp_path / "demo" / "attention" / "test.parquet").exists()
    assert {"causal", "verdict", "head_roles"} <= set(metrics(tmp_path / "demo"))
    assert "report.html" in first.splitlines()[-1]
    page = (tmp_path / "demo" / "report.html").read_text(encoding="utf-8")
    assert "The same words, another reading" in page and "en-1" in page and "zh-1" in page
    files = {path.name for path in (tmp_path / "demo" / "figures").iterdir()}
    assert {"quad_en_role.svg", "effects.svg", "knockout.svg", "row_en_right.svg"} <= files
    # The pages were just seen to be written.
    monkeypatch.setattr("anaphora.report.figures.files.save_in_languages", lambda *_: [])
    monkeypatch.setattr(
        "anaphora.commands.parts.pages.write_pages", lambda evidence, settings: [tmp_path / "demo" / "report.html"]
    )
    monkeypatch.setattr(measurement, "measure_evidence", refuse)
    weights = (tmp_path / "demo" / "model.safetensors").read_bytes()
    (tmp_path / "demo" / "model.safetensors").unlink()
    assert "demo: unfinished; it is resumed" in done("demo", *arguments)
    assert (tmp_path / "demo" / "model.safetensors").read_bytes() == weights
    assert "its weights are reused" in done("demo", *arguments)


def test_the_demonstration_trains_nothing_that_it_cannot_measure(
    tmp_path: Path, tiny: Callable[..., Config], settings: Callable[..., Config]
) -> None:
    texts = settings("experiment=pretrain", f"data.path={tmp_path / 'pages.txt'}", f"output={tmp_path / 'runs'}")
    recurrent = tiny(tmp_path / "runs", "model/attention=gru")
    for config, message in ((texts, "data=plain_text has no pronoun questions"), (recurrent, "no attention maps")):
        with pytest.raises(UserError, match=message):
            demonstrate(config)
    assert not (tmp_path / "runs").exists()


def test_the_demonstration_does_not_mix_settings(tmp_path: Path, own_run: Path, script: Script) -> None:
    status, _, err = script("demo", f"output={own_run.parent}", f"name={own_run.name}", "trainer=smoke")
    assert status == 2
    assert "holds a run with other settings; choose another name=" in err


def test_the_report_is_offline_and_says_what_is_missing(own_run: Path, done: Callable[..., str]) -> None:
    arguments = ("items=4", "untrained=0", "sentences=2", "formats=[]", "split=dev")
    out = done("report", f"run={own_run}", *arguments)
    assert "English, set cues: not yet controlled" in out and "trained controls" in out
    assert f"report    {own_run / 'report_dev.html'}" in out
    assert not re.search(r"https?:", (own_run / "report_dev.html").read_text(encoding="utf-8"))
    assert (own_run / "metrics_dev.json").exists() and not (own_run / "metrics.json").exists()
    assert (own_run / "tables" / "verdict_dev.csv").exists()


@pytest.mark.parametrize(
    "folder", sorted(path.parent for path in ROOT.glob("tests/*/__main__.py")), ids=lambda at: at.name
)
def test_programs_among_the_tests_start_outside_pytest(folder: Path) -> None:
    """`make chaos`, `make mutants` and the like run no test, and pytest's import path is not theirs."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([sys.executable, folder, "--help"], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, check=True)
