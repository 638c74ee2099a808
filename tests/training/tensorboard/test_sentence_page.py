from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb

from anaphora.analysis.maps.words import WordRow
from anaphora.base.language import words_of
from anaphora.data.batches.encoded import EncodedSplit
from anaphora.data.example import Example
from anaphora.data.own_sentence import example_from_query
from anaphora.data.tokens.vocabulary import word_vocabulary
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
    readable_sentences,
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
    assert "refresh" not in page and "reloads itself" not in page  # nothing follows step 8 of 8
    assert "http://" not in page and "https://" not in page
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
    tokenizer = load(finished).tokenizer
    page = SentencePage(tmp_path / PAGE, settings("optimizer.steps=8"), tokenizer, EncodedSplit([], tokenizer))
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


def test_a_run_that_does_not_know_the_words_of_the_sentences_shows_items_of_its_own(finished: Path) -> None:
    page = (finished / PAGE).read_text(encoding="utf-8")
    assert re.findall(r'class="row" lang="(\w+)"', page) == ["en", "en", "zh", "zh"]
    assert "rescued" not in page and page.count(">met<") == 2


def test_several_antecedents_several_mentions_and_none_are_each_shown() -> None:
    example = Example(
        text="Anna met Emma, and Anna knew she won.",
        language="en",
        pronoun=(29, 32),
        candidates=(((0, 4), (19, 23)), ((9, 13),)),
        antecedents=(0, 1),
    )
    spans = (*words_of(example.text),)
    words = tuple(example.text[slice(*span)] for span in spans)
    row = WordRow(words, spans, (np.arange(len(spans))[None, None] / 100).astype(np.float32))
    assert words[0] == "Anna" and words[2] == "Emma" and words[5] == "Anna"
    assert sentence_row(example, row, (0, 0), 1).on_antecedent == 0 + 2 + 5
    assert sentence_row(example, row, (0, 0), 1).is_right
    nobody = replace(example, antecedents=())
    assert sentence_row(nobody, row, (0, 0), 1).on_antecedent == 0
    assert not sentence_row(nobody, row, (0, 0), 1).is_right


def test_words_that_the_vocabulary_of_a_run_spells_in_letters_count_as_unknown(
    settings: Callable[..., Any], tmp_path: Path
) -> None:
    texts = [text for text, *_ in SENTENCES["en"]] * 2
    known = readable_sentences(word_vocabulary(texts), has_word_tokens=True)
    assert known is not None and [example.text for example in known.examples] == texts[:4]
    letters = word_vocabulary([text.replace("rescued", "r e s c u d") for text in texts])
    assert not any(letters.encode(text).unread for text in texts)
    assert readable_sentences(letters, has_word_tokens=True) is None
    assert readable_sentences(letters, has_word_tokens=False) is not None  # subwords, which a model can learn to read
    items = EncodedSplit([example_from_query("Anna was weak because she was.", "she", ("Anna", "weak"))], letters)
    page = SentencePage(tmp_path / PAGE, settings(), letters, items)
    assert [example.text for example in page._sentences.examples] == [items.examples[0].text]


def test_a_name_that_the_vocabulary_splits_has_the_sum_of_its_parts() -> None:
    example = example_from_query(*SENTENCES["zh"][2])
    spans = ((0, 0), *((place, place + 1) for place in range(len(example.text))))
    weights = (np.arange(len(spans))[None, None] / 100).astype(np.float32)  # 美玲 is the words 5 and 6
    row = sentence_row(example, WordRow(("[CLS]", *example.text), spans, weights), (0, 0), 1)
    assert example.words(1) == "美玲" and row.on_antecedent == 5 + 6 and row.is_right
