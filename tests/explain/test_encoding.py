from __future__ import annotations

import copy
import dataclasses
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import encoders
import numpy as np
import pytest
import tokenizers
import torch
from rich.cells import cell_len
from rich.console import Console

from anaphora.base.console import wrapped
from anaphora.base.errors import UserError
from anaphora.base.translation import _, spoken_in
from anaphora.data.batches.batching import encode_plain_text, single_batch
from anaphora.data.own_sentence import example_from_query
from anaphora.data.tokens.tokenizer import Tokenizer
from anaphora.explain.encoding import SentenceQuery, walk_through_run
from anaphora.explain.output import print_summary
from anaphora.explain.walk import Walkthrough
from anaphora.runs.directory import Run, load, randomly_initialised
from anaphora.settings.data import ControlledCorpus
from anaphora.settings.model import attention as attention_settings
from anaphora.settings.model import encoder as model_settings
from anaphora.settings.model import prediction as prediction_settings
from anaphora.settings.model.prediction import slots_of
from anaphora.settings.vocabulary import CLS

TEXT = "Anna met Tom before she went to the park."
CHINESE = "王芳碰到李强以后,她去了商店。"
VARIANTS = [
    *({"position": each} for each in encoders.POSITIONS),
    *({"attention": each} for each in encoders.ATTENTIONS),
    *({"norm": each} for each in encoders.NORMS),
    {"norm": model_settings.LayerNorm(placement="post", embedding=True), "position": encoders.POSITIONS[2]},
    {"feed_forward": model_settings.SwiGlu()},
    {"values": "token"},
    {"dropout": 0.3, "attention": attention_settings.MultiHead(heads=2, dropout=0.3)},
]
PREDICTION_HEADS = [
    prediction_settings.Word(),
    prediction_settings.Slot(),
    prediction_settings.Bilinear(),
    prediction_settings.Pointer(),
]


@pytest.fixture(scope="module")
def run(finished: Path) -> Run:
    return load(finished)


def query_of(text: str = TEXT, pronoun: str = "she", candidates: tuple[str, ...] = ("Anna", "Tom")) -> SentenceQuery:
    return SentenceQuery(text, example_from_query(text=text, pronoun=pronoun, candidates=list(candidates)))


def walk_of(run: Run, sentence: SentenceQuery, layer: int = 0, head: int = 0, language: str = "en") -> Walkthrough:
    with spoken_in(language):
        return walk_through_run(run, sentence, layer, head, None)


def own_output(run: Run, sentence: SentenceQuery) -> Any:
    """Return the output of the run's own encoder in float64."""
    model = copy.deepcopy(run.model).double()
    with torch.inference_mode():
        if sentence.example is None:
            return model.encoder(encode_plain_text(sentence.text, run.tokenizer)[0])[0].numpy()
        batch, _ = single_batch(sentence.example, run.tokenizer, slots_of(run.config.task.prediction))
        return model.encoder(model.encoder_input(batch))[0].numpy()


def varied(run: Run, changes: dict[str, object], prediction: prediction_settings.Prediction | None = None) -> Run:
    """Return the run with other settings and random weights, which are large enough to make differences visible."""
    task = dataclasses.replace(run.config.task, prediction=prediction or run.config.task.prediction, masked_lm=0.2)
    config = dataclasses.replace(run.config, model=encoders.shape(**changes), task=task)
    return dataclasses.replace(run, config=config, model=randomly_initialised(config, run.tokenizer.size, seed=0))


def follows(walk: Walkthrough) -> int:
    """Check every step that states a sum or product of matrices, and return the number of these steps."""
    checked = 0
    for step in walk.steps:
        match [part if isinstance(part, str) else part.values for part in step.parts]:
            case [left, "×", right, "+", bias, "=", result]:
                computed: Any = left @ right + bias  # type: ignore[operator]
            case [left, "×", right, "=", result]:
                computed = left @ right  # type: ignore[operator]
            case [left, "+", right, "=", result]:
                computed = left + right  # type: ignore[operator]
            case [left, "−", right, "=", result]:
                computed = left - right  # type: ignore[operator]
            case _:
                continue
        np.testing.assert_allclose(computed, np.asarray(result), rtol=0, atol=1e-10)
        checked += 1
    return checked


@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_the_stated_output_is_the_encoders_own_in_every_variant(changes: dict[str, object], run: Run) -> None:
    other = varied(run, changes)
    for layer in (0, 1):
        walk = walk_of(other, SentenceQuery(TEXT), layer=layer)
        own = own_output(other, SentenceQuery(TEXT))
        np.testing.assert_allclose(walk.steps[-1].result.values, own, rtol=0, atol=1e-10)
        assert follows(walk) >= 5


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_norm_of_the_embedding_is_a_step_of_its_own_and_not_part_of_the_position(language: str, run: Run) -> None:
    norm = model_settings.LayerNorm(placement="post", embedding=True)
    learned, turned = (varied(run, {"norm": norm, "position": encoders.POSITIONS[kind]}) for kind in (2, 3))
    walk = walk_of(learned, SentenceQuery(TEXT), language=language)
    assert [step.name for step in walk.steps][:2] == ["embedding", "embedding_norm"]
    table = learned.model.encoder.position.embed(torch.zeros(1, len(walk.queries), 16), torch.arange(len(walk.queries)))
    np.testing.assert_allclose(walk.step("embedding").matrix("P").values, table[0].detach().numpy(), atol=1e-6)
    np.testing.assert_allclose(walk.step("embedding_norm").result.values.mean(axis=1), 0, atol=1e-10)
    # Rotary positions add nothing, so that no vector of a position may be shown.
    shown = walk_of(turned, SentenceQuery(TEXT), language=language)
    assert len(shown.step("embedding").parts) == 1
    with spoken_in(language):
        added = _("A vector of its position is added, so that the order of the words is not lost.")
    assert added not in shown.step("embedding").text


@pytest.mark.parametrize("prediction", PREDICTION_HEADS, ids=lambda prediction: type(prediction).__name__)
def test_candidates_and_their_marks_are_those_that_the_encoder_reads(
    prediction: prediction_settings.Prediction, run: Run
) -> None:
    other = varied(run, {}, prediction)
    walk = walk_of(other, query_of(), layer=1)
    np.testing.assert_allclose(walk.step("after").result.values, own_output(other, query_of()), rtol=0, atol=1e-10)
    assert walk.step("answer").result.values.sum() == pytest.approx(1)


@pytest.mark.parametrize("sentence", [query_of(), query_of(CHINESE, "她", ("王芳", "李强"))])
def test_a_pronoun_may_read_the_text_as_a_second_sequence(sentence: SentenceQuery, run: Run) -> None:
    other = varied(run, {"second_sequence": True})
    walk = walk_of(other, sentence, layer=1)
    np.testing.assert_allclose(walk.step("after").result.values, own_output(other, sentence), rtol=0, atol=1e-10)
    weights = walk.step("weights").result.values
    assert np.isfinite(weights).all() and not weights[:, walk.row].any()
    with pytest.raises(UserError, match=r"second sequence \(model.second_sequence\): name the pronoun"):
        walk_of(other, SentenceQuery(sentence.text))


@pytest.mark.parametrize(
    "sentence", [query_of(), query_of(CHINESE, "她", ("王芳", "李强")), SentenceQuery("He met Tom.")]
)
def test_the_numbers_of_a_trained_run_are_right_to_the_tenth_digit(run: Run, sentence: SentenceQuery) -> None:
    for layer in (0, 1):
        walk = walk_of(run, sentence, layer=layer, head=1)
        np.testing.assert_allclose(walk.step("after").result.values, own_output(run, sentence), rtol=0, atol=1e-10)


def test_every_head_has_its_own_weights(run: Run) -> None:
    model = copy.deepcopy(run.model).double()
    tokens, _ = encode_plain_text(TEXT, run.tokenizer)
    with torch.inference_mode():
        maps = torch.stack(list(model.encoder.maps(tokens)))[:, 0].numpy()
    for layer in (0, 1):
        for head in (0, 1):
            walk = walk_of(run, SentenceQuery(TEXT), layer, head)
            np.testing.assert_allclose(walk.step("weights").result.values, maps[layer, head], rtol=0, atol=1e-12)


def test_the_answer_is_the_models_own(run: Run) -> None:
    walk = walk_of(run, query_of())
    share = walk.step("answer").result
    assert share.columns == ("Anna", "Tom")
    assert share.values.sum() == pytest.approx(1)
    batch, _ = single_batch(example_from_query(text=TEXT, pronoun="she", candidates=["Anna", "Tom"]), run.tokenizer)
    with torch.inference_mode():
        own = run.model.prediction_head.scores(run.model(batch), batch)[0, :2].softmax(0).numpy()
    np.testing.assert_allclose(share.values[0], own, atol=1e-5)
    assert f"The model answers: {share.columns[own.argmax()]}." in walk.about


def test_a_run_without_prediction_head_or_a_sentence_without_candidates_answers_nothing(run: Run) -> None:
    silent = varied(run, {}, prediction_settings.NoPrediction())
    for which, sentence in ((silent, query_of()), (run, query_of(candidates=())), (run, SentenceQuery(TEXT))):
        assert "answer" not in {step.name for step in walk_of(which, sentence).steps}


def test_the_current_row_is_the_last_pronouns_or_the_named_one(run: Run) -> None:
    assert walk_of(run, query_of()).queries[walk_of(run, query_of()).row] == "she"
    last = walk_of(run, SentenceQuery("She met Tom, and he left."))
    assert last.queries[last.row] == "he"
    with pytest.raises(UserError, match="no English or Chinese third-person pronoun"):
        walk_of(run, SentenceQuery("Tom met Anna."))
    assert walk_through_run(run, SentenceQuery("Tom met Anna."), 0, 0, "tom").row == 1
    assert walk_through_run(run, SentenceQuery("Tom met Anna."), 0, 0, "2").row == 2
    split = walk_through_run(run, SentenceQuery("Tom met Mariam."), 0, 0, "Mariam")
    assert split.row == 3 and split.queries[3] != "Mariam"
    for row, message in (("dinner", "is not in the text"), ("5", r"must be one of \[CLS\], Tom, met, Anna, \.")):
        with pytest.raises(UserError, match=rf"row \('{row}'\) {message}"):
            walk_through_run(run, SentenceQuery("Tom met Anna."), 0, 0, row)
    with pytest.raises(UserError, match=r"row \('met Anna'\) has several words; .* name one word"):
        walk_through_run(run, SentenceQuery("Tom met Anna."), 0, 0, "met Anna")


def test_a_note_says_which_token_of_a_word_of_several_the_steps_follow(run: Run) -> None:
    split = query_of(CHINESE, "王芳", ("李强",))
    (note,) = walk_of(run, split).step_notes
    assert note.startswith("“王芳” has 2 tokens; the steps follow the first, “王”")
    assert note in walk_of(run, split).plain()["notes"]
    assert walk_through_run(run, query_of(CHINESE, "她", ()), 0, 0, "王芳").step_notes == (note,)
    assert not walk_of(run, query_of()).step_notes and not walk_through_run(run, split, 0, 0, "芳").step_notes


def test_the_summary_averages_the_rows_of_a_pronoun_of_several_tokens_and_does_not_name_a_row(run: Run) -> None:
    walk, printed = walk_of(run, query_of(CHINESE, "王芳", ("李强",))), io.StringIO()
    print_summary(Console(file=printed, width=300), walk)
    weights, (word, rows) = walk.step("weights").result.values, walk.word_rows or ("", ())
    assert word == "王芳" and [walk.queries[row] for row in rows] == ["王", "芳"]
    (name, columns) = max(walk.units, key=lambda unit: float(weights[list(rows)].mean(axis=0)[list(unit[1])].sum()))
    share = float(weights[list(rows)].mean(axis=0)[list(columns)].sum())
    line = printed.getvalue().split("What “王芳” attends to\n")[1].splitlines()[0]
    assert line.split()[:2] == [name, f"{share:.4f}"] and "row=" not in printed.getvalue()
    other, same = walk_through_run(run, query_of(CHINESE, "她", ()), 0, 0, "王芳"), io.StringIO()
    print_summary(Console(file=same, width=300), other)
    assert other.word_rows == ("王芳", rows) and "What “王芳” attends to" in same.getvalue()


def test_lines_in_chinese_are_filled_and_never_begin_with_a_closing_mark() -> None:
    text = "模型 shipped：6 层，每层 4 个头，每个词元 256 个特征。所有数字都用 64 位精度算出。“最近的候选”50%）"
    for width in range(12, 60):
        lines = wrapped(text, width).split("\n")
        assert "".join("".join(lines).split()) == "".join(text.split())
        assert all(width - 10 <= cell_len(line) <= width for line in lines[:-1])
        assert not any(line[0] in "，。：”%）" or line[-1] in "“（" for line in lines)
    assert wrapped("The answer is Anna.", 5) == "The answer is Anna."


def test_a_text_without_a_word_is_refused_where_special_tokens_surround_it(run: Run) -> None:
    settings = json.loads(run.tokenizer.dumps())
    settings["added_tokens"].append(dict(settings["added_tokens"][0], id=run.tokenizer.size, content="[SEP]"))
    backend = tokenizers.Tokenizer.from_str(json.dumps(settings))
    backend.post_processor = tokenizers.processors.TemplateProcessing(
        "[CLS] $A [SEP]", special_tokens=[("[CLS]", CLS), ("[SEP]", run.tokenizer.size)]
    )
    tokenizer = Tokenizer(backend)
    model = randomly_initialised(run.config, tokenizer.size, seed=0)
    ending = dataclasses.replace(run, tokenizer=tokenizer, model=model)
    walk = walk_of(ending, SentenceQuery("Tom met Anna before she left."))
    assert walk.queries[0] == "[CLS]" and walk.queries[-1] == "[SEP]" and walk.queries[walk.row] == "she"
    with pytest.raises(UserError, match="has no word"):
        walk_of(ending, SentenceQuery("   "))


def test_a_prediction_head_that_compares_the_candidates_states_is_named(
    tmp_path: Path, tiny: Callable[..., Any]
) -> None:
    from anaphora.training.run import train

    pairs = load(train(tiny(tmp_path, "task/prediction=bilinear", "trainer.limit_steps=2")))
    assert walk_of(pairs, query_of()).notes[0].startswith("The prediction head compares the candidates’ own states")
    assert "候选自身的状态" in walk_of(pairs, query_of(), language="zh").notes[0]


@pytest.mark.parametrize(
    ("prediction", "reads"),
    [
        (prediction_settings.Word(), False),
        (prediction_settings.Bilinear(), True),
        (prediction_settings.Pair(), True),
        (prediction_settings.Pair(attention=True), False),
    ],
)
def test_prediction_heads_that_need_no_attention_are_known(
    prediction: prediction_settings.Prediction, reads: bool
) -> None:
    assert prediction_settings.reads_candidates(prediction) is reads


def test_words_that_the_model_does_not_know_are_named(run: Run) -> None:
    assert walk_of(run, SentenceQuery(TEXT)).notes == ()
    noted = " ".join(walk_of(run, SentenceQuery("She met zebra 7.")).notes)
    assert "7" in noted and "z" in noted


def test_a_word_in_subwords_and_a_candidate_of_several_tokens_are_one_unit(run: Run) -> None:
    walk = walk_of(run, query_of(CHINESE, "她", ("王芳", "李强")))
    members = {label: columns for label, columns in walk.units if label in ("王芳", "李强", "她")}
    assert {label: len(columns) for label, columns in members.items()} == {"王芳": 2, "李强": 2, "她": 1}
    assert [column for _, columns in walk.units for column in columns] == list(range(len(walk.queries)))
    zebra = dict(walk_of(run, SentenceQuery("She met zebra.")).units)["zebra"]
    assert len(zebra) > 1


def test_a_chinese_candidate_that_a_built_in_corpus_does_not_know_is_named(run: Run) -> None:
    query = query_of(CHINESE, "她", ("王芳", "李强"))
    assert not any("·" in note for note in walk_of(run, query, language="zh").notes)
    built_in = dataclasses.replace(run, config=dataclasses.replace(run.config, data=ControlledCorpus()))
    assert any("王·芳、李·强" in note for note in walk_of(built_in, query, language="zh").notes)


@pytest.mark.parametrize(
    ("text", "layer", "head", "message"),
    [
        (TEXT, 2, 0, r"layer \(2\) must be from 0 to 1 in run"),
        (TEXT, 0, 2, r"head \(2\) must be from 0 to 1 in run"),
        ("   ", 0, 0, "has no word"),
        ("Tom met Anna. " * 40, 0, 0, "text has 161 tokens; at most 96 can be explained; `anaphora attention`"),
    ],
)
def test_what_cannot_be_explained_is_an_error(text: str, layer: int, head: int, message: str, run: Run) -> None:
    with pytest.raises(UserError, match=message):
        walk_of(run, SentenceQuery(text), layer, head)


def test_explaining_leaves_the_run_as_it_was(run: Run) -> None:
    before = {name: value.clone() for name, value in run.model.state_dict().items()}
    walk_of(run, query_of())
    assert all(torch.equal(before[name], value) for name, value in run.model.state_dict().items())
    assert next(run.model.parameters()).dtype == torch.float32
