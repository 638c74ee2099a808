from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import encoders
import numpy as np
import pytest
import torch

from anaphora.analysis.settings import Analysis
from anaphora.checkpoint import Run, fresh, load
from anaphora.data.batch import one, unasked
from anaphora.errors import UserError
from anaphora.explain.encoding import Sentence, walk
from anaphora.explain.phrases import Phrases
from anaphora.explain.walk import Walk
from anaphora.model import settings as model_settings
from anaphora.model.settings import slots_of
from anaphora.question import example_of

TEXT = "Anna met Tom before she went to the park."
CHINESE = "王芳碰到李强以后,她去了商店。"
VARIANTS = [
    *({"position": each} for each in encoders.POSITIONS),
    *({"attention": each} for each in encoders.ATTENTIONS),
    *({"norm": each} for each in encoders.NORMS),
    {"feed_forward": model_settings.SwiGlu()},
    {"values": "token"},
    {"dropout": 0.3, "attention": model_settings.MultiHead(heads=2, dropout=0.3)},
]
READOUTS = [model_settings.Word(), model_settings.Slot(), model_settings.Bilinear(), model_settings.Pointer()]


@pytest.fixture(scope="module")
def run(finished: Path) -> Run:
    return load(finished)


def asked(text: str = TEXT, pronoun: str = "she", candidates: tuple[str, ...] = ("Anna", "Tom")) -> Sentence:
    return Sentence(text, example_of(Analysis(text=text, pronoun=pronoun, candidates=list(candidates))))


def told(run: Run, sentence: Sentence, layer: int = 0, head: int = 0, language: str = "en") -> Walk:
    return walk(run, sentence, layer, head, None, Phrases(language))


def own_output(run: Run, sentence: Sentence) -> Any:
    """What the run's own encoder puts out in float64."""
    resolver = copy.deepcopy(run.resolver).double()
    with torch.inference_mode():
        if sentence.example is None:
            return resolver.encoder(*unasked(sentence.text, run.tokenizer)[0])[0].numpy()
        batch, _ = one(sentence.example, run.tokenizer, slots_of(run.config.task.readout))
        marks = resolver.readout.marks(batch.slots)
        second = resolver.second(batch)
        return resolver.encoder(batch.inputs, batch.places, batch.segments, marks, second=second)[0].numpy()


def varied(run: Run, changes: dict[str, object], readout: model_settings.Readout | None = None) -> Run:
    """The run with other settings, at its random start, with wide weights, so that nothing is equal by being small."""
    task = dataclasses.replace(run.config.task, readout=readout or run.config.task.readout, hidden_words=0.2)
    config = dataclasses.replace(run.config, model=encoders.shape(**changes), task=task)
    return dataclasses.replace(run, config=config, resolver=fresh(config, run.tokenizer.size, seed=0))


def follows(told: Walk) -> int:
    """How many steps' sums and products of matrices are what stands behind the sign; none may differ."""
    checked = 0
    for step in told.steps:
        match [part if isinstance(part, str) else part.values for part in step.parts]:
            case [left, "×", right, "+", bias, "=", result]:
                found: Any = left @ right + bias  # type: ignore[operator]
            case [left, "×", right, "=", result]:
                found = left @ right  # type: ignore[operator]
            case [left, "+", right, "=", result]:
                found = left + right  # type: ignore[operator]
            case [left, "−", right, "=", result]:
                found = left - right  # type: ignore[operator]
            case _:
                continue
        np.testing.assert_allclose(found, np.asarray(result), rtol=0, atol=1e-10)
        checked += 1
    return checked


@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_the_stated_output_is_the_encoders_own_in_every_variant(changes: dict[str, object], run: Run) -> None:
    other = varied(run, changes)
    for layer in (0, 1):
        found = told(other, Sentence(TEXT), layer=layer)
        own = own_output(other, Sentence(TEXT))
        np.testing.assert_allclose(found.steps[-1].result.values, own, rtol=0, atol=1e-10)
        assert follows(found) >= 5


@pytest.mark.parametrize("readout", READOUTS, ids=lambda readout: type(readout).__name__)
def test_candidates_and_their_marks_are_told_as_the_encoder_reads_them(
    readout: model_settings.Readout, run: Run
) -> None:
    other = varied(run, {}, readout)
    found = told(other, asked(), layer=1)
    np.testing.assert_allclose(found.step("after").result.values, own_output(other, asked()), rtol=0, atol=1e-10)
    assert found.step("answer").result.values.sum() == pytest.approx(1)


@pytest.mark.parametrize("sentence", [asked(), asked(CHINESE, "她", ("王芳", "李强"))])
def test_a_pronoun_that_reads_the_text_as_a_second_sequence_is_told_so(sentence: Sentence, run: Run) -> None:
    other = varied(run, {"second_sequence": True})
    found = told(other, sentence, layer=1)
    np.testing.assert_allclose(found.step("after").result.values, own_output(other, sentence), rtol=0, atol=1e-10)
    weights = found.step("weights").result.values
    assert np.isfinite(weights).all() and not weights[:, found.row].any()
    with pytest.raises(UserError, match=r"second sequence \(model.second_sequence\): name the pronoun"):
        told(other, Sentence(sentence.text))


@pytest.mark.parametrize("sentence", [asked(), asked(CHINESE, "她", ("王芳", "李强")), Sentence("The park met Tom.")])
def test_a_trained_run_is_told_to_the_tenth_digit(run: Run, sentence: Sentence) -> None:
    for layer in (0, 1):
        found = told(run, sentence, layer=layer, head=1)
        np.testing.assert_allclose(found.step("after").result.values, own_output(run, sentence), rtol=0, atol=1e-10)


def test_every_head_is_told_with_its_own_weights(run: Run) -> None:
    resolver = copy.deepcopy(run.resolver).double()
    (ids, places, segments), _ = unasked(TEXT, run.tokenizer)
    with torch.inference_mode():
        maps = torch.stack(list(resolver.encoder.maps(ids, places, segments)))[:, 0].numpy()
    for layer in (0, 1):
        for head in (0, 1):
            found = told(run, Sentence(TEXT), layer, head)
            np.testing.assert_allclose(found.step("weights").result.values, maps[layer, head], rtol=0, atol=1e-12)


def test_the_answer_is_the_models_own(run: Run) -> None:
    found = told(run, asked())
    share = found.step("answer").result
    assert share.columns == ("Anna", "Tom")
    assert share.values.sum() == pytest.approx(1)
    batch, _ = one(example_of(Analysis(text=TEXT, pronoun="she", candidates=["Anna", "Tom"])), run.tokenizer)
    with torch.inference_mode():
        own = run.resolver.readout.scores(run.resolver.see(batch), batch)[0, :2].softmax(0).numpy()
    np.testing.assert_allclose(share.values[0], own, atol=1e-5)
    assert f"The model answers: {share.columns[own.argmax()]}." in found.about


def test_a_run_without_readout_or_a_sentence_without_candidates_answers_nothing(run: Run) -> None:
    silent = varied(run, {}, model_settings.NoReadout())
    for which, sentence in ((silent, asked()), (run, asked(candidates=())), (run, Sentence(TEXT))):
        assert "answer" not in {step.name for step in told(which, sentence).steps}


def test_the_row_in_hand_is_the_pronoun_the_last_word_or_the_one_asked_for(run: Run) -> None:
    assert told(run, asked()).tokens[told(run, asked()).row] == "she"
    last = told(run, Sentence("Tom met Anna."))
    assert last.tokens == ("[start]", "Tom", "met", "Anna", ".")
    assert last.tokens[last.row] == "Anna"
    assert walk(run, Sentence("Tom met Anna."), 0, 0, "tom", Phrases("en")).row == 1
    assert walk(run, Sentence("Tom met Anna."), 0, 0, "2", Phrases("en")).row == 2
    cut = walk(run, Sentence("Tom met Mariam."), 0, 0, "Mariam", Phrases("en"))
    assert cut.row == 3 and cut.tokens[3] != "Mariam"
    for row, message in (("dinner", "is not in the text"), ("5", r"must be one of \[start\], Tom, met, Anna, \.")):
        with pytest.raises(UserError, match=rf"row \('{row}'\) {message}"):
            walk(run, Sentence("Tom met Anna."), 0, 0, row, Phrases("en"))


def test_a_read_out_that_compares_the_candidates_states_is_named(tmp_path: Path, tiny: Callable[..., Any]) -> None:
    from anaphora.training.run import train

    pairs = load(train(tiny(tmp_path, "task/readout=bilinear", "trainer.limit_steps=2")).directory)
    assert told(pairs, asked()).notes == (Phrases("en")("run", "compared"),)
    assert told(pairs, asked(), language="zh").notes == (Phrases("zh")("run", "compared"),)


@pytest.mark.parametrize(
    ("readout", "reads"),
    [
        (model_settings.Word(), False),
        (model_settings.Bilinear(), True),
        (model_settings.Pair(), True),
        (model_settings.Pair(attention=True), False),
    ],
)
def test_read_outs_that_need_no_attention_are_told_from_others(readout: model_settings.Readout, reads: bool) -> None:
    assert model_settings.reads_candidates(readout) is reads


def test_words_that_the_model_does_not_know_are_named(run: Run) -> None:
    assert told(run, Sentence(TEXT)).notes == ()
    noted = " ".join(told(run, Sentence("Anna met zebra 7.")).notes)
    assert "7" in noted and "z" in noted


@pytest.mark.parametrize(
    ("text", "layer", "head", "message"),
    [
        (TEXT, 2, 0, r"layer \(2\) must be from 0 to 1 in run"),
        (TEXT, 0, 2, r"head \(2\) must be from 0 to 1 in run"),
        ("   ", 0, 0, "has no word"),
        ("Tom met Anna. " * 40, 0, 0, "text has 161 tokens; at most 96 can be shown"),
    ],
)
def test_what_cannot_be_explained_is_told(text: str, layer: int, head: int, message: str, run: Run) -> None:
    with pytest.raises(UserError, match=message):
        told(run, Sentence(text), layer, head)


def test_explaining_leaves_the_run_as_it_was(run: Run) -> None:
    before = {name: value.clone() for name, value in run.resolver.state_dict().items()}
    told(run, asked())
    assert all(torch.equal(before[name], value) for name, value in run.resolver.state_dict().items())
    assert next(run.resolver.parameters()).dtype == torch.float32
