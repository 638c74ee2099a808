from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas
import pytest
from tiny import tiny_language_model, tokenizer

WORDS = ["Anna", "met", "the", "old", "man", ".", "She", "liked", "him", "."]
KEY = {"doc_key": "a", "sentences": [WORDS[:6], WORDS[6:]], "clusters": [[[0, 0], [6, 6]], [[2, 4], [8, 8]]]}
OTHER = {"doc_key": "b", "sentences": [["Tom", "left", "."]], "clusters": [[[0, 0]]]}


def write(path: Path, *rows: dict[str, Any]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def rows_of(path: Path) -> dict[str, dict[Any, Any]]:
    return {row["measure"]: row for row in pandas.read_csv(path).to_dict("records")}


@pytest.fixture
def key(tmp_path: Path) -> str:
    return write(tmp_path / "key.jsonlines", KEY, OTHER)


def test_a_response_in_another_form_and_order_is_scored_against_the_key(
    key: str, script: Callable[..., Any], tmp_path: Path
) -> None:
    """The response has one of two links: MUC recall is 1/2 and precision 1; singletons are optional."""
    response = write(
        tmp_path / "response.jsonlines",
        {"cased_words": ["Tom", "left", "."], "span_clusters": []},
        {"cased_words": WORDS, "span_clusters": [[[0, 1], [6, 7]]]},
    )
    result = script("coreference", f"key={key}", f"response={response}", f"output={tmp_path / 'scores.csv'}")
    assert result.status == 0, result.err
    assert "2 documents" in result.out and "66.7" in result.out
    rows = rows_of(tmp_path / "scores.csv")
    assert [rows[name]["recall"] for name in ("muc", "b_cubed", "lea")] == [0.5, 0.4, 0.4]
    assert [rows[name]["precision"] for name in ("muc", "b_cubed", "lea")] == [1, 1, 1]
    without = script(
        "coreference", f"key={key}", f"response={response}", "singletons=false", f"output={tmp_path / 'scores.csv'}",
        "overwrite=true",
    )  # fmt: skip
    assert without.status == 0, without.err
    assert rows_of(tmp_path / "scores.csv")["b_cubed"]["recall"] == 0.5


@pytest.mark.parametrize(
    ("rows", "more", "message"),
    [
        ((KEY,), (), "key.jsonlines, line 2: the response has no document with the words of 'b'"),
        ((KEY, OTHER, OTHER), (), "response.jsonlines, line 3: the key has no document with the words of 'b'"),
        ((OTHER, {**KEY, "clusters": [[[0, 1], [6, 11]]]}), (), "line 2, clusters[0][1]: [6, 11] must be [start, end]"),
        ((KEY, OTHER), ("response_ends=last",), "response_ends ('last') must be one of inclusive, exclusive"),
        (({**KEY, "clusters": [[[0, 1], [2, 4]]]}, {**OTHER, "clusters": []}), (), "response_ends: the spans of "),
        ((KEY, OTHER), ("output=scores.txt",), "output (scores.txt) must end in .csv"),
    ],
)
def test_files_that_do_not_fit_are_named_in_one_line(
    rows: tuple[dict[str, Any], ...], more: tuple[str, ...], message: str, key: str, script: Callable[..., Any],
    tmp_path: Path,
) -> None:  # fmt: skip
    response = write(tmp_path / "response.jsonlines", *rows)
    result = script("coreference", f"key={key}", f"response={response}", *more)
    assert result.status == 2
    assert message in result.err and result.err.count("\n") == 1


def test_a_run_links_each_pronoun_and_writes_clusters_in_the_form_of_the_key(
    finished: Path, script: Callable[..., Any], tmp_path: Path
) -> None:
    """The clusters of the key are not used: without them, the same clusters are predicted."""
    apart = {**KEY, "clusters": [[[0, 0]], [[6, 6]], [[2, 4]], [[8, 8]]], "speaker": "x"}
    links = []
    for number, row in enumerate((KEY, apart)):
        key, written = write(tmp_path / f"key_{number}.jsonlines", row, OTHER), tmp_path / f"predicted_{number}.jsonl"
        table = tmp_path / f"scores_{number}.csv"
        result = script("coreference", f"key={key}", f"run={finished}", f"response={written}", f"output={table}")
        assert result.status == 0, result.err
        first, second = (json.loads(line) for line in written.read_text(encoding="utf-8").splitlines())
        assert {**first, "clusters": 0} == {**row, "clusters": 0} and second == OTHER
        links.append(first["clusters"])
        again = script("coreference", f"key={key}", f"response={written}", f"output={tmp_path / f'again_{number}.csv'}")
        assert again.status == 0 and (tmp_path / f"again_{number}.csv").read_text() == table.read_text()
    assert links[0] == links[1] and len(links[0]) < 4
    assert sorted(span for cluster in links[0] for span in cluster) == [[0, 0], [2, 4], [6, 6], [8, 8]]


def test_the_mentions_of_other_forms_are_linked_if_the_settings_say_so(
    finished: Path, script: Callable[..., Any], tmp_path: Path
) -> None:
    """Ends of spans are written as in the key, here exclusive; a mention without an earlier mention is a singleton."""
    row = {"tokens": WORDS, "span_clusters": [[[0, 1]], [[2, 5]], [[6, 7]]]}
    key, sizes = write(tmp_path / "key.jsonl", row), {}
    for forms in ("pronoun", "nominal,unknown", "proper"):
        written = tmp_path / f"{forms}.jsonl"
        result = script("coreference", f"key={key}", f"run={finished}", f"response={written}", f"forms=[{forms}]")
        assert result.status == 0, result.err
        clusters = json.loads(written.read_text(encoding="utf-8"))["span_clusters"]
        sizes[forms] = sorted(map(len, clusters))
        assert sorted(span for cluster in clusters for span in cluster) == [[0, 1], [2, 5], [6, 7]]
    assert sizes == {"pronoun": [1, 2], "nominal,unknown": [1, 2], "proper": [1, 1, 1]}


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_a_language_model_of_transformers_links_pronouns(
    family: str, key: str, script: Callable[..., Any], tmp_path: Path
) -> None:
    folder, written = tmp_path / family, tmp_path / "predicted.jsonl"
    tiny_language_model(family).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    result = script("coreference", f"key={key}", f"run={folder}", f"response={written}")
    assert result.status == 0, result.err
    first = json.loads(written.read_text(encoding="utf-8").splitlines()[0])["clusters"]
    linked = sum(len(cluster) for cluster in first if len(cluster) > 1)
    assert linked >= 3 and f"clusters {written}: {linked} of 5 mentions are linked to another one" in result.out


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("response={key}",), "key.jsonlines) is the key, which would be overwritten; name another file"),
        (("response=predicted.json",), "response (predicted.json) must end in one of .jsonl, .jsonlines"),
        (("response=out.jsonl", "response_ends=exclusive"), "response_ends (exclusive) is for a response that is read"),
        (("response=out.jsonl", "forms=[verb]"), "forms ('verb') must be one of pronoun, proper, nominal, unknown"),
        (("response=out.jsonl", "forms=[]"), "forms ([]) must name at least one of pronoun, proper, nominal, unknown"),
        (("response=out.jsonl", "run=nowhere"), "nowhere"),
        (("response=out.jsonl", "run=null", "words=50"), "words (50) is for run=..., whose answers give the clusters"),
    ],
)
def test_a_run_that_cannot_write_clusters_is_refused_in_one_line(
    more: tuple[str, ...], message: str, key: str, finished: Path, script: Callable[..., Any]
) -> None:
    before = Path(key).read_bytes()
    result = script("coreference", f"key={key}", f"run={finished}", *(one.format(key=key) for one in more))
    assert result.status == 2 and message in result.err and Path(key).read_bytes() == before
    assert result.err.replace(f"run: {finished}\n", "").count("\n") == 1
