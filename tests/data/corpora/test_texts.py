from __future__ import annotations

import csv
import gzip
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Literal

import datasets
import pandas
import pyarrow
import pytest
from pyarrow import parquet

from anaphora.base.errors import UserError
from anaphora.base.language import language_of
from anaphora.data import contamination, records, store
from anaphora.data.contamination import NGRAM_LENGTH, EvaluationNgrams, evaluation_texts
from anaphora.data.corpora import labelled_text, plain_text
from anaphora.data.text import UNKNOWN_WORD, Text, evenly_sampled
from anaphora.settings.data import AgNews, ChnSentiCorp, Dpr, LabelledText, PlainText, RottenTomatoes, Sst2


def write(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(content.encode()))
    else:
        path.write_text(content, encoding="utf-8")
    return path


def plain(path: Path, **more: Any) -> list[Text]:
    splits, _ = plain_text.read(PlainText(path=str(path), dev_share=0.0, test_share=0.0, **more))
    return splits["train"]


def labelled(settings: LabelledText) -> dict[str, list[tuple[str, str | None]]]:
    splits, _ = labelled_text.read(settings)
    return {split: [(one.text, one.label) for one in texts] for split, texts in splits.items()}


def test_a_text_checks_itself() -> None:
    for wrong, message in (
        ({"text": "  "}, "text: it is empty"),
        ({"language": "de"}, "language: 'de' must be one of en, zh"),
        ({"label": ""}, "label: it is empty"),
    ):
        with pytest.raises(UserError, match=message):
            Text(**{"text": "a", "language": "en", **wrong})


def test_the_language_is_that_of_most_characters() -> None:
    assert [language_of(text) for text in ("She read 红楼梦, a long novel.", "他在 London 住了三年。", "1.", "")] == [
        *("en", "zh", "en", "en")
    ]


def test_thinning_spreads_evenly_and_keeps_few_texts_whole() -> None:
    texts = [Text(text=str(number), language="en") for number in range(10)]
    assert [one.text for one in evenly_sampled(texts, 5)] == ["0", "2", "4", "6", "8"]
    assert evenly_sampled(texts, None) == evenly_sampled(texts, 10) == texts


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_empty_lines_part_the_paragraphs_of_a_txt_file(suffix: str, tmp_path: Path) -> None:
    path = write(tmp_path / f"tales.txt{suffix}", "A dog\nran off.\n\n \nIt came\tback.\n")
    assert [one.text for one in plain(path)] == ["A dog ran off.", "It came back."]


def test_the_lines_of_a_chinese_paragraph_are_joined_without_a_blank(tmp_path: Path) -> None:
    path = write(tmp_path / "tales.txt", "　　小红来到了图书\n馆。\n她很 高兴。\n\nHe said\nyes.\n")
    assert [one.text for one in plain(path)] == ["小红来到了图书馆。她很 高兴。", "He said yes."]


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_line_of_jsonl_is_a_document(suffix: str, tmp_path: Path) -> None:
    rows = [{"text": "One. \n\nTwo.", "title": "First", "id": 3}, {"text": "三。"}, {"text": " \n "}]
    path = write(tmp_path / f"pages.jsonl{suffix}", "\n".join(map(json.dumps, rows)))
    assert [(one.text, one.title, one.language) for one in plain(path)] == [
        ("One.\nTwo.", "First", "en"),
        ("三。", "", "zh"),
    ]


WIKITEXT = """
 = Red Kite =

 The red kite , a <unk> bird , weighs 1 @.@ 2 kg and is well @-@ known .

 = = Range = =

 It lives in Wales . Key : W
 = Won =
 Draws
"""


def test_wikitext_has_titles_headings_joined_signs_and_unknown_words(tmp_path: Path) -> None:
    (pages,) = plain(write(tmp_path / "some.tokens", WIKITEXT))
    assert pages.title == "Red Kite"
    assert pages.text.split("\n") == [
        f"The red kite , a {UNKNOWN_WORD} bird , weighs 1.2 kg and is well-known .",
        "Range",
        "It lives in Wales . Key : W",
        "Won",  # a legend's line, for no empty lines stand around it
        "Draws",
    ]


def test_one_file_of_wikitext_is_divided_by_the_shares(tmp_path: Path) -> None:
    path = tmp_path / "wiki" / "wiki.train.tokens"
    write(path, "".join(f"\n = {number} = \n\n Some text . \n" for number in range(5)))
    for place in (path, path.parent):
        splits, _ = plain_text.read(PlainText(path=str(place), dev_share=0.4, test_share=0.2))
        assert {split: len(texts) for split, texts in splits.items()} == {"train": 2, "dev": 2, "test": 1}


def test_wikitext_keeps_its_splits_and_other_folders_are_divided_by_document(tmp_path: Path) -> None:
    for name in ("train", "valid", "test"):
        write(tmp_path / "wiki" / f"wiki.{name}.tokens.gz", f"\n = {name} = \n\n Some text . \n")
    splits, report = plain_text.read(PlainText(path=str(tmp_path / "wiki")))
    assert {split: [one.title for one in texts] for split, texts in splits.items()} == {
        "train": ["train"],
        "dev": ["valid"],
        "test": ["test"],
    }
    assert report.rows == 3
    named = [str(tmp_path / "wiki" / f"wiki.{name}.tokens.gz") for name in ("train", "valid")]
    assert plain_text.read(PlainText(path=named[0], also=named[1:]))[0] == {**splits, "test": []}
    rows = "\n".join(json.dumps({"text": f"a {number}\nb {number}"}) for number in range(20))
    settings = PlainText(path=str(write(tmp_path / "pages.jsonl", rows)), dev_share=0.1, test_share=0.2)
    splits, report = plain_text.read(settings)
    assert {split: len(texts) for split, texts in splits.items()} == {"train": 14, "dev": 2, "test": 4}
    assert report.rows == 40


def test_more_files_are_read_after_the_first(tmp_path: Path) -> None:
    first, second = (write(tmp_path / name, f"In {name}.") for name in ("b.txt", "a.txt"))
    assert [one.text for one in plain(first, also=[str(second)])] == ["In b.txt.", "In a.txt."]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.pdf", "x", r"it has no file of .txt, .jsonl, .tokens"),
        ("a.jsonl", '{"text": "a"}\n{"txt": 3}', r"a.jsonl, line 2, text: it is missing"),
        ("a.jsonl", "{", r"a.jsonl, line 1: '{' is no whole JSON object"),
        ("a.jsonl", '{"text": "a", "title": 3}', r"line 1, title: 3 must be text"),
        ("a.txt", " \n", "no text is left"),
    ],
)
def test_a_wrong_plain_text_is_reported(name: str, content: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        plain(write(tmp_path / name, content))


def test_a_wrong_further_file_is_reported_by_its_setting_and_nothing_left_with_its_reason(tmp_path: Path) -> None:
    text = write(tmp_path / "a.txt", "One two three four five six seven eight.")
    for more, message in (
        (str(tmp_path / "b.txt"), r"data.also \(.*b.txt\): there is no such file"),
        (str(write(tmp_path / "a.pdf", "x")), r"data.also \(.*a.pdf\): it has no file of .txt"),
        ("hf://pages", r"data.also \(hf://pages\) must be hf://owner/name"),
    ):
        with pytest.raises(UserError, match=message):
            plain(text, also=[more])
    with pytest.raises(
        UserError, match=r"no text is left; dropped: 1 \(a paragraph shares 8 words in a row with a.txt"
    ):
        plain(text, without=[str(text)])


def test_a_cut_off_gzip_file_is_reported(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt.gz", "some words " * 99)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(UserError, match=r"a.txt.gz: not a whole gzip file"):
        plain(path)


EIGHT = "the grey cat slept under the old table"
NONE_OF_IT = "eight words that are found in no other"


@pytest.mark.parametrize(
    ("paragraph", "shared"),
    [
        (f"We saw that {EIGHT} again.", True),
        ("We saw: THE GREY cat, slept under 'the old table'!", True),
        ("the grey cat slept under the old chair", False),  # seven
        ("grey cat slept under the old table the", False),
        ("记者说今天下午三点钟他到家了", True),
        ("记者说今天下午三点他到家了", False),
    ],
)
def test_eight_words_in_a_row_are_found_whatever_their_case_and_punctuation(
    paragraph: str, shared: bool, tmp_path: Path
) -> None:
    path = write(tmp_path / "eval.tsv", f"id\t{EIGHT}.\n2\t今天下午三点钟,他走了。\n")
    assert EvaluationNgrams([str(path)]).shared_with(["", paragraph, "none"]) == [
        None,
        "eval.tsv" if shared else None,
        None,
    ]
    assert NGRAM_LENGTH == 8


def test_words_of_two_texts_do_not_make_a_row(tmp_path: Path) -> None:
    apart = EIGHT.replace(" under", "\nunder")
    known = EvaluationNgrams([str(write(tmp_path / "eval.txt", f"{apart}\n{NONE_OF_IT}"))])
    assert known.shared_with([EIGHT]) == [None]
    known = EvaluationNgrams([str(write(tmp_path / "eval.txt", EIGHT))])
    assert known.shared_with(EIGHT.split(" under")) == [None, None]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", json.dumps({"a": [{"text": f"So {EIGHT}"}]})),
        ("a.json", json.dumps([{"deep": {"text": EIGHT}}], indent=1)),
        ("a.conllu", f"# text = {EIGHT}\n1\tthe\t_\n"),
        ("a.txt.dev", f"1 {EIGHT}"),
        ("a.xml", "<all><one><txt1>{}</txt1> <txt2>under{}</txt2></one></all>".format(*EIGHT.split("under"))),
        ("a.txt.gz", f"[The grey] cat slept under the [old table] {EIGHT[:3]}"),
    ],
)
def test_evaluation_data_of_every_format_are_read(name: str, content: str, tmp_path: Path) -> None:
    write(tmp_path / "eval" / name, content)
    write(tmp_path / "eval" / "notes.md", "what we wrote about it is no evaluation data")
    assert EvaluationNgrams([str(tmp_path / "eval")]).shared_with(
        [EIGHT, "what we wrote about it is no evaluation data"]
    ) == ["eval", None]


def conll2012(words: list[str]) -> str:
    rows = "".join(f"a/b 0 {number} {word} NN * - - - sp * -\n" for number, word in enumerate(words))
    return f"#begin document (a/b); part 000\n{rows}#end document\n"


def conllu(words: list[str], more: str = "_") -> str:
    rows = [f"{number}\t{word}\t_\t_\t_\t_\t0\t_\t_\t{more}\n" for number, word in enumerate(words, start=1)]
    return "".join(["# newdoc id = d\n", *rows])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.v4_gold_conll", conll2012(EIGHT.split())),
        ("a_gold_conll.gz", conll2012(EIGHT.split())),
        ("a.conll", conll2012(["She", "saw", "it", ".", *EIGHT.split()])),
        ("a.conllu", conllu(EIGHT.split())),
        ("a.conllu", conllu(list("他说今天下午三点"), "SpaceAfter=No")),
        ("a.jsonl", json.dumps({"sentences": [["She", "saw", "it", "."], EIGHT.split()], "clusters": [[[0, 0]]]})),
        ("a.jsonlines", json.dumps({"cased_words": list("他说今天下午三点"), "span_clusters": []})),
        ("a.conllu", f"#text = {EIGHT}\n{conllu(['not', 'this'])}"),
        (
            "a.conllu",
            conllu(EIGHT.split())
            .replace("4\tslept", "4-5\tslept\t_\t_\t_\t_\t_\t_\t_\t_\n4\tslep")
            .replace("5\tunder", "5\tt\t_\t_\t_\t_\t0\t_\t_\t_\n5.1\tempty\t_\t_\t_\t_\t0\t_\t_\t_\n6\tunder"),
        ),
    ],
)
def test_evaluation_data_in_columns_are_read_by_their_words(name: str, content: str, tmp_path: Path) -> None:
    write(tmp_path / "eval" / name, content)
    write(tmp_path / "eval" / "README.txt", "how the files of this folder were made")
    known = EvaluationNgrams([str(tmp_path / "eval")])
    assert sorted(map(str, known.shared_with([f"So {EIGHT}.", "他说：今天下午三点。"]))) == ["None", "eval"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.v4_gold_conll",
            conll2012(["[WORD]"] * 9),
            r"a.v4_gold_conll, line 2, word: \[WORD\] takes the place of a word",
        ),
        ("a.conll", "1\tthe\tDT\n", "a.conll, line 1: 3 columns; CoNLL-2012 has 12 or more"),
        ("a.conllu", "1\tthe\tDT\n", "a.conllu, line 1: 3 cells; CoNLL-U has 10"),
        ("a.conllu", conllu(["_"] * 9), "it has no 8 words in a row that could be shared"),
        (
            "a.txt",
            EIGHT.replace(" under", "\nunder"),
            r"data.without \(.*a.txt\): it has no 8 words in a row that could",
        ),
    ],
)
def test_evaluation_data_that_would_protect_nothing_are_refused(
    name: str, content: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=message):
        EvaluationNgrams([str(write(tmp_path / "full.txt", EIGHT)), str(write(tmp_path / name, content))])


def test_evaluation_data_in_parquet_are_read(tmp_path: Path) -> None:
    parquet.write_table(pyarrow.table({"text": [f"So {EIGHT}"], "number": [1]}), tmp_path / "a.parquet")
    assert EvaluationNgrams([str(tmp_path)]).shared_with([EIGHT, "none"]) == [tmp_path.name, None]


def test_evaluation_data_of_one_name_are_distinguished(tmp_path: Path) -> None:
    paths = [str(write(tmp_path / folder / "dev.tsv", text)) for folder, text in (("a", EIGHT), ("b", NONE_OF_IT))]
    assert EvaluationNgrams(paths).shared_with([EIGHT]) == [paths[0]]


def test_texts_are_found_however_deep_they_lie_in_json(tmp_path: Path) -> None:
    depth = sys.getrecursionlimit() - 200  # which json reads, though little room is left on the stack
    path = write(tmp_path / "a.json", f'{"[" * depth}"{EIGHT}", {{"a": ["{NONE_OF_IT}"], "b": "x"}}{"]" * depth}')
    assert list(evaluation_texts(path)) == [EIGHT, NONE_OF_IT, "x"]


def test_contaminated_paragraphs_are_dropped_and_counted_and_the_rest_of_the_document_stays(tmp_path: Path) -> None:
    rows = [{"text": f"Good.\nIt said {EIGHT}.\nBetter.", "title": "Cats"}, {"text": EIGHT}]
    path = write(tmp_path / "pages.jsonl", "\n".join(map(json.dumps, rows)))
    evaluation = write(tmp_path / "gap.tsv", EIGHT)
    settings = PlainText(path=str(path), without=[str(evaluation)], dev_share=0.0, test_share=0.0)
    splits, report = plain_text.read(settings)
    assert [one.text for one in splits["train"]] == ["Good.\nBetter."]
    assert report.rows == 4
    assert report.reasons == {"a paragraph shares 8 words in a row with gap.tsv": 2}
    assert report.dropped[0][0] == f"{path}, Cats"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("", "", "there is no such file"),
        ("a.json", '{"a"\n}', "a.json, line 2: not JSON: Expecting ':' delimiter at column 1"),
        ("a.jsonl", '{"a": "b"}\n\n{"a" "b"}\n', "a.jsonl, line 3: not JSON: Expecting ':' delimiter at column 6"),
        ("a.json", "\n", "a.json, line 1: not JSON: Expecting value at column 1"),
        ("a.json", '{"a": "b', "a.json, line 1: not JSON: Unterminated string starting at column 7"),
        ("a.json", "[" * 100_000, "a.json: the JSON is nested too deeply"),
        ("a.json", "9" * 5000, "a.json: the JSON cannot be read"),
        ("a.xml", "<a>", "a.xml: not XML"),
        (
            "a.xml",
            '<?xml version="1.0" encoding="GB2312"?><a/>',
            "a.xml, line 1: .*GB2312.* names an encoding that cannot",
        ),
        ("a.xml", '<?xml version="1.0" encoding="none"?><a/>', "save the file as UTF-8, and write encoding"),
        ("a.parquet", "x", "a.parquet: not a Parquet file"),
        ("b/c.md", "x", "the folder has no file"),
    ],
)
def test_wrong_evaluation_data_are_reported(name: str, content: str, message: str, tmp_path: Path) -> None:
    path = write(tmp_path / name, content) if name else tmp_path / "none"
    with pytest.raises(UserError, match=message):
        EvaluationNgrams([str(path.parent if name.endswith(".md") else path)])


def test_what_is_left_out_decides_what_the_cache_holds(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", f"Good.\n\n{EIGHT}\n\nBetter.")
    evaluation = write(tmp_path / "eval.txt", NONE_OF_IT)
    settings = PlainText(path=str(path), without=[str(evaluation)], dev_share=0.0, test_share=0.0)
    assert len(store.load(settings).texts("train")) == 3
    write(evaluation, EIGHT)
    for _ in range(2):
        assert [one.text for one in store.load(settings).texts("train")] == ["Good.", "Better."]
    assert store.load(settings).report.reasons == {"a paragraph shares 8 words in a row with eval.txt": 1}


def test_a_folder_is_read_with_its_subfolders_and_without_hidden_files(tmp_path: Path) -> None:
    folder = tmp_path / "books"
    for place in ("a.txt", "new/a.txt", "new/b.txt", ".notes.txt", ".git/c.txt", "new/.old/d.txt"):
        write(folder / place, f"The text of {place}.")
    (folder / "._a.txt").write_bytes(b"\x00\xff")  # what a Mac leaves
    settings = PlainText(path=str(folder), dev_share=0, test_share=0)
    texts = plain_text.read(settings)[0]["train"]
    places = ["a.txt", "new/a.txt", "new/b.txt"]
    assert [one.text for one in texts] == [f"The text of {place}." for place in places]
    assert [one.group for one in texts] == [f"{place}/0" for place in places]
    assert list(plain_text.files(settings)) == [str(folder / place) for place in places]
    assert contamination.evaluation_files([str(folder)]) == [folder / place for place in places]


def glue(folder: Path, name: str, rows: list[str], header: str = "sentence\tlabel") -> None:
    write(folder / f"{name}.tsv", "\n".join([*([header] if header else []), *rows]) + "\n")


@pytest.mark.parametrize("settings", [Sst2, LabelledText])
def test_a_text_file_of_labelled_texts_is_refused_with_the_formats_that_are_read(
    settings: type[LabelledText], tmp_path: Path
) -> None:
    path = write(tmp_path / "a.txt", "so good\t1\n")
    with pytest.raises(UserError, match=r"a.txt\): '.txt' must be one of .tsv, .csv, .jsonl, .parquet"):
        labelled_text.read(settings(path=str(path)))


def test_dev_and_test_share_no_texts(tmp_path: Path) -> None:
    glue(tmp_path, "train", [f"text {number}\t1" for number in range(4)])
    glue(tmp_path, "dev", ["in dev\t0", "in both \t0", "in both\t1"])
    glue(tmp_path, "test", ["in both\t1", "in test\t0"])
    splits, report = labelled_text.read(Sst2(path=str(tmp_path)))
    assert {split: [one.text for one in texts] for split, texts in splits.items()} == {
        "train": [f"text {number}" for number in range(4)],
        "dev": ["in dev"],
        "test": ["in both", "in test"],
    }
    assert report.reasons == {"a dev text is in test too": 2}


def test_sst2_keeps_official_splits_and_drops_repeated_and_contradicted_training_texts(tmp_path: Path) -> None:
    glue(tmp_path, "train", ["so good \t1", "so bad \t0", "so good\t1", "so good\t0", "in dev\t0", "in test\t1"])
    glue(tmp_path, "dev", ["in dev\t0", "in dev\t0"])
    glue(tmp_path, "test", ["in test \t1"])
    settings = Sst2(path=str(tmp_path))
    assert labelled(settings) == {
        "train": [("so good", "positive"), ("so bad", "negative")],
        "dev": [("in dev", "negative")] * 2,
        "test": [("in test", "positive")],
    }
    assert labelled_text.read(settings)[1].reasons == {
        "a training text appears twice": 1,
        "a training text appears again with another label (the first is kept)": 1,
        "a training text is in dev or test too": 2,
    }


def test_where_test_has_no_labels_dev_is_the_test_split_and_dev_comes_off_train(tmp_path: Path) -> None:
    glue(tmp_path, "train", [f"好{number}\tpositive" for number in range(10)], header="")
    glue(tmp_path, "dev", ["坏\tnegative"], header="")
    glue(tmp_path, "test", ["0\t不知道"], header="qid\ttext_a")
    settings = ChnSentiCorp(path=str(tmp_path), dev_share=0.2)
    splits = labelled(settings)
    assert {split: len(texts) for split, texts in splits.items()} == {"train": 8, "dev": 2, "test": 1}
    assert splits["test"] == [("坏", "negative")]
    assert labelled_text.read(settings)[1].reasons == {"the row has no label": 1}


def test_ag_news_trains_on_its_dev_file_where_there_is_no_train_file(tmp_path: Path) -> None:
    glue(tmp_path, "dev", [f"news {number}\tSports" for number in range(8)] + ["tax\tBusiness", "gene\t3"], header="")
    glue(tmp_path, "test", ["vote\tWorld"], header="")
    splits = labelled(AgNews(path=str(tmp_path), dev_share=0.1))
    assert {split: len(texts) for split, texts in splits.items()} == {"train": 9, "dev": 1, "test": 1}
    assert {label for texts in splits.values() for _, label in texts} == {"World", "Sports", "Business", "Sci/Tech"}


def test_rotten_tomatoes_are_two_files_of_one_label_each(tmp_path: Path) -> None:
    write(tmp_path / "rt-polarity.pos", "\n".join(f"fine {number}" for number in range(10)))
    with pytest.raises(UserError, match=r"the folder has no rt-polarity.neg"):
        labelled(RottenTomatoes(path=str(tmp_path)))
    write(tmp_path / "rt-polarity.neg", "\n".join(f"dull {number} \n" for number in range(10)))
    splits = labelled(RottenTomatoes(path=str(tmp_path), dev_share=0.1, test_share=0.2))
    assert {split: len(texts) for split, texts in splits.items()} == {"train": 14, "dev": 2, "test": 4}
    assert all((label == "positive") == text.startswith("fine") for texts in splits.values() for text, label in texts)


def test_a_file_of_ones_own_has_labels_of_its_own(tmp_path: Path) -> None:
    rows = [{"text": f"text {number}", "label": ("a", "b")[number % 2]} for number in range(10)]
    path = write(tmp_path / "own.jsonl", "\n".join(map(json.dumps, rows)))
    splits = labelled(LabelledText(path=str(path)))
    assert sorted(text for texts in splits.values() for text in texts) == sorted(
        (row["text"], row["label"]) for row in rows
    )
    assert {split: len(texts) for split, texts in splits.items()} == {"train": 7, "dev": 1, "test": 2}


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
def test_a_row_whose_text_is_empty_is_dropped_and_counted_in_every_kind_of_file(suffix: str, tmp_path: Path) -> None:
    rows = [("good", "yes"), ("", "yes"), ("bad", ""), ("poor", "no")]
    if suffix == ".jsonl":
        lines = [json.dumps({"text": text, "label": label}) for text, label in rows]
    else:
        lines = [(",", "\t")[suffix == ".tsv"].join(row) for row in [("text", "label"), *rows]]
    path = write(tmp_path / f"own{suffix}", "\n".join(lines))
    splits, report = labelled_text.read(LabelledText(path=str(path)))
    assert sorted(one.text for texts in splits.values() for one in texts) == ["good", "poor"]
    assert report.reasons == {"the text is empty": 1, "the row has no label": 1}


@pytest.mark.parametrize("name", ["dev", "validation", "valid", "val"])
def test_a_folder_s_development_file_may_have_any_of_its_names(tmp_path: Path, name: str) -> None:
    for split in ("train", name, "test"):
        write(tmp_path / "own" / f"{split}.tsv", f"text\tlabel\nGood, says {split}.\t1\nBad, says {split}.\t0\n")
    read = labelled(LabelledText(path=str(tmp_path / "own")))
    assert [text for text, _ in read["dev"]] == [f"Good, says {name}.", f"Bad, says {name}."]


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_a_file_of_ones_own_may_say_its_splits_and_what_stays_together(suffix: str, tmp_path: Path) -> None:
    splits = ("train", "validation", "test", "train")
    rows = [{"text": f"text {n}", "label": "ab"[n % 2], "split": splits[n % 4]} for n in range(12)]
    written = (
        "\n".join(["text,label,split", *(",".join(row.values()) for row in rows)])
        if suffix == "csv"
        else "\n".join(map(json.dumps, rows))
    )
    read = labelled(LabelledText(path=str(write(tmp_path / f"own.{suffix}", written))))
    assert {split: [text for text, _ in texts] for split, texts in read.items()} == {
        "train": ["text 0", "text 3", "text 4", "text 7", "text 8", "text 11"],
        "dev": ["text 1", "text 5", "text 9"],
        "test": ["text 2", "text 6", "text 10"],
    }
    grouped = [{"text": f"text {n}", "label": "ab"[n % 2], "group": f"{n // 4}"} for n in range(40)]
    read = labelled(LabelledText(path=str(write(tmp_path / "groups.jsonl", "\n".join(map(json.dumps, grouped))))))
    kept = [{int(text.split()[1]) // 4 for text, _ in texts} for texts in read.values()]
    assert sum(map(len, kept)) == len(set.union(*kept)) == 10


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        (
            ("train", "held out"),
            r"own.jsonl, line 2, split: 'held out' must be one of train, dev, validation, valid, val, test",
        ),
        (("train", None), r"line 2, split: some rows have a split and some have none"),
    ],
)
def test_a_wrong_split_of_a_labelled_text_is_named(
    splits: tuple[str | None, ...], message: str, tmp_path: Path
) -> None:
    rows = [{"text": f"text {n}", "label": "ab"[n % 2], "split": split} for n, split in enumerate(splits)]
    path = write(tmp_path / "own.jsonl", "\n".join(map(json.dumps, rows)))
    with pytest.raises(UserError, match=message):
        labelled(LabelledText(path=str(path)))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["a\t2"], r"train.tsv, line 2, label: '2' must be one of negative, positive, or its number from 0"),
        (["a\tb\t1"], r"train.tsv, line 2: 3 cells; 2 are needed: sentence, label"),
        (["a\t"], "it has no text with a label"),
    ],
)
def test_a_wrong_labelled_text_is_reported(rows: list[str], message: str, tmp_path: Path) -> None:
    glue(tmp_path, "train", rows)
    with pytest.raises(UserError, match=message):
        labelled(Sst2(path=str(tmp_path)))


def test_a_folder_without_splits_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"the folder has no train, dev or test file of .tsv"):
        labelled(Sst2(path=str(tmp_path)))


def test_a_data_set_of_the_hub_is_read_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def load_dataset(name: str, configuration: str | None) -> datasets.DatasetDict:
        assert (name, configuration) == ("someone/sst2", None)
        features = datasets.Features(
            {"sentence": datasets.Value("string"), "label": datasets.ClassLabel(names=["negative", "positive"])}
        )

        def split(*rows: tuple[str, int]) -> datasets.Dataset:
            texts, labels = zip(*rows, strict=True)
            return datasets.Dataset.from_dict({"sentence": list(texts), "label": list(labels)}, features=features)

        train = split(*((f"good {number}", 1) for number in range(10)))
        return datasets.DatasetDict(train=train, validation=split(("bad", 0)), test=split(("?", -1)))

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    settings = Sst2(path="hf://someone/sst2", dev_share=0.2)
    corpus = store.load(settings)
    assert [(one.text, one.label) for one in corpus.texts("test")] == [("bad", "negative")]
    assert [len(corpus.texts(split)) for split in ("train", "dev")] == [8, 2]
    assert corpus.report.reasons == {"the row has no label": 1}


def test_splits_of_the_hub_with_two_names_for_dev_are_both_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def load_dataset(_name: str, _configuration: str | None) -> datasets.DatasetDict:
        texts = {"train": ("good", "bad"), "dev": ("fine",), "validation": ("poor", "well"), "test": ("done",)}
        return datasets.DatasetDict(
            {
                split: datasets.Dataset.from_dict({"text": list(of_one), "label": ["a"] * len(of_one)})
                for split, of_one in texts.items()
            }
        )

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    corpus = store.load(LabelledText(path="hf://someone/texts"))
    assert [text.text for text in corpus.texts("dev")] == ["fine", "poor", "well"]


def test_without_the_hub_the_files_to_put_in_its_place_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def load_dataset(name: str, configuration: str | None) -> None:
        raise ConnectionError("no route\nto host")

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    with pytest.raises(
        UserError,
        match=r"hf://o/sst2\): not available from the hub \(no route\); give data.path=a folder with train.tsv",
    ):
        store.load(Sst2(path="hf://o/sst2"))
    with pytest.raises(UserError, match=r"data.path=a folder with rt-polarity.neg, rt-polarity.pos"):
        store.load(RottenTomatoes(path="hf://o/rt"))


def test_texts_come_back_from_the_cache_as_they_were_read(tmp_path: Path) -> None:
    glue(tmp_path, "train", [f"fine {number}\t1" for number in range(4)])
    settings = Sst2(path=str(tmp_path), dev_share=0.25, test_share=0.25)
    expected = labelled_text.read(settings)
    for _ in range(2):
        loaded = store.load(settings)
        assert {split: loaded.texts(split) for split in loaded.splits} == expected[0]
        assert loaded.report == expected[1]
    assert loaded.splits["train"].schema == records.schema_of(records.TEXT_COLUMNS)


def test_a_corpus_gives_only_what_it_holds(tmp_path: Path) -> None:
    texts = store.load(PlainText(path=str(write(tmp_path / "a.txt", "a b")), dev_share=0.0, test_share=0.0))
    for read in (texts.examples, texts.questions):
        with pytest.raises(UserError, match="data: it holds texts without pronoun questions; name others"):
            read("train")
    block = "she met Anna after Berta.\nshe\nAnna,Berta\nAnna\n"
    pronouns = store.load(Dpr(path=str(write(tmp_path / "b.txt", block)), dev_share=0.0, test_share=0.0))
    with pytest.raises(UserError, match=r"no plain or labelled texts: read them with Corpus\.examples"):
        pronouns.texts("train")


def test_a_file_without_texts_beside_others_is_reported(tmp_path: Path) -> None:
    write(tmp_path / "rt-polarity.pos", "good\nfine\n")
    for content, message in (("", "the file is empty"), ("\n \n", "it has no rows")):
        write(tmp_path / "rt-polarity.neg", content)
        with pytest.raises(UserError, match=f"rt-polarity.neg: {message}"):
            labelled_text.read(RottenTomatoes(path=str(tmp_path)))


@pytest.mark.parametrize(
    "header", ["text\tclass", "label\ttext\tlabel", "label\tlabel", "Text\tLabel", "Review \tclass"]
)
def test_a_header_of_other_columns_is_no_text(header: str, tmp_path: Path) -> None:
    path = write(tmp_path / "items.tsv", f"{header}\na\tb\n")
    with pytest.raises(
        UserError, match=r"items.tsv, line 1: columns .* must be some of .*, in lower case and each once"
    ):
        labelled_text.read(LabelledText(path=str(path)))


def test_a_header_of_names_of_ones_own_is_no_text(tmp_path: Path) -> None:
    rows = "".join(f"film {number}\t{'ab'[number % 2]}\n" for number in range(4))
    for name in ("content\tsentiment", "Our review\tstars"):
        path = write(tmp_path / "items.tsv", f"{name}\n{rows}")
        with pytest.raises(UserError, match=r"items.tsv, line 1: a header must name its columns text and label, not"):
            labelled_text.read(LabelledText(path=str(path)))
    path = write(tmp_path / "items.tsv", rows)
    assert sum(map(len, labelled(LabelledText(path=str(path))).values())) == 4


def test_columns_of_other_names_in_a_csv_file_are_named(tmp_path: Path) -> None:
    path = write(tmp_path / "items.csv", "Text,Label\nGood film,pos\n")
    with pytest.raises(UserError, match=r"line 2, text: it is missing; .* text_a or review \(here: Text, Label\)$"):
        labelled_text.read(LabelledText(path=str(path)))


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize(("suffix", "separator"), [("tsv", "\t"), ("csv", ","), ("csv", ";"), ("csv", "\t")])
def test_a_table_of_pandas_gives_its_texts(
    quoting: Literal[0, 1, 2], index: bool, suffix: str, separator: str, tmp_path: Path
) -> None:
    texts = ['"Good", she said; "very', "so, so bad", "a plain one", '"quoted"', 'in "the" middle', "a 'b'"]
    frame = pandas.DataFrame({"text": texts, "label": ["a", "b", "b", "a", "a", "b"]})
    path = tmp_path / f"items.{suffix}"
    frame.to_csv(path, sep=separator, index=index, quoting=quoting)
    read = labelled(LabelledText(path=str(path)))
    assert sorted(one for split in read.values() for one in split) == sorted(
        (row.text, row.label) for row in frame.itertuples()
    )


def test_quotes_of_published_files_stay_and_a_quoted_cell_in_two_lines_is_reported(tmp_path: Path) -> None:
    glue(tmp_path, "train", ['"so ""good"""\t1', "so bad\t0"])
    settings = Sst2(path=str(tmp_path), dev_share=0, test_share=0)
    assert labelled(settings)["train"][0] == ('"so ""good"""', "positive")
    path = write(tmp_path / "items.tsv", 'text\tlabel\n"two\nlines"\ta\n')
    with pytest.raises(UserError, match=r"items.tsv, line 2: 1 cells, not 2; .* save it as .csv or .jsonl"):
        labelled_text.read(LabelledText(path=str(path)))


def test_empty_rows_at_the_end_of_a_spreadsheet_are_no_rows(tmp_path: Path) -> None:
    path = write(tmp_path / "items.csv", "text,label,,\ngood,a,,\nbad,b,,\n,,,\n,,,\n")
    splits, report = labelled_text.read(LabelledText(path=str(path)))
    assert sorted(one.text for texts in splits.values() for one in texts) == ["bad", "good"]
    assert (report.rows, report.dropped) == (2, ())


@pytest.mark.parametrize("missing", ["NaN", '" "', '""', "null"])
def test_labels_have_no_blanks_at_their_ends_and_a_missing_one_is_no_class(missing: str, tmp_path: Path) -> None:
    labels = ('"a"', '"a "', "1", '" 1"', "1.0", missing)  # pandas writes 1.0 if some rows have no label
    rows = [f'{{"text": "text {number}", "label": {labels[number % 6]}}}' for number in range(24)]
    splits, report = labelled_text.read(LabelledText(path=str(write(tmp_path / "own.jsonl", "\n".join(rows)))))
    assert Counter(one.label for texts in splits.values() for one in texts) == {"a": 8, "1": 12}
    assert report.reasons == {"the row has no label": 4}


def test_a_whole_number_among_decimals_keeps_its_decimal_unless_it_is_also_written_without(tmp_path: Path) -> None:
    for labels, classes in (
        (("1.5", "2.0", "2.5"), {"1.5", "2.0", "2.5"}),
        (("1.5", "2.0", "2"), {"1.5", "2"}),
        (("1.0", "2.0"), {"1", "2"}),
        (("1.00", "1", "2.0"), {"1", "2"}),
        (("1.10", "1.1", "2.00", "2.0"), {"1.10", "1.1", "2.0"}),
    ):
        rows = [f"text {number},{labels[number % len(labels)]}" for number in range(12)]
        path = write(tmp_path / "own.csv", "\n".join(["text,label", *rows]))
        splits, _ = labelled_text.read(LabelledText(path=str(path)))
        assert {one.label for texts in splits.values() for one in texts} == classes


@pytest.mark.parametrize("label", ['["a"]', '{"a": 1}'])
def test_a_list_and_an_object_are_no_labels(label: str, tmp_path: Path) -> None:
    path = write(tmp_path / "own.jsonl", f'{{"text": "one", "label": "a"}}\n{{"text": "two", "label": {label}}}\n')
    with pytest.raises(UserError, match=r"own.jsonl, line 2, label: .*a.* must be text or a number"):
        labelled_text.read(LabelledText(path=str(path)))
