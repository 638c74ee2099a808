from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import anaphora
from anaphora.base.errors import UserError

TEXT = "Anna met Tom before she went to the park."
LONGER = "Anna met Tom before she went to the xylophone shop."


def test_the_word_that_decides_a_label_carries_it(labelled: Path) -> None:
    run = anaphora.load(labelled)
    for word, label in (("well", "a"), ("badly", "b")):
        attribution = run.attribution(f"It went {word}")
        assert attribution.answer == label and label in repr(attribution)
        assert attribution.words == ("[CLS]", "It", "went", word)
        np.testing.assert_array_equal(np.asarray(attribution), attribution.values)
        assert attribution.values.sum() == pytest.approx(attribution.difference, abs=0.05 * abs(attribution.difference))
    assert attribution.top(1)[0][0] == "badly"  # for "a" it may be enough that the word is missing


def test_gradients_exist_in_inference_mode(labelled: Path) -> None:
    expected = anaphora.load(labelled).attribution("It went well")
    with torch.inference_mode():
        run = anaphora.load(labelled)
        inside = run.attribution("It went well")
    for one in (inside, run.attribution("It went well")):
        np.testing.assert_array_equal(one.values, expected.values)


def test_a_sentence_leaves_nothing_in_the_cache(
    labelled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANAPHORA_CACHE", str(tmp_path / "cache"))
    anaphora.load(labelled).attribution("It went well")
    assert not (tmp_path / "cache").exists()


def test_what_a_run_does_not_read_of_a_long_text_adds_nothing(labelled: Path) -> None:
    run = anaphora.load(labelled)
    longest = run.run.config.batching.row_tokens
    attribution = run.attribution("It went well " + "very " * longest + "badly")
    assert attribution.answer == "a"
    assert len(attribution.words) > longest
    assert not attribution.values[longest:].any() and attribution.values[:4].any()


def test_an_answer_about_a_pronoun_is_attributed_to_words_or_tokens(finished: Path) -> None:
    run = anaphora.load(finished)
    by_word, by_token = (run.attribution(LONGER, "she", ["Anna", "Tom"], by=by) for by in ("word", "token"))
    assert by_word.answer == run.answer(LONGER, "she", ["Anna", "Tom"])
    assert len(by_token.words) > len(by_word.words) == 12
    for each in (by_word, by_token):
        assert each.values.sum() == pytest.approx(each.difference, abs=0.05)
    split = by_word.words.index("xylophone")
    start, end = by_word.spans[split]
    inside = [place for place, span in enumerate(by_token.spans) if start <= span[0] < span[1] <= end]
    assert len(inside) > 1
    np.testing.assert_allclose(by_word.values[split], by_token.values[inside].sum(), atol=1e-6)


def test_the_words_of_a_notebook_are_escaped(labelled: Path) -> None:
    page = anaphora.load(labelled).attribution("It went <b>well")._repr_html_()
    assert "&lt;" in page and "<b>well" not in page


def test_questions_that_a_run_does_not_answer_are_refused(labelled: Path, finished: Path) -> None:
    with pytest.raises(UserError, match="takes no pronoun"):
        anaphora.load(labelled).attribution("It went well", "It", ["well"])
    with pytest.raises(UserError, match="needs the pronoun and its candidates"):
        anaphora.load(finished).attribution(TEXT)
    with pytest.raises(UserError, match="by \\('letter'\\) must be one of word, token"):
        anaphora.load(labelled).attribution("It went well", by="letter")
