from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from books import books
from tiny import tiny as tiny_model
from tiny import tokenizer

from anaphora.analysis.tasks.antecedent_selection import CHOICE_SETS
from anaphora.commands.antecedents import AntecedentSelection

Script = Callable[..., tuple[int, str, str]]


def test_a_run_is_asked_from_end_to_end_and_everything_is_written(
    own_run: Path, tmp_path: Path, script: Script
) -> None:
    text_file = tmp_path / "seen.txt"
    text_file.write_text("\n".join(map(str, range(5))) + "\n")
    status, out, err = script(
        "antecedents", f"run={own_run}", "data=litbank", f"data.path={books(tmp_path / 'books')}",
        f"data.seen_in={text_file}", "data.dev_share=0.3", "data.test_share=0.6", "data.words=30", "untrained=1",
        "by=[seen]", "formats=[png]",
    )  # fmt: skip
    assert status == 0, err
    assert "the nearest mention" in out
    folder = own_run / "antecedents" / "litbank"
    tables = json.loads((folder / "antecedents.json").read_text())
    assert {row["subset"] for row in tables["rows"]} == {"all", "seen=yes", "seen=no"}
    assert {row["selector"] for row in tables["rows"]} == {
        "nearest", "head match", "sieve", "best head", "one head", "untrained",
    }  # fmt: skip
    pronouns = next(row for row in tables["rows"] if (row["selector"], row["column"]) == ("nearest", "pronoun"))
    assert (pronouns["accuracy"], pronouns["items"], pronouns["documents"]) == (1.0, 24, 6)
    with (folder / "antecedents.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(tables["rows"])
    with (folder / "heads.csv").open() as file:
        heads = list(csv.DictReader(file))
    assert len(heads) == 2 * len(CHOICE_SETS) * 2 * 4
    best = next(row for row in tables["rows"] if row["selector"] == "best head" and row["field"] == "words")
    shares = [
        float(row["accuracy"])
        for row in heads
        if (row["split"], row["field"], row["column"]) == ("dev", "words", "all")
    ]
    assert best["development"] == max(shares)
    assert (folder / "figures" / "antecedent_selection.png").stat().st_size > 500


def test_a_model_of_transformers_is_asked_alike(tmp_path: Path, script: Script) -> None:
    tiny_model("bert").save_pretrained(tmp_path / "bert")
    tokenizer().save_pretrained(tmp_path / "bert")
    model, output = f"run={tmp_path / 'bert'}", f"output={tmp_path / 'out'}"
    status, _, err = script("antecedents", model, output)
    assert (status, err.count("\n")) == (2, 1) and "data: bert has no data of its own; name a corpus" in err
    data = ("data=litbank", f"data.path={books(tmp_path / 'books')}", "data.dev_share=0.3", "data.test_share=0.6")
    status, out, err = script("antecedents", model, output, *data, "data.words=30", "untrained=1", "formats=[]")
    assert status == 0, err
    assert "bert, test split: antecedents picked correctly" in out
    tables = json.loads((tmp_path / "out" / "antecedents.json").read_text())
    assert {row["selector"] for row in tables["rows"]} >= {"nearest", "best head", "untrained"}
    heads = [row for row in tables["rows"] if row["selector"] == "best head" and row["column"] == "pronoun"]
    assert [row["field"] for row in heads] == list(CHOICE_SETS) and {row["items"] for row in heads} == {24}


def test_the_runs_own_data_are_asked_by_default(own_run: Path, script: Script) -> None:
    status, _, err = script("antecedents", f"run={own_run}", "untrained=0", "formats=[]")
    assert status == 0, err
    tables = json.loads((own_run / "antecedents" / "jsonl" / "antecedents.json").read_text())
    assert {row["column"] for row in tables["rows"]} == {"all", "pronoun"}


def test_results_on_another_file_of_the_same_format_are_not_overwritten(
    own_run: Path, tmp_path: Path, script: Script
) -> None:
    """The same file is read again, also by another spelling of its path."""
    status, _, err = script("antecedents", f"run={own_run}", "untrained=0", "formats=[]")
    assert status == 0, err
    results = own_run / "antecedents" / "jsonl" / "antecedents.json"
    first = results.read_bytes()
    path = json.loads(first)["settings"]["path"]
    other = shutil.copy(path, tmp_path / "other.jsonl")
    command = ("antecedents", f"run={own_run}", "data=jsonl", "untrained=0", "formats=[]")
    status, _, err = script(*command, f"data.path={other}")
    assert (status, err.count("\n")) == (2, 1) and "holds the results with data=the run's own, which would be" in err
    assert results.read_bytes() == first
    assert script(*command, f"data.path={other}", f"output={tmp_path / 'out'}")[0] == 0
    assert script(*command, f"data.path={Path(path).parent}/./{Path(path).name}")[0] == 0


def test_a_run_that_is_renamed_keeps_its_results(own_run: Path, tmp_path: Path, script: Script) -> None:
    command = ("antecedents", "untrained=0", "formats=[]")
    assert script(*command, f"run={own_run}")[0] == 0
    status, _, err = script(*command, f"run={own_run.rename(tmp_path / 'renamed')}")
    assert status == 0, err


@pytest.mark.parametrize(("name", "value"), [("split", "train"), ("untrained", "2"), ("by", '["type"]')])
def test_results_with_another_setting_are_not_overwritten(
    name: str, value: str, own_run: Path, tmp_path: Path, script: Script
) -> None:
    command = ("antecedents", f"run={own_run}", "formats=[]")
    first = {"split": "test", "untrained": "1", "by": "[]"}
    assert script(*command, *(f"{key}={each}" for key, each in first.items()))[0] == 0
    folder = own_run / "antecedents" / "jsonl"
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    second = [f"{key}={each}" for key, each in (first | {name: value}).items()]
    status, _, err = script(*command, *second)
    assert (status, err.count("\n")) == (2, 1)
    assert f"{folder / 'antecedents.json'} holds the results with {name}={first[name]}, which would be over" in err
    assert err.endswith("name another folder with output=, or set overwrite=true\n")
    assert {path: path.read_bytes() for path in before} == before
    assert script(*command, *second, f"output={tmp_path / 'out'}")[0] == 0
    status, _, err = script(*command, f"output={tmp_path / 'out'}", *(f"{key}={each}" for key, each in first.items()))
    assert status == 2 and f"holds the results with {name}=" in err
    assert script(*command, *second, "overwrite=true")[0] == 0
    assert (folder / "antecedents.json").read_bytes() == (tmp_path / "out" / "antecedents.json").read_bytes()


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        (
            ("data.dev_share=0",),
            "split (dev) holds no mention with an antecedent before it, and heads are chosen on it",
        ),
        (("data.test_share=0",), "split (test) holds no mention with an antecedent before it\n"),
    ],
)
def test_an_empty_split_is_reported_with_its_use(
    shares: tuple[str], message: str, own_run: Path, tmp_path: Path, script: Script
) -> None:
    path = books(tmp_path / "books")
    assert message in script("antecedents", f"run={own_run}", "data=litbank", f"data.path={path}", *shares)[2]


def test_an_unknown_factor_is_refused_by_name(own_run: Path, script: Script) -> None:
    status, _, err = script("antecedents", f"run={own_run}", "by=[gnre]")
    assert status == 2
    assert "by ('gnre') must be one of the factors of these data: kind, template, type" in err


@pytest.mark.parametrize("wrong", [{"split": "dev"}, {"untrained": -1}, {"formats": ["gif"]}])
def test_a_wrong_setting_is_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        AntecedentSelection(**wrong)
