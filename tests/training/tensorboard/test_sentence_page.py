from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb

from anaphora.analysis.maps.words import WordRow
from anaphora.data.own_sentence import example_from_query
from anaphora.report.figures import style
from anaphora.runs.directory import load
from anaphora.training.module import TrainingModule
from anaphora.training.run import train
from anaphora.training.tensorboard.sentence_page import (
    PAGE,
    SENTENCES,
    SentencePage,
    SentenceRow,
    ShownValidation,
    sentence_row,
)

SMALL = ("trainer=smoke", "model.width=16", "model.layers=2", "optimizer.steps=8", "validation.every=2")
CORPUS = ("trainer.limit_steps=null", "data.train_items=300", "data.test_items=60", "trainer.loggers=[]")


def test_a_page_of_four_sentences_is_written_at_each_validation_named_once_and_changes_no_weight(
    settings: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = train(settings(*SMALL, *CORPUS, f"output={tmp_path}", "name=run"))
    assert capsys.readouterr().err.count(PAGE) == 1
    page = (run / PAGE).read_text(encoding="utf-8")
    assert page.count('<span class="row"') == 4 and re.findall(r"<tr><th scope=.row.>(\d+)</th>", page) == [
        "8",
        "6",
        "4",
        "2",
    ]
    assert "refresh" not in page and "loads itself again" not in page  # nothing follows step 8 of 8
    assert "rescued" in page and "http://" not in page and "https://" not in page
    monkeypatch.setattr(SentencePage, "on_validation_end", lambda *_: None)
    monkeypatch.setenv("ANAPHORA_LANGUAGE", "zh")
    other = train(settings(*SMALL, *CORPUS, f"output={tmp_path}", "name=other"))
    assert not (other / PAGE).exists()
    weights = load(run).model.state_dict()
    assert all(torch.equal(values, weights[name]) for name, values in load(other).model.state_dict().items())


def test_the_page_of_a_resumed_run_is_that_of_an_uninterrupted_one(
    settings: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = train(settings(*SMALL, *CORPUS, f"output={tmp_path / 'whole'}", "name=run"))
    step = TrainingModule.training_step

    def dies(module: TrainingModule, *rest: Any) -> Any:
        if module.global_step == 5:
            raise RuntimeError("the machine went down")
        return step(module, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(TrainingModule, "training_step", dies)
        with pytest.raises(RuntimeError, match="the machine went down"):
            train(settings(*SMALL, *CORPUS, f"output={tmp_path}", "name=run"))
    stopped = tmp_path / "run"
    shutil.copytree(stopped, tmp_path / "chinese")
    capsys.readouterr()
    train(settings("trainer=smoke", "trainer.limit_steps=null", f"resume={stopped}"))
    assert (stopped / PAGE).read_bytes() == (whole / PAGE).read_bytes()
    assert capsys.readouterr().err.count(PAGE) == 1
    # Other sentences, which the earlier rows are not about.
    readable = tuple((text.replace("虚弱", "小"), *rest) for text, *rest in SENTENCES["zh"])
    monkeypatch.setitem(SENTENCES, "zh", readable)
    monkeypatch.setenv("ANAPHORA_LANGUAGE", "zh")
    train(settings("trainer=smoke", "trainer.limit_steps=null", f"resume={tmp_path / 'chinese'}"))
    page = (tmp_path / "chinese" / PAGE).read_text(encoding="utf-8")
    assert re.findall(r"<tr><th scope=.row.>(\d+)</th>", page) == ["8", "6"]


def test_while_training_goes_on_a_reader_can_keep_the_page_and_hears_what_is_shaded(
    settings: Callable[..., Any], finished: Path, tmp_path: Path
) -> None:
    words = (("Anna", 71, False), ("was", 3, False), ("she", 26, True))
    row = SentenceRow("en", words, "Anna", True, 71)
    page = SentencePage(tmp_path / PAGE, settings("optimizer.steps=8"), load(finished).tokenizer)
    page._shown.append(ShownValidation(4, 1, 0, (row,) * 4))
    page._write()
    html = (tmp_path / PAGE).read_text(encoding="utf-8")
    assert re.findall(r'<span class="visually-hidden"> (\d+) %</span>', html) == ["71", "26"] * 4
    assert html.count('answer: <span lang="en">Anna</span>, right') == 4
    assert '<noscript><meta http-equiv="refresh"' in html
    assert 'type="checkbox" id="again" checked' in html and "if (again.checked) location.reload()" in html
    colours = re.findall(r'style="background: (#\w{6}); color: (#\w{6})"', html)
    assert len(colours) == 12
    assert all(style.contrast(to_rgb(ground), to_rgb(ink)) >= 4.5 for ground, ink in colours)


def test_a_run_that_does_not_know_the_words_of_the_sentences_has_no_page(finished: Path) -> None:
    assert not (finished / PAGE).exists()


def test_a_name_that_the_vocabulary_splits_has_the_sum_of_its_parts() -> None:
    example = example_from_query(*SENTENCES["zh"][2])
    spans = ((0, 0), *((place, place + 1) for place in range(len(example.text))))
    weights = (np.arange(len(spans))[None, None] / 100).astype(np.float32)  # 美玲 is the words 5 and 6
    row = sentence_row(example, WordRow(("[CLS]", *example.text), spans, weights), (0, 0), 1)
    assert example.words(1) == "美玲" and row.on_antecedent == 5 + 6 and row.is_right
