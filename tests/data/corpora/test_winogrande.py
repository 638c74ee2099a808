from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from readings import everything, pairs_in_one_split, pronoun, right, words

from anaphora.base.errors import UserError
from anaphora.data.corpora import winogrande
from anaphora.settings.data import Winogrande

ROW = {"qID": "q1-1", "sentence": "Ida lent Maud a pot since _ had two.", "option1": "Maud", "option2": "Ida"}


def lines(path: Path, *rows: dict[str, Any]) -> str:
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return str(path)


def twins(number: int) -> list[dict[str, Any]]:
    other = {**ROW, "sentence": "Ida lent Maud a pot since _ had none.", "answer": "1", "qID": f"q{number}-2"}
    return [{**ROW, "qID": f"q{number}-1", "answer": "2"}, other]


def test_the_blank_is_the_pronoun_and_the_answer_counts_from_one(tmp_path: Path) -> None:
    path = lines(tmp_path / "train_xs.jsonl", {**ROW, "answer": "2"})
    (example,) = everything(winogrande.read(Winogrande(path=path))[0])
    assert (pronoun(example), words(example), right(example)) == ("_", [["Ida"], ["Maud"]], ["Ida"])


def test_options_are_found_in_other_case_and_with_an_s_but_not_inside_words(tmp_path: Path) -> None:
    sentence = "Plants need Idas glass pots more than grass, so the _ were {}."
    rows = [
        {**ROW, "sentence": sentence.format("bought"), "option1": "plant", "option2": "pot", "answer": "1"},
        {**ROW, "sentence": sentence.format("sold"), "option1": "ida", "option2": "glass", "answer": "2"},
        {**ROW, "sentence": sentence.format("given"), "option1": "ass", "option2": "pot", "answer": "1"},
    ]
    splits, report = winogrande.read(Winogrande(path=lines(tmp_path / "x.jsonl", *rows), dev_share=0, test_share=0))
    assert [words(example) for example in splits["train"]] == [[["Plants"], ["pots"]], [["Idas"], ["glass"]]]
    assert report.reasons == {"a candidate is not in the sentence": 1}


def test_minimal_pairs_share_a_split_and_the_development_file_is_the_test_split(tmp_path: Path) -> None:
    lines(tmp_path / "train_s.jsonl", *(row for number in range(20) for row in twins(number)))
    lines(tmp_path / "dev.jsonl", *twins(99))
    splits, report = winogrande.read(Winogrande(path=str(tmp_path), dev_share=0.25))
    assert {name: len(examples) for name, examples in splits.items()} == {"train": 30, "dev": 10, "test": 2}
    assert report.rows == 42
    assert pairs_in_one_split(splits)
    assert len({example.minimal_pair for example in splits["test"]}) == 1


def test_the_size_chooses_the_training_file_of_a_folder(tmp_path: Path) -> None:
    lines(tmp_path / "train_s.jsonl", *twins(1))
    lines(tmp_path / "train_l.jsonl", *twins(1), *twins(2))
    assert winogrande.read(Winogrande(path=str(tmp_path)))[1].rows == 4
    assert winogrande.read(Winogrande(path=str(tmp_path), size="s"))[1].rows == 2
    with pytest.raises(UserError, match=r"the folder has no train_m\.jsonl"):
        winogrande.read(Winogrande(path=str(tmp_path), size="m"))
    with pytest.raises(UserError, match=r"'big'.* must be one of largest, xs, s, m, l, xl"):
        Winogrande(path="x", size="big")


def test_rows_without_an_answer_are_dropped(tmp_path: Path) -> None:
    splits, report = winogrande.read(Winogrande(path=lines(tmp_path / "test.jsonl", {**ROW, "answer": ""})))
    assert not everything(splits)
    assert report.reasons == {"it has no answer": 1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answer": "3"}, "train.jsonl, line 1, answer: '3' must be '1' or '2'"),
        ({"sentence": "No gap."}, "line 1, sentence: 'No gap.' must hold the blank _ once"),
        ({"option1": None}, "line 1, option1: None must be text"),
    ],
)
def test_a_broken_row_is_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = lines(tmp_path / "train.jsonl", {**ROW, "answer": "1", **change})
    with pytest.raises(UserError, match=message):
        winogrande.read(Winogrande(path=path))
