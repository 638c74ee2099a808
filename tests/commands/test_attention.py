from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas
import pytest
from tiny import tiny_folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_folder(tmp_path_factory, "gpt2")


def test_a_page_and_the_heads_of_each_candidate(folder: Path, script: Callable[..., Any], tmp_path: Path) -> None:
    result = script(
        "attention", f"run={folder}", "text=Anna helped Emma because she was weak.", "pronoun=she",
        "candidates=[Anna,Emma]", f"output={tmp_path / 'page.html'}",
    )  # fmt: skip
    assert result.status == 0, result.err
    for line in ("from she to Anna", "from she to Emma", "no word sees what follows it"):
        assert line in result.out
    assert "because" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_page_and_lines_may_be_chinese(folder: Path, script: Callable[..., Any], tmp_path: Path) -> None:
    result = script(
        "attention", f"run={folder}", "text=小红推了小明，因为他很生气。", "pronoun=他", "candidates=[小红,小明]",
        "interface_language=zh", f"output={tmp_path / 'page.html'}",
    )  # fmt: skip
    assert result.status == 0, result.err
    for line in ("权重最大的头", "从“他”到“小红”", "解码器"):
        assert line in result.out
    assert '<html lang="zh">' in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_table_without_special_tokens(own_run: Path, script: Callable[..., Any], tmp_path: Path) -> None:
    assert script(
        "attention", f"run={own_run}", "text=Anna met Tom.", "special=false", f"output={tmp_path / 'maps.parquet'}"
    )
    table = pandas.read_parquet(tmp_path / "maps.parquet")
    words = [range(start, end) for start, end in zip(table["starts"][0], table["ends"][0], strict=True)]
    assert ["Anna met Tom."[word.start : word.stop] for word in words] == ["Anna", "met", "Tom", "."]
    for row in table.to_dict("records"):
        weights = row["weights"].astype("float32").reshape(row["layers"], row["heads"], -1)
        sums = weights.sum(axis=2) * row["scales"].reshape(weights.shape[:2])
        assert sums.round(2).min() == sums.round(2).max() == 1


def test_tokens_are_merged_to_the_words_of_the_settings(
    own_run: Path, script: Callable[..., Any], tmp_path: Path
) -> None:
    text, page = "小红推了小明。", tmp_path / "page.html"
    given = ("attention", f"run={own_run}", f"text={text}")
    assert script(*given, "words=小红 推了 小明 。", f"output={tmp_path / 'maps.parquet'}").status == 0
    table = pandas.read_parquet(tmp_path / "maps.parquet")
    spans = list(zip(table["starts"][0].tolist(), table["ends"][0].tolist(), strict=True))
    assert [text[start:end] for start, end in spans if end] == ["小红", "推了", "小明", "。"]
    assert script(*given, "words=小红 推了 小明 。", f"output={page}").status == 0
    assert "推了" in page.read_text(encoding="utf-8")
    refused = script(*given, "words=小红 推 小明 。", f"output={tmp_path / 'other.html'}")
    assert "words[2] ('小明') has '小' where the text has '了小明。', from its character 3 on" in refused.err
    assert refused.status == 2 and refused.err.count("\n") == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (("run=nowhere", "text=Anna"), "run (nowhere): there is no such folder; a model on the hub is written hf://"),
        (("run=nowhere", "text=Anna"), ", and shipped is the run inside the package"),
        (("run=x", "text=Anna", "output=page.gif"), "output (page.gif) must end in one of .html, .parquet"),
        (("run=x", "text=Anna", "interface_language=fr"), "interface_language ('fr') must be one of en, zh"),
        (("run=x", "text=Anna", "by=letter"), "by ('letter') must be one of word, token"),
        (("run=x", "text=Anna", "by=token", "words=Anna"), "words and by (token) do not go together"),
        (("run=x", "text=Anna", "pronoun=x", "words=Anna", "output=x.png"), "words is for a page or a table"),
    ],
)
def test_wrong_settings_are_reported_in_one_line(
    settings: tuple[str, ...], message: str, script: Callable[..., Any]
) -> None:
    reply = script("attention", *settings)
    assert reply.status == 2
    assert message in reply.err and reply.err.count("\n") == 1
