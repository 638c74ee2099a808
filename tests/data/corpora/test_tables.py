from __future__ import annotations

import contextlib
import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pandas
import pytest

from anaphora.base.errors import UserError
from anaphora.data.corpora import division, dpr, gap, labelled_text, reading, tables
from anaphora.data.corpora.division import lines_with_ends
from anaphora.data.example import Example
from anaphora.settings.data import Dpr, Gap, LabelledText, OwnExamples

ITEM = {
    "text": "Anna met Berta because she was free.",
    "language": "en",
    "pronoun": [23, 26],
    "candidates": [[0, 4], [9, 14]],
    "antecedents": [0],
}
DPR = """Then the man saw the goats, and he ran.
he
Then,the man
the man

Then the man saw the goats, and he ate.
he
Then,the man
Then

Tom's dad and Tom met; Tom was late, so he ran.
he
Tom,Tom's dad
Tom

Tom's dad and Tom met; Tom was late, so he wept.
he
Tom,Tom's dad
Tom's dad
"""
COLUMNS = ["ID", "Text", "Pronoun", "Pronoun-offset", "A", "A-offset", "A-coref", "B", "B-offset", "B-coref", "URL"]


def words(example: Example) -> list[list[str]]:
    return [[example.text[start:end] for start, end in spans] for spans in example.candidates]


def everything(splits: dict[str, list[Example]]) -> list[Example]:
    return [example for examples in splits.values() for example in examples]


def gap_file(path: Path, rows: list[tuple[str, str, str, bool, str, bool]]) -> Path:
    """Write rows of text, pronoun, name A, correct, name B, correct; the last occurrence of each word is marked."""
    lines = ["\t".join(COLUMNS)]
    for number, (text, pronoun, first, right, second, also) in enumerate(rows):
        cells = [f"x-{number}", text, pronoun, text.rindex(pronoun), first, text.rindex(first), str(right).upper()]
        lines.append("\t".join(map(str, [*cells, second, text.rindex(second), str(also).upper(), "http://x/Anna"])))
    path.write_text("\n".join(lines) + "\n")
    return path


SAID = 'Anna Lee saw "Berta; Anna waved, and Berta said she'


def test_dpr_takes_the_first_occurrence_as_a_whole_word(tmp_path: Path) -> None:
    path = tmp_path / "train.c.txt"
    path.write_text("Then he saw the heron, and he ran.\nhe\nThen,the heron\nthe heron\n")
    (example,) = everything(dpr.read(Dpr(path=str(path)))[0])
    assert example.pronoun == (5, 7)
    assert words(example) == [["Then"], ["the heron"]]
    assert example.antecedents == (1,)


def test_dpr_minimal_pairs_share_group_minimal_pair_and_split(tmp_path: Path) -> None:
    path = tmp_path / "train.c.txt"
    path.write_text(DPR)
    splits, report = dpr.read(Dpr(path=str(path), dev_share=0.0, test_share=0.5))
    assert (report.rows, report.dropped) == (4, ())
    assert [len(splits[name]) for name in ("train", "dev", "test")] == [2, 0, 2]
    for examples in (splits["train"], splits["test"]):
        assert len({example.group for example in examples}) == len({example.minimal_pair for example in examples}) == 1
        assert {example.antecedents for example in examples} == {(0,), (1,)}


def test_dpr_gives_a_candidate_all_its_mentions_but_none_inside_the_other(tmp_path: Path) -> None:
    path = tmp_path / "train.c.txt"
    path.write_text(DPR)
    items = everything(dpr.read(Dpr(path=str(path)))[0])
    example = next(example for example in items if "wept" in example.text)
    assert words(example) == [["Tom's dad"], ["Tom", "Tom"]]
    assert example.antecedents == (0,)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Anna ran.\nshe\nAnna,Berta\n", "line 1: a block of 3 lines"),
        ("Anna ran.\nshe\nAnna,Berta\nAnna\n", "line 1, pronoun: 'she' is not a word"),
        ("\n\nshe ran.\nshe\nAnna\nAnna\n", "line 5: candidates 'Anna' must be two or more"),
        ("she ran.\nshe\nAnna,Berta\nClara\n", r"line 4: answer 'Clara' must be one of \['Anna', 'Berta'\]"),
        ("\n", "no block of four lines"),
    ],
)
def test_a_broken_dpr_block_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "train.c.txt"
    path.write_text(text)
    with pytest.raises(UserError, match=message):
        dpr.read(Dpr(path=str(path)))


def test_dpr_drops_and_reports_what_cannot_be_asked(tmp_path: Path) -> None:
    path = tmp_path / "train.c.txt"
    path.write_text("she met Anna.\nshe\nAnna,Berta\nAnna\n")
    splits, report = dpr.read(Dpr(path=str(path)))
    assert not everything(splits)
    assert report.reasons == {"a candidate is not in the sentence": 1}


def test_gap_reads_quotes_as_letters_and_gathers_whole_word_mentions(tmp_path: Path) -> None:
    path = gap_file(tmp_path / "gap-development.tsv", [(f"{SAID} ran.", "she", "Anna", True, "Berta", False)])
    (example,) = everything(gap.read(Gap(path=str(path)))[0])
    assert words(example) == [["Anna", "Anna"], ["Berta", "Berta"]]
    assert example.text[slice(*example.pronoun)] == "she"
    assert (example.antecedents, example.factors["gender"]) == ((0,), "female")


def test_gap_does_not_look_for_a_name_inside_the_other(tmp_path: Path) -> None:
    path = gap_file(tmp_path / "a.tsv", [("Anna saw Anna Lee and she ran.", "she", "Anna Lee", True, "Anna", False)])
    path.write_text(path.read_text().replace("\tAnna\t9\t", "\tAnna\t0\t"))
    (example,) = everything(gap.read(Gap(path=str(path)))[0])
    assert words(example) == [["Anna"], ["Anna Lee"]]
    assert example.antecedents == (1,)


def test_gap_rows_with_neither_name_right_have_no_antecedent(tmp_path: Path) -> None:
    path = gap_file(tmp_path / "gap-development.tsv", [(f"{SAID} ran.", "she", "Anna", False, "Berta", False)])
    (example,) = everything(gap.read(Gap(path=str(path)))[0])
    assert example.antecedents == ()


def test_the_gap_page_address_is_never_used(tmp_path: Path) -> None:
    path = gap_file(tmp_path / "a.tsv", [(f"{SAID} ran.", "she", "Anna", True, "Berta", False)])
    (example,) = everything(gap.read(Gap(path=str(path)))[0])
    assert "http" not in repr(example)


def test_the_gap_validation_file_is_the_test_split_and_equal_texts_stay_together(tmp_path: Path) -> None:
    rows = [(f"{SAID} ran {number // 2} miles.", "she", "Anna", True, "Berta", False) for number in range(20)]
    gap_file(tmp_path / gap.DEVELOPMENT, rows)
    gap_file(tmp_path / gap.VALIDATION, [(f"{SAID} wept.", "she", "Anna", False, "Berta", True)])
    splits, report = gap.read(Gap(path=str(tmp_path), dev_share=0.2))
    assert {name: len(examples) for name, examples in splits.items()} == {"train": 16, "dev": 4, "test": 1}
    assert report.rows == 21
    assert not {each.text for each in splits["train"]} & {each.text for each in splits["dev"]}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("\tTRUE\t", "\tYES\t", "line 2, A-coref: 'YES' must be TRUE or FALSE"),
        ("\tAnna\t21\t", "\tAnna\t20\t", "line 2, A-offset: the text at 20 is ' Ann', not 'Anna'"),
        ("\tAnna\t21\t", "\tAnna\tx\t", "line 2, A-offset: 'x' must be a whole number"),
        ("Pronoun-offset", "Offset", "line 1: columns Pronoun-offset are missing"),
    ],
)
def test_a_broken_gap_row_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = gap_file(tmp_path / "gap-development.tsv", [(f"{SAID} ran.", "she", "Anna", True, "Berta", False)])
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(UserError, match=message):
        gap.read(Gap(path=str(path)))


def as_jsonl(folder: Path, rows: list[dict[str, Any]]) -> Path:
    path = folder / "items.jsonl"
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8")
    return path


def as_csv(folder: Path, rows: list[dict[str, Any]]) -> Path:
    path = folder / "items.csv"
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        for row in rows:
            writer.writerow({name: each if isinstance(each, str) else json.dumps(each) for name, each in row.items()})
    return path


def as_parquet(folder: Path, rows: list[dict[str, Any]]) -> Path:
    import pyarrow
    from pyarrow import parquet

    path = folder / "items.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path


def test_a_field_that_is_written_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    path.write_text(json.dumps(ITEM)[:-1] + ', "antecedents": [1]}\n')
    with pytest.raises(UserError, match=r"items.jsonl, line 1, antecedents: the field is written twice in one object$"):
        tables.read(OwnExamples(path=str(path)))


def test_rows_of_a_parquet_file_are_counted_over_all_its_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_ROWS_AT_ONCE", 2)
    path = as_parquet(tmp_path, [*[ITEM] * 4, {**ITEM, "pronoun": [0, 99]}])
    with pytest.raises(UserError, match=r"items.parquet, row 5, pronoun: "):
        tables.read(OwnExamples(path=str(path)))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_table_has_the_same_lines_with_any_line_end(end: str) -> None:
    text = f"a,b{end}{end}\u2028c\x0b,d{end}e"
    assert list(lines_with_ends(text)) == list(io.StringIO(text, newline=""))


@pytest.mark.parametrize("name", ["group", "minimal_pair"])
def test_what_belongs_together_may_not_be_in_two_splits(name: str, tmp_path: Path) -> None:
    rows = [{**ITEM, name: "one", "split": split} for split in ("train", "train", "test")]
    message = rf"line 3, {name}: 'one' is in split test here and in split train at .*items.jsonl, line 1; what belongs"
    with pytest.raises(UserError, match=message):
        tables.read(OwnExamples(path=str(as_jsonl(tmp_path, rows))))


@pytest.mark.parametrize("write", [as_jsonl, as_csv, as_parquet])
def test_all_three_kinds_of_table_give_the_same_examples(tmp_path: Path, write: Any) -> None:
    second = {**ITEM, "text": "小红见到小丽，因为她有空。", "language": "zh", "pronoun": [9, 10]}
    second["candidates"] = [[0, 2], [4, 6]]
    rows = [
        {**ITEM, "factors": {"cue": "free"}, "group": "a", "split": "train"},
        {**second, "factors": {"cue": "有空"}, "group": "b", "split": "test"},
    ]
    splits, report = tables.read(OwnExamples(path=str(write(tmp_path, rows))))
    assert report.rows == 2
    assert [example.factors["cue"] for example in splits["train"]] == ["free"]
    assert words(splits["test"][0]) == [["小红"], ["小丽"]]
    assert splits["dev"] == []


@pytest.mark.parametrize("write", [as_jsonl, as_csv, as_parquet])
def test_a_factor_without_a_value_is_left_out(tmp_path: Path, write: Any) -> None:
    rows = [{**ITEM, "factors": {"cue": "free", "type": None}, "split": "train"}]
    (example,) = tables.read(OwnExamples(path=str(write(tmp_path, rows))))[0]["train"]
    assert example.factors == {"cue": "free"}


@pytest.mark.parametrize("write", [as_jsonl, as_csv, as_parquet])
def test_the_older_column_minimal_pair_is_read_as_minimal_pair(tmp_path: Path, write: Any) -> None:
    path = write(tmp_path, [{**ITEM, "twin": "m1", "split": "train"}])
    splits, _ = tables.read(OwnExamples(path=str(path)))
    assert [example.minimal_pair for example in splits["train"]] == ["m1"]


def test_a_table_without_splits_is_divided_by_group_and_the_seed_decides(tmp_path: Path) -> None:
    rows = [{**ITEM, "group": f"g{number // 4}", "minimal_pair": f"t{number // 2}"} for number in range(80)]
    path = str(as_jsonl(tmp_path, rows))
    splits, _ = tables.read(OwnExamples(path=path, dev_share=0.1, test_share=0.2))
    assert {name: len(examples) for name, examples in splits.items()} == {"train": 56, "dev": 8, "test": 16}
    groups = [{example.group for example in examples} for examples in splits.values()]
    assert sum(map(len, groups)) == len(set.union(*groups))
    assert tables.read(OwnExamples(path=path, dev_share=0.1, test_share=0.2))[0] == splits
    assert tables.read(OwnExamples(path=path, dev_share=0.1, test_share=0.2, seed=1))[0] != splits


@pytest.mark.parametrize("groups", [("a", "b"), ("a", ""), ("", "a")])
def test_groups_that_would_divide_a_minimal_pair_are_refused(groups: tuple[str, str], tmp_path: Path) -> None:
    pair = [{**ITEM, "minimal_pair": "one", "group": group} for group in groups]
    message = (
        rf"items.jsonl, line 3, minimal_pair: 'one' is in group '{groups[1]}' here and in group '{groups[0]}' at "
        r".*items.jsonl, line 2; the rows of a minimal pair must have one group"
    )
    with pytest.raises(UserError, match=message):
        tables.read(OwnExamples(path=str(as_jsonl(tmp_path, [ITEM, *pair]))))
    path = str(as_jsonl(tmp_path, [{**row, "split": "train"} for row in (ITEM, *pair)]))
    assert len(tables.read(OwnExamples(path=path))[0]["train"]) == 3
    with pytest.raises(UserError, match=message):
        tables.read(OwnExamples(path=path, folds=2))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text"', r"items.jsonl, line 3: not JSON"),
        ("{", r"line 3: '{' is no whole JSON object; write each row as .* on one line"),
        (json.dumps([ITEM], indent=1), r"line 3: '\[' is no whole JSON object; write each row as .* on one line"),
        ("[1]", r"line 3: '\[1\]' must be an object"),
        (json.dumps({**ITEM, "pronoun": [23, 99]}), r"line 3, pronoun: \[23, 99\] must be"),
        (json.dumps({**ITEM, "split": "valid"}), "line 3, split: 'valid' must be one of train, dev, test"),
        (json.dumps({**ITEM, "split": "train"}), "line 3, split: some rows have a split"),
        (json.dumps({**ITEM, "candidates": "Anna"}), "line 3, candidates: 'Anna' must be a list"),
        (
            json.dumps({**ITEM, "factors": {"focal": "1"}}),
            "line 3, factors.focal: '1' holds no antecedent; it must include 0 ",
        ),
        (
            json.dumps({**ITEM, "factors": {"distance": "3.0"}}),
            "line 3, factors.distance: '3.0' must be a whole number",
        ),
        (json.dumps({**ITEM, "factors": {"distance": -3}}), "line 3, factors.distance: '-3' must be a whole number"),
        ("[" * 100_000, "line 3: the JSON is nested too deeply"),
        (json.dumps({**ITEM, "text": "\ud800"}), "line 3: it has half of a character"),
        (json.dumps(ITEM).replace("23", "9" * 5000, 1), "line 3: the JSON cannot be read"),
    ],
)
def test_a_broken_line_is_named_with_file_line_field_and_value(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "items.jsonl"
    path.write_text(f"{json.dumps(ITEM)}\n\n{line}\n")
    with pytest.raises(UserError, match=message):
        tables.read(OwnExamples(path=str(path)))


@pytest.mark.parametrize(
    ("language", "text", "is_right"),
    [
        ("zh", "Anna met Berta because she was free.", False),
        ("zh", "[MASK] met Berta, Ünal and Ж.", False),
        ("zh", "Anna 说", True),
        ("zh", "3 + 4 = 7 !", True),
        ("en", "王芳碰到李强以后,她去了商店。", False),
        ("en", "王芳碰到李强以后,[MASK]去了3家商店。", False),
        ("en", "王芳 met 李强", True),
        ("en", "Она ушла.", True),
    ],
)
def test_a_language_that_every_letter_contradicts_is_reported(
    language: str, text: str, is_right: bool, tmp_path: Path
) -> None:
    item: dict[str, Any] = {"text": text, "language": language, "antecedents": [0]}
    item["pronoun"] = [0, len(re.findall(r"\w+|.", text)[0])]
    item["candidates"] = [[len(text) - 1, len(text)]]
    path = as_jsonl(tmp_path, [{**ITEM, "text": "Who is she?", "pronoun": [7, 10], "candidates": [[0, 3]]}, item])
    if is_right:
        assert len(everything(tables.read(OwnExamples(path=str(path)))[0])) == 2
        return
    with pytest.raises(UserError, match=f"line 2, language: '{language}' does not fit '.*', which has .*Chinese char"):
        tables.read(OwnExamples(path=str(path)))


def test_ends_that_are_places_of_last_characters_are_reported(tmp_path: Path) -> None:
    inclusive: dict[str, Any] = {**ITEM, "pronoun": [23, 25], "candidates": [[0, 3], [9, 13]]}
    path = as_jsonl(tmp_path, [inclusive])
    with pytest.raises(UserError, match=r"line 1, pronoun: .* these fit as places of the first and the last character"):
        tables.read(OwnExamples(path=str(path)))


@pytest.mark.parametrize("write", [as_jsonl, as_csv, as_parquet])
def test_offsets_in_another_unit_are_refused_in_every_kind_of_table(
    write: Callable[[Path, list[dict[str, Any]]], Path], tmp_path: Path
) -> None:
    text = "🙂 Anna met Berta because she was free."
    item = {**ITEM, "text": text, "pronoun": [26, 29], "candidates": [[3, 7], [12, 17]]}
    with pytest.raises(UserError, match=r"pronoun: \[26, 29\] covers 'he ' .* these fit as UTF-16 code units"):
        tables.read(OwnExamples(path=str(write(tmp_path, [item]))))


def test_a_broken_cell_is_named(tmp_path: Path) -> None:
    path = as_csv(tmp_path, [ITEM])
    path.write_text(path.read_text(encoding="utf-8-sig").replace('"[23, 26]"', "she"))
    with pytest.raises(UserError, match=r"line 2: pronoun \('she'\) must be JSON, e.g. \[0, 3\]"):
        tables.read(OwnExamples(path=str(path)))
    path = as_csv(tmp_path, [{**ITEM, "factors": {}}])
    path.write_text(path.read_text(encoding="utf-8-sig").replace("{}", "kind=role"))
    with pytest.raises(UserError, match=r"""factors \('kind=role'\) must be JSON, e.g. \{"kind": "role"\}"""):
        tables.read(OwnExamples(path=str(path)))


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_a_line_break_inside_a_cell_stays_as_it_is_written(tmp_path: Path, ending: str) -> None:
    text = f"Anna,\r\nsaw Emma. {ITEM['text']}"
    moved = len("Anna,\r\nsaw Emma. ")
    item: dict[str, Any] = {**ITEM, "text": text}
    item["pronoun"] = [each + moved for each in item["pronoun"]]
    item["candidates"] = [[each + moved for each in span] for span in item["candidates"]]
    rows = [{**item, "split": "train"}]
    path = as_csv(tmp_path, rows)
    header, _, rest = path.read_bytes().partition(b"\r\n")
    path.write_bytes(header + ending.encode() + rest)
    (by_table,) = tables.read(OwnExamples(path=str(path)))[0]["train"]
    (by_lines,) = tables.read(OwnExamples(path=str(as_jsonl(tmp_path, rows))))[0]["train"]
    assert by_table == by_lines and by_table.text == text


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ('"a, b 1"', '"a, b 1', 3),  # up to the quote of a later row
        ("no quote 2", '"no quote 2', 4),  # up to the end
        ('"a, b 1"', '"a, "b" 1"', 3),
        ("number", '"number', 1),
    ],
)
def test_a_cell_whose_quotes_do_not_match_is_named_by_its_row(tmp_path: Path, old: str, new: str, line: int) -> None:
    path = tmp_path / "items.csv"
    path.write_text('number,text\n0,no quote 0\n1,"a, b 1"\n2,no quote 2\n3,"a, b 3"\n4,no quote 4\n')
    assert len(list(tables.rows(path))) == 5
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(UserError, match=f"items.csv, line {line}: a cell that begins with a quote must end with one"):
        list(tables.rows(path))


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_csv_file_of_a_spreadsheet_or_of_pandas_gives_the_same_examples(separator: str, tmp_path: Path) -> None:
    written = {name: value if isinstance(value, str) else json.dumps(value) for name, value in ITEM.items()}
    frame = pandas.DataFrame([written, {**written, "text": written["text"].replace("free", "late")}])
    path = tmp_path / "items.csv"
    frame.to_csv(path, sep=separator)  # with an index, whose column has no name
    with path.open("a", encoding="utf-8") as file:
        file.write(separator * len(written) + "\n")
    splits, report = tables.read(OwnExamples(path=str(path)))
    assert sorted(one.text for one in everything(splits)) == sorted(frame["text"]) and report.rows == 2
    frame.set_index(pandas.Index([3, 7])).to_parquet(tmp_path / "items.parquet")
    assert everything(tables.read(OwnExamples(path=str(tmp_path / "items.parquet")))[0]) == everything(splits)


def test_the_error_on_a_csv_of_one_row_without_a_header_names_the_columns(tmp_path: Path) -> None:
    path = tmp_path / "items.csv"
    path.write_text("Anna met Berta because she was free.,en\n", encoding="utf-8")
    columns = "text, language, pronoun, candidates and antecedents"
    with pytest.raises(UserError, match=f"no rows below its first line, which must name the columns {columns}"):
        tables.read(OwnExamples(path=str(path)))
    with pytest.raises(UserError, match=r"no rows below its first line, which must name the columns text and label"):
        labelled_text.read(LabelledText(path=str(path)))


@pytest.mark.parametrize(("dev", "test"), [(0.1, 0.9), (0.3, 0.7), (0.5, 0.5), (1.0, 0.0)])
def test_shares_that_leave_nothing_for_training_leave_no_row_by_rounding(
    dev: float, test: float, tmp_path: Path
) -> None:
    for count in (1, 3, 5, 15, 25):
        path = as_jsonl(tmp_path, [{**ITEM, "group": str(number)} for number in range(count)])
        splits, _ = tables.read(OwnExamples(path=str(path), dev_share=dev, test_share=test))
        assert not splits["train"] and len(splits["test"]) == round(test * count)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_empty_rows_above_the_header_are_left_out_and_lines_are_counted_with_them(
    separator: str, tmp_path: Path
) -> None:
    written = {name: value if isinstance(value, str) else json.dumps(value) for name, value in ITEM.items()}
    path = tmp_path / "items.csv"
    table = pandas.DataFrame([written]).to_csv(sep=separator, index=False)
    path.write_text(f"\n{separator * 3}\n{table}", encoding="utf-8")
    assert [one.text for one in everything(tables.read(OwnExamples(path=str(path)))[0])] == [ITEM["text"]]
    path.write_text(f"sep={separator}\n{table}", encoding="utf-8")  # for Excel
    assert [one.text for one in everything(tables.read(OwnExamples(path=str(path)))[0])] == [ITEM["text"]]
    path.write_text(f"\n{separator * 3}\n{table}a{separator}b\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"items.csv, line 5: the number of cells differs from the header's"):
        list(tables.rows(path))
    path.write_text(f"\n{separator * 3}\ntext{separator}text\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"items.csv, line 3: two columns have the same name"):
        list(tables.rows(path))
    for content in ("\n", f"{separator * 3}\n\n"):
        path.write_text(content, encoding="utf-8")
        assert list(tables.rows(path)) == []


def test_a_column_in_other_letters_is_named(tmp_path: Path) -> None:
    path = as_csv(tmp_path, [{name.title(): value for name, value in ITEM.items()}])
    with pytest.raises(UserError, match=r"line 2, Text: unknown field; did you mean text\? \(allowed: text, "):
        tables.read(OwnExamples(path=str(path)))


def test_a_damaged_table_is_reported_in_one_line(tmp_path: Path) -> None:
    path = as_csv(tmp_path, [{**ITEM, "text": "a" * 200_000}])
    with pytest.raises(UserError, match=r"line 2: a cell has more than 131,072 characters, .* write .* as .jsonl"):
        tables.read(OwnExamples(path=str(path)))
    path.write_text("text,text\na,b\n")
    with pytest.raises(UserError, match="line 1: two columns have the same name"):
        tables.read(OwnExamples(path=str(path)))
    table = as_parquet(tmp_path, [ITEM] * 50)
    whole = table.read_bytes()
    for place in range(8, len(whole), 97):
        table.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        with contextlib.suppress(UserError):  # anything else is a traceback
            tables.read(OwnExamples(path=str(table)))


@pytest.mark.parametrize("kind", ["one split", "several splits", "file"])
def test_the_error_for_data_stored_by_datasets_says_how_they_are_converted(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = datasets.Dataset.from_list([ITEM])
    (datasets.DatasetDict(train=rows) if kind == "several splits" else rows).save_to_disk("stored")
    path = next(Path("stored").glob("*.arrow")) if kind == "file" else Path("stored")
    with pytest.raises(UserError) as raised:
        tables.read(OwnExamples(path=str(path)))
    (advice,) = re.findall(r", as (datasets\..*) writes it$", str(raised.value))
    eval(advice, {"datasets": datasets})
    splits, _ = tables.read(OwnExamples(path="items.parquet"))
    assert [example.text for items in splits.values() for example in items] == [ITEM["text"]]


def test_a_wrong_kind_of_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no such file"):
        tables.read(OwnExamples(path=str(tmp_path / "none.jsonl")))
    other = tmp_path / "items.xlsx"
    other.write_text("")
    with pytest.raises(UserError, match=r"'.xlsx' must be one of .jsonl, .csv, .parquet"):
        tables.read(OwnExamples(path=str(other)))
    with pytest.raises(UserError, match=r"is a folder; name one file of .jsonl, .csv, .parquet \(it holds items.xlsx"):
        tables.read(OwnExamples(path=str(tmp_path)))
    plain = tmp_path / "items"
    plain.write_text("")
    with pytest.raises(UserError, match=r"items\): the file's name must end in one of .jsonl, .csv, .parquet$"):
        tables.read(OwnExamples(path=str(plain)))
    broken = tmp_path / "items.parquet"
    broken.write_text("no")
    with pytest.raises(UserError, match="not a Parquet file"):
        tables.read(OwnExamples(path=str(broken)))
    latin = tmp_path / "items.jsonl"
    latin.write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="is not UTF-8"):
        tables.read(OwnExamples(path=str(latin)))


def test_words_are_found_whole_only() -> None:
    assert division.occurrences("he", "The heron, he and HE; he") == [(11, 13), (22, 24)]


def test_shares_that_are_more_than_all_are_refused() -> None:
    with pytest.raises(UserError, match=r"data.dev_share \+ data.test_share \(1.1\) must be at most 1"):
        OwnExamples(path="x", dev_share=0.5, test_share=0.6)
    with pytest.raises(UserError, match=r"data.test_share \(1.2\)"):
        Dpr(path="x", test_share=1.2)
