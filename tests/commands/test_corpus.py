"""Tests of scripts/corpus.py: counts, dropped rows and shortcuts, on corpora of different forms."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import datasets
import pytest
from pyarrow import parquet

from anaphora.base.console import console
from anaphora.commands.corpus import CorpusDescription, _licence_sentence, corpus, corpus_table
from anaphora.data import store
from anaphora.data.corpora.division import origin_of
from anaphora.data.example import Example
from anaphora.data.records import ITEM_COLUMNS, write_parquet
from anaphora.settings.data import Conll2012, CorefUd, Data, Dpr, ExternalCorpus, OwnExamples
from anaphora.settings.variants import VARIANTS

BLOCK = "Maud met {} as she {}.\nshe\nMaud,{}\n{}\n\n"
DPR = "".join(
    BLOCK.format(name, verb, name, right)
    for name in ("Ida", "Ann", "Eve", "Joan", "Ruth")
    for verb, right in (("left", "Maud"), ("came", name))
)


@pytest.fixture
def described(script: Callable[..., Any], tmp_path: Path) -> Callable[..., str]:
    """Return a function (file text, settings) that returns the script's output for a DPR file."""

    def ran(text: str, *settings: str) -> str:
        path = tmp_path / "train.c.txt"
        path.write_text(text)
        done = script("corpus", "data=dpr", f"data.path={path}", f"output={tmp_path / 'out'}", *settings)
        assert done.status == 0, done.err
        return str(done.out)

    return ran


def row_of(printed: str, name: str) -> list[str]:
    """Return the cells of the table row with a name of several words."""
    words = name.split()
    rows = (line.split() for line in printed.splitlines())
    return next([name, *row[len(words) :]] for row in rows if row[: len(words)] == words)


def test_a_terminal_shows_that_the_data_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "train.c.txt"
    path.write_text(DPR)
    shown: list[str] = []

    def status(stage: str) -> AbstractContextManager[SimpleNamespace]:
        shown.append(stage)
        return nullcontext(SimpleNamespace(update=shown.append))

    monkeypatch.setattr(console, "status", status)
    corpus(CorpusDescription(data=Dpr(path=str(path), test_share=0)))
    assert shown[0] == "reading the data"


def test_items_rows_reasons_and_shortcuts_are_printed_and_written(
    described: Callable[..., str], tmp_path: Path
) -> None:
    printed = described(DPR + BLOCK.format("Ida", "sat", "Zoe", "Zoe"), "data.test_share=0.4")
    assert "read: 10 items from 11 rows in" in printed
    assert "dropped: 1 row (a candidate is not in the sentence)" in printed
    assert row_of(printed, "nearest")[1:4] == ["en", "4", "0.500"]
    assert row_of(printed, "bag by position")[3] == "1.000"
    with (tmp_path / "out" / "counts.csv").open() as file:
        assert [row["items"] for row in csv.DictReader(file)] == ["6", "4"]


def test_items_in_two_splits_are_counted(script: Callable[..., Any], finished: Path, table: Path) -> None:
    def items(split: str) -> list[tuple[str, tuple[int, ...]]]:
        rows = (json.loads(line) for line in table.read_text(encoding="utf-8").splitlines())
        return [(row["text"], tuple(row["pronoun"])) for row in rows if row["split"] == split]

    known = set(items("train"))
    shared = {split: sum(item in known for item in items(split)) for split in ("dev", "test")}
    assert shared["test"]
    counted = f"in two splits: of {len(items('test'))} items of test, {shared['test']} are in train too"
    described = script("corpus", "data=jsonl", f"data.path={table}")
    assert counted in described.out
    assert f"of {len(items('dev'))} items of dev, {shared['dev']} " in described.out
    assert counted in script("evaluate", f"run={finished}", f"output={finished.parent / 'answers'}").out
    alone = script("corpus", "data=controlled", "data.train_items=64", "data.test_items=32")
    assert alone.status == 0 and "in two splits" not in alone.out


def test_items_that_contradict_each_other_are_counted_within_a_split(
    script: Callable[..., Any], tmp_path: Path
) -> None:
    """Another candidate set for the same pronoun is no contradiction; nor is a repeated row."""
    row = {"text": "Maud met Ida as she left.", "language": "en", "pronoun": [16, 19], "split": "train"}
    rows = [
        {**row, "candidates": [[0, 4], [9, 12]], "antecedents": [0]},
        {**row, "candidates": [[0, 4], [9, 12]], "antecedents": [0]},
        {**row, "candidates": [[9, 12]], "antecedents": []},
    ]
    path = tmp_path / "items.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    assert "contradictions" not in script("corpus", "data=jsonl", f"data.path={path}").out
    rows += [{**rows[0], "antecedents": [1]}, {**rows[0], "antecedents": [1], "split": "test"}]
    path.write_text("\n".join(map(json.dumps, rows)))
    printed = " ".join(script("corpus", "data=jsonl", f"data.path={path}").out.split())
    assert "contradictions: 4 items of train have the text and pronoun of another item, but another answer" in printed
    assert "items of test have" not in printed


def test_chance_is_the_share_of_antecedents_among_the_candidates() -> None:
    spans = (((0, 1),), ((2, 3),), ((4, 5),))
    one = Example(text="A B C he", language="en", pronoun=(6, 8), candidates=spans, antecedents=(0,))
    items = [
        one,
        replace(one, antecedents=()),
        replace(one, antecedents=(0, 2)),
        replace(one, factors={"focal": "0,1"}),
    ]
    assert [corpus_table({"test": [item]})[0]["chance"] for item in items] == [1 / 3, 0, 2 / 3, 1 / 2]
    assert corpus_table({"test": items[:2]})[0]["chance"] == pytest.approx(1 / 6)


def test_the_items_are_a_data_set_with_documented_columns(
    described: Callable[..., str], script: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    described(DPR, "data.test_share=0.4")
    folder = tmp_path / "out"
    files = {split: str(folder / f"{split}.parquet") for split in ("train", "test")}
    loaded = datasets.load_dataset("parquet", data_files=files, cache_dir=str(tmp_path / "cache"))
    corpus = store.load(Dpr(path=str(tmp_path / "train.c.txt"), test_share=0.4))
    assert {split: list(rows) for split, rows in loaded.items()} == {
        split: corpus.splits[split].to_pylist() for split in files
    }
    schema = parquet.read_schema(files["test"])
    assert {field.name: field.metadata[b"description"].decode() for field in schema} == ITEM_COLUMNS
    by_card = datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "other"))
    assert {split: len(rows) for split, rows in by_card.items()} == {"train": 6, "test": 4}
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "- **`antecedents`**: " in card and "data.test_share=0.4" in card and str(tmp_path) not in card
    own = store.load(OwnExamples(path=files["test"], dev_share=0, test_share=1))
    assert own.examples("test") == corpus.examples("test")


def test_no_path_of_a_setting_is_published(script: Callable[..., Any], tmp_path: Path) -> None:
    more, folder = tmp_path / "more.txt", tmp_path / "out"
    for file in (tmp_path / "text.txt", more):
        file.write_text("\n\n".join(f"{file.stem} number {number} is read." for number in range(40)), encoding="utf-8")
    result = script(
        *("corpus", "data=plain_text", f"data.path={tmp_path / 'text.txt'}", f"data.also=[{more}]", f"output={folder}")
    )
    assert result.status == 0, result.err
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "data.path=text.txt" in card and 'data.also=["more.txt"]' in card and str(tmp_path) not in card


def test_files_that_the_command_has_not_written_are_not_overwritten(
    script: Callable[..., Any], described: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "README.md").write_text("# Mine\n")
    (tmp_path / "train.c.txt").write_text(DPR)
    given = ("data=dpr", f"data.path={tmp_path / 'train.c.txt'}")
    refused = script("corpus", *given, f"output={tmp_path}")
    assert refused.status == 2 and f"{tmp_path / 'README.md'} exists, and " in refused.err
    assert not (tmp_path / "counts.csv").exists()
    (tmp_path / "README.md").unlink()
    (tmp_path / "counts.csv").write_text("mine\n")
    refused = script("corpus", *given, f"output={tmp_path}")
    assert refused.status == 2 and f"{tmp_path / 'counts.csv'} exists, and " in refused.err
    described(DPR, "data.test_share=0.4")
    described(DPR, "data.test_share=1", "data.dev_share=0", "overwrite=true")
    assert sorted(path.name for path in (tmp_path / "out").glob("*.parquet")) == ["test.parquet"]


def test_a_command_that_was_stopped_while_it_wrote_can_be_given_again(
    script: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.c.txt").write_text(DPR)
    given = ("data=dpr", f"data.path={tmp_path / 'train.c.txt'}", f"output={tmp_path / 'out'}")

    def stopped_after_one(corpus: store.Corpus, folder: Path, descriptions: Mapping[str, str]) -> None:
        write_parquet(folder / "train.parquet", corpus._table("train"), descriptions)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(store.Corpus, "write_items", stopped_after_one)
        assert script("corpus", *given).status == 130
    assert script("corpus", *given).status == 0
    assert {path.name for path in (tmp_path / "out").glob("*.parquet")} >= {"train.parquet"}


def test_rows_that_mark_no_pronoun_are_counted_unless_most_do(script: Callable[..., Any], tmp_path: Path) -> None:
    row = {"text": "小红感谢美玲，因为她帮了忙。", "language": "zh", "candidates": [[0, 2], [4, 6]], "antecedents": [1]}
    path = tmp_path / "items.jsonl"
    for starts, said in (((9, 9, 9), False), ((9, 9, 10), True), ((10, 10, 8), False)):
        rows = [{**row, "pronoun": [start, start + 1], "split": "train"} for start in starts]
        path.write_text("\n".join(map(json.dumps, rows)))
        done = script("corpus", "data=jsonl", f"data.path={path}")
        assert done.status == 0, done.err
        note = "no pronoun is marked in 1 of 3 items; in “小红感谢美玲，因为她帮了忙。” [10, 11] is “帮”"
        assert (note in done.out) is said


@pytest.mark.parametrize(("marked", "span", "counted"), [("他", (5, 6), True), ("他自己", (10, 13), False)])
def test_a_part_of_other_is_no_chinese_pronoun_and_he_himself_is_one(
    marked: str, span: tuple[int, int], counted: bool, script: Callable[..., Any], tmp_path: Path
) -> None:
    row = {"language": "zh", "candidates": [[0, 2]], "antecedents": [0], "split": "train"}
    text = "小明知道其他人说，他他自己来了。"
    assert text[slice(*span)] == marked
    rows = [{**row, "text": text, "pronoun": each} for each in (span, (9, 10), (9, 10))]
    path = tmp_path / "items.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    printed = script("corpus", "data=jsonl", f"data.path={path}").out
    assert ("no pronoun is marked in 1 of 3 items" in printed) is counted


def test_texts_in_two_splits_are_counted(script: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "text.jsonl"
    for copies, said in ((1, False), (2, True)):
        path.write_text("".join(json.dumps({"text": f"Page {number}."}) + "\n" for number in range(20)) * copies)
        printed = script("corpus", "data=plain_text", f"data.path={path}", "data.test_share=0.5").out
        assert (re.search(r"in two splits: of 20 texts of test, \d+ \w+ in train too", printed) is not None) is said


def test_items_about_another_pronoun_of_a_text_in_another_split_are_counted(
    script: Callable[..., Any], tmp_path: Path
) -> None:
    row = {"text": "小红说她找她的书。", "language": "zh", "candidates": [[0, 2]], "antecedents": [0]}
    rows = [{**row, "pronoun": [3, 4], "split": "train"}, {**row, "pronoun": [5, 6], "split": "test"}]
    path = tmp_path / "items.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    printed = script("corpus", "data=jsonl", f"data.path={path}").out
    assert "in two splits: of 1 item of test, 1 asks about another pronoun of a text in train\n" in printed
    assert "same text and pronoun" not in printed


def test_columns_that_say_nothing_are_not_printed(described: Callable[..., str]) -> None:
    printed = described(DPR)
    header = printed[: printed.index("train")]
    assert "stratum" not in header
    assert "distance" not in header


def test_without_a_training_split_the_learned_shortcuts_are_left_out_and_that_is_said(
    described: Callable[..., str],
) -> None:
    printed = described(DPR, "data.test_share=1", "data.dev_share=0")
    assert row_of(printed, "nearest")[2] == "10"
    assert "bag of words" not in printed
    assert "no training split: there are no learned shortcuts" in printed


@pytest.mark.parametrize("items", [12, 24, 120])
def test_few_items_are_too_few_to_train_on_and_perfect_shortcuts_have_no_interval(
    items: int, described: Callable[..., str], tmp_path: Path
) -> None:
    pairs = [(f"Ida{number}", verb) for number in range(items // 2) for verb in ("left", "came")]
    printed = described("".join(BLOCK.format(name, verb, name, "Maud") for name, verb in pairs))
    training = row_of(printed, "train en")[1]
    assert f"too few to train on if they are natural sentences: {training} training items" in printed
    with (tmp_path / "out" / "shortcuts.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert any(row["accuracy"] == "1.0" for row in rows)
    assert ("95 % intervals" in printed) is any(row["low"] != row["high"] for row in rows)
    perfect = [row for row in rows if row["accuracy"] in ("0.0", "1.0")]
    assert all(row["low"] == row["high"] in ("", row["accuracy"]) for row in perfect)
    assert ("There is no interval if" in printed) is any(row["low"] for row in perfect)


def test_shortcuts_of_the_corpus_before_do_not_stay(
    described: Callable[..., str], script: Callable[..., Any], tmp_path: Path
) -> None:
    described(DPR)
    assert (tmp_path / "out" / "shortcuts.csv").exists()
    text = tmp_path / "own.txt"
    text.write_text("The gate opened.\n\nNobody came in before the rain.\n" * 20)
    given = ("corpus", "data=plain_text", f"data.path={text}", f"output={tmp_path / 'out'}")
    assert "README.md holds the results with data=dpr, which would be overwritten" in script(*given).err
    done = script(*given, "overwrite=true")
    assert done.status == 0, done.err
    assert not (tmp_path / "out" / "shortcuts.csv").exists()


def test_enough_items_are_not_called_too_few(described: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anaphora.commands.corpus.FEWEST_TRAINING_ITEMS", 5)
    assert "too few to train on" not in described(DPR)


def test_without_a_test_split_that_is_said(described: Callable[..., str]) -> None:
    printed = described(DPR, "data.test_share=0")
    assert "no test split: no shortcut is measured" in printed
    assert "nearest" not in printed


def test_what_a_verdict_would_miss_is_said(
    described: Callable[..., str], script: Callable[..., Any], tmp_path: Path
) -> None:
    assert "no quads in the test split: quad accuracy cannot be measured" in described(DPR)
    page = (Path(__file__).parents[2] / "docs" / "own_data.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if '"minimal_pair": "' in line]

    def printed_of(lines: list[str]) -> str:
        (tmp_path / "quads.jsonl").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        done = script(
            "corpus", "data=jsonl", f"data.path={tmp_path / 'quads.jsonl'}", "data.test_share=1", "data.dev_share=0"
        )
        assert done.status == 0
        return str(done.out)

    complete = printed_of(rows)
    assert "no quads" not in complete and "no minimal pairs" not in complete and "no label" not in complete
    lines = " ".join(complete.split())
    assert "English, role cues: too few items in the test split for significance: even a head that is always" in lines
    assert "English, role cues: too few templates or groups in the test split (1; at least 6 are needed):" in lines
    assert "no label `kind`" in printed_of([row.replace('"kind": "role"', '"type": "own"') for row in rows])
    printed = printed_of([row.replace('"2a"', f'"2{number}"').replace('"2b"', '""') for number, row in enumerate(rows)])
    assert "no minimal pairs in the test split of Chinese" in printed  # each pair has one half
    printed = printed_of([row for row in rows if '"minimal_pair": "2b"' not in row])
    assert "no quads in the test split of Chinese" in printed and "no quads in the test split:" not in printed


def test_source_licence_and_time_are_printed_for_items_and_for_texts(
    described: Callable[..., str], script: Callable[..., Any], tmp_path: Path
) -> None:
    printed = described(DPR)
    assert f"source: {tmp_path / 'train.c.txt'}\n" in printed
    assert "licence of the files published as dpr, as stated: none (docs/corpora.md)\n" in printed
    (tmp_path / "train.tsv").write_text("sentence\tlabel\n" + "".join(f"fine {number}\t1\n" for number in range(5)))
    (tmp_path / "own.txt").write_text("One paragraph.\n\nAnd another.\n")
    reviews = script("corpus", "data=sst2", f"data.path={tmp_path}")
    assert "licence of the files published as sst2, as stated: none for the data (docs/corpora.md)\n" in reviews.out
    assert re.search(r"^read: 5 texts from 5 rows in \d+\.\d s$", reviews.out, re.MULTILINE)
    own = script(
        "corpus", "data=plain_text", f"data.path={tmp_path / 'own.txt'}", f"data.also=[{tmp_path / 'own.txt'}]"
    )
    assert f"source: {tmp_path / 'own.txt'}, {tmp_path / 'own.txt'}\n" in own.out
    assert re.search(r"^read: 4 texts from 4 rows in \d+\.\d s$", own.out, re.MULTILINE)
    assert "licence of" not in own.out


@pytest.mark.parametrize("name", VARIANTS[Data])
def test_no_licence_is_claimed_for_a_file_whose_origin_is_not_known(name: str) -> None:
    """Readers also accept other files in the same format, so the stated licence is that of the published files."""
    kind = VARIANTS[Data][name]
    if not issubclass(kind, ExternalCorpus):
        assert _licence_sentence(kind()) == "Generated by the package, which states none for it."
        return
    licence = origin_of(kind(path="x")).licence
    stated = f" Those published as {name} have, as their source states it: {licence}." if licence else ""
    assert _licence_sentence(kind(path="x")) == f"That of the sources from which it was made.{stated}"


def test_a_format_of_several_corpora_has_the_licence_of_none_of_them() -> None:
    for kind in (Conll2012, CorefUd):
        assert origin_of(kind(path="x")).licence.startswith("varies by corpus: ")
