from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anaphora.analysis.tasks.antecedent_selection import CHOICE_SETS
from anaphora.settings.commands.analysis import AntecedentSelection

Script = Callable[..., tuple[int, str, str]]


def books(folder: Path) -> Path:
    """Ten invented books in the format of LitBank."""
    folder.mkdir()
    names = [("Anna", "she"), ("Tom", "he"), ("Mary", "she"), ("Peter", "he")]
    for number in range(10):
        rows: list[str] = []
        links: list[str] = []
        sentences: list[str] = []
        for line in range(4):
            name, pronoun = names[(number + line) % 4]
            sentences.append(f"{name} went to the park before {pronoun} went to the shop .")
            for place, word, form in ((0, name, "PROP"), (6, pronoun, "PRON")):
                identity = f"T{len(rows)}"
                rows.append(f"MENTION\t{identity}\t{line}\t{place}\t{line}\t{place}\t{word}\tPER\t{form}")
                links.append(f"COREF\t{identity}\t{name}")
        (folder / f"{number}_book_brat.txt").write_text("\n".join(sentences) + "\n")
        (folder / f"{number}_book_brat.ann").write_text("\n".join([*rows, *links]) + "\n")
    return folder


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


def test_the_runs_own_data_are_asked_by_default(own_run: Path, script: Script) -> None:
    status, _, err = script("antecedents", f"run={own_run}", "untrained=0", "formats=[]")
    assert status == 0, err
    tables = json.loads((own_run / "antecedents" / "jsonl" / "antecedents.json").read_text())
    assert {row["column"] for row in tables["rows"]} == {"all", "pronoun"}


def test_an_unknown_factor_is_refused_by_name(own_run: Path, script: Script) -> None:
    status, _, err = script("antecedents", f"run={own_run}", "by=[gnre]")
    assert status == 2
    assert "by ('gnre') must be taken from the factors of these data: kind, template, type" in err


@pytest.mark.parametrize("wrong", [{"split": "dev"}, {"by": ["kind", "kind"]}, {"untrained": -1}, {"formats": ["gif"]}])
def test_a_wrong_setting_is_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        AntecedentSelection(**wrong)
