from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from anaphora.base.errors import UserError
from anaphora.data.corpora import clusters
from anaphora.data.corpora.clusters import cluster_documents
from anaphora.data.example import Example
from anaphora.settings.data import ClusterLines

SENTENCES = [["Anna", "met", "the", "old", "man", "."], ["She", "liked", "him", "."]]
FLAT = [word for sentence in SENTENCES for word in sentence]
INCLUSIVE = [[[0, 0], [6, 6]], [[2, 4], [8, 8]]]
EXCLUSIVE = [[[0, 1], [6, 7]], [[2, 5], [8, 9]]]


def write(folder: Path, *rows: dict[str, Any], name: str = "a.jsonlines") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def read(path: Path, **settings: Any) -> list[Example]:
    splits, _ = clusters.read(ClusterLines(path=str(path), dev_share=0.0, test_share=0.0, **settings))
    return [example for split in splits.values() for example in split]


@pytest.mark.parametrize(
    ("row", "ends"),
    [
        ({"doc_key": "d", "sentences": SENTENCES, "clusters": INCLUSIVE}, None),  # e2e-coref, coref-hoi
        ({"document_id": "d", "cased_words": FLAT, "sent_id": [0] * 6 + [1] * 4, "span_clusters": EXCLUSIVE}, None),
        ({"document_id": "d", "cased_words": FLAT, "clusters": EXCLUSIVE}, "exclusive"),  # wl-coref
        ({"tokens": FLAT, "clusters_token_offsets": INCLUSIVE}, None),  # maverick
    ],
)
def test_every_form_gives_the_same_items(row: dict[str, Any], ends: str | None, tmp_path: Path) -> None:
    she, him = read(write(tmp_path, row), ends=ends)
    assert she.text == "Anna met the old man . She liked him ."
    for example, pronoun, antecedent in ((she, "She", "Anna"), (him, "him", "man")):
        assert example.text[slice(*example.pronoun)] == pronoun
        assert [example.words(one) for one in example.antecedents] == [antecedent]
    assert him.factors["extents"].split(";")[him.antecedents[0]] == "9:20"  # the old man


def test_ends_are_what_the_spans_prove(tmp_path: Path) -> None:
    """A span after the last word proves exclusive ends, an empty span inclusive ends; neither is an error."""
    closing = {"tokens": FLAT, "clusters": [[[0, 1], [9, 10]]]}
    (document,) = cluster_documents(write(tmp_path, closing))
    assert document.clusters == (((0, 1), (9, 10)),)
    undecided = {"tokens": FLAT, "clusters": [[[0, 1], [2, 4]]]}
    (_, second) = cluster_documents(write(tmp_path, {"tokens": FLAT, "clusters": INCLUSIVE}, undecided))
    assert second.clusters == (((0, 2), (2, 5)),)
    path = write(tmp_path, undecided)
    with pytest.raises(UserError, match=re.escape(f"data.ends: the spans of {path} do not show whether [0, 1] is one")):
        cluster_documents(path)
    with pytest.raises(
        UserError, match=r"line 1, clusters\[0\]\[0\]: \[0, 0\] is empty .*line 2, clusters\[0\]\[1\]: "
    ):
        cluster_documents(write(tmp_path, {"tokens": FLAT, "clusters": INCLUSIVE}, closing))


@pytest.mark.parametrize("span", [[9, 11], [-1, 1], [4, 3]])
def test_a_span_beyond_the_words_is_named_before_the_kind_of_ends_is_required(span: list[int], tmp_path: Path) -> None:
    path = write(tmp_path, {"tokens": FLAT, "clusters": [[[0, 1], span]]})
    message = f"{path}, line 1, clusters[0][1]: {span} must be [start, end] with 0 <= start <= end <= 10"
    with pytest.raises(UserError, match=re.escape(message)):
        cluster_documents(path)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"clusters": [[[0, 1], [9, 11]]]},
            "line 1, clusters[0][1]: [9, 11] must be [start, end] with 0 <= start < end",
        ),
        ({"clusters": [[[-1, 1]]]}, "line 1, clusters[0][0]: [-1, 1] must be [start, end] with 0 <= start < end <= 10"),
        ({"clusters": [[[3, 3]]]}, "line 1, clusters[0][0]: [3, 3] must be [start, end] with"),
        ({"clusters": [[[0, 1]], []]}, "line 1, clusters[1]: [] must be a list of [start, end], at least one"),
        (
            {"clusters": [[[0, 1], [6, 7]], [[6, 7]]]},
            "line 1, clusters[1][0]: [6, 7] is a mention of clusters[0][1] too",
        ),
        ({"clusters": [[[0, 1], [0, 1]]]}, "line 1, clusters[0][1]: [0, 1] is a mention of clusters[0][0] too"),
        (
            {"clusters": [[[0, 3], [2, 5]]]},
            "line 1, clusters: words [0, 3] ('Anna met the') and [2, 5] ('the old man') c",
        ),
        ({"clusters": [[0, 1]]}, "line 1, clusters[0][0]: 0 must be [start, end], two whole numbers"),
        ({"clusters": [[[0, True]]]}, "line 1, clusters[0][0]: [0, True] must be [start, end], two whole numbers"),
        ({"clusters": [[[0, 1.0]]]}, "line 1, clusters[0][0]: [0, 1.0] must be [start, end], two whole numbers"),
        ({"clusters": {"0": [[0, 1]]}}, "line 1, clusters: {'0': [[0, 1]]} must be a list of clusters"),
        ({}, "line 1: it has none of the fields clusters, span_clusters, clusters_token_offsets; it must have one"),
        ({"clusters": [], "span_clusters": []}, "line 1: it has clusters and span_clusters of the fields"),
        ({"clusters": [], "tokens": None}, "line 1: it has none of the fields sentences, cased_words, tokens"),
        ({"clusters": [], "tokens": ["a", 3]}, "line 1, tokens[1]: 3 must be a word"),
        ({"clusters": [], "tokens": ["a", " "]}, "line 1, tokens[1]: ' ' must be a word"),
        ({"clusters": [], "tokens": ["a ", "b"]}, "line 1, tokens[0]: 'a ' must be a word, without blanks around it"),
        ({"clusters": [], "sentences": [["a"], "b"]}, "line 1, sentences[1]: 'b' must be a list of words"),
        ({"clusters": [], "sentences": [[], []]}, "line 1, sentences: they hold no word"),
        ({"clusters": [], "tokens": []}, "line 1, tokens: it holds no word"),
        (
            {"clusters": [], "sent_id": [0] * 9 + [-1]},
            "line 1, sent_id: [0, 0, 0, 0, 0, 0, 0, 0, 0, -1] must be 10 num",
        ),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(row: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = write(tmp_path, {"tokens": FLAT, **row})
    with pytest.raises(UserError, match=re.escape(f"{path}, {message}")) as error:
        read(path, ends="exclusive")
    assert "\n" not in str(error.value)


def test_a_folder_tells_the_splits_and_a_document_without_clusters_has_no_items(tmp_path: Path) -> None:
    row = {"doc_key": "nw/one", "sentences": SENTENCES, "clusters": INCLUSIVE}
    write(tmp_path, row, name="train.english.jsonlines")
    write(
        tmp_path, {**row, "doc_key": "nw/two"}, {**row, "doc_key": "e", "clusters": []}, name="test.english.jsonlines"
    )
    splits, report = clusters.read(ClusterLines(path=str(tmp_path)))
    assert {split: len(examples) for split, examples in splits.items()} == {"train": 2, "dev": 0, "test": 2}
    assert splits["test"][0].factors["genre"] == "nw"
    assert report.reasons["a document without coreference: no mention is marked in it"] == 1


def test_parts_of_a_document_stay_together_and_chinese_has_no_blanks(tmp_path: Path) -> None:
    words = ["小红", "见到", "小明", "，", "她", "很", "高兴", "。"]
    row = {"document_id": "d", "cased_words": words, "span_clusters": [[[0, 1], [4, 5]]], "pos": ["NR"] * 8}
    one, two = read(
        write(tmp_path, {**row, "part_id": 0}, {**row, "part_id": 1, "cased_words": [*words[:-1], "！"]}), language="zh"
    )
    assert one.text == "小红见到小明，她很高兴。" and one.group == two.group
    with pytest.raises(UserError, match=r"data.language \(en\): .* is zh"):
        read(write(tmp_path, row))


def test_the_genre_is_a_folder_of_the_name_and_no_part_number_or_folder_of_the_file(tmp_path: Path) -> None:
    """A document without a name is named after its file and line, and not after the folders of this computer."""
    row = {"tokens": FLAT, "clusters_token_offsets": INCLUSIVE}
    named = {"doc_key": "d", "part_id": 0, "sentences": SENTENCES, "clusters": INCLUSIVE}
    (unnamed, _), (part, _), (other, _) = (
        read(write(tmp_path, {**one, **more})) for one, more in ((row, {}), (named, {}), (named, {"doc_key": "nw/d"}))
    )
    assert "genre" not in unnamed.factors and unnamed.factors["document"] == "clusters/a.jsonlines, line 1"
    assert "genre" not in part.factors and part.factors["document"] == "clusters/d/0"
    assert other.factors["genre"] == "nw"


def test_ends_that_contradict_the_only_field_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, {"tokens": FLAT, "clusters_token_offsets": INCLUSIVE})
    with pytest.raises(
        UserError, match=r"^data.ends \(exclusive\): the ends in .* are inclusive, as in every field clust"
    ):
        read(path, ends="exclusive")
    assert read(path, ends="inclusive") == read(path)


def test_a_chinese_pronoun_of_two_characters_is_one_if_every_character_is_a_word(tmp_path: Path) -> None:
    row = {
        "tokens": list("同学说她们来，老师也来，老师笑。"),
        "clusters_token_offsets": [[[0, 1], [3, 4]], [[7, 8], [12, 13]]],
    }
    assert [one.factors["form"] for one in read(write(tmp_path, row), language="zh")] == ["pronoun", "unknown"]
