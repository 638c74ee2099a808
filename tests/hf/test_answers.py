from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tiny import GROUPED, tiny, tiny_language_model, tokenizer, transformers

import anaphora
from anaphora.analysis.causal.language_models import LanguageModelSubject
from anaphora.base.errors import UserError
from anaphora.data.own_sentence import example_from_query
from anaphora.hf.editable import TransformersLanguageModel
from anaphora.hf.reader import open_model

QUESTION = ("Anna helped Emma because she was weak.", "she", ["Emma", "Anna"])


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_a_language_model_shares_its_answer_among_the_candidates(family: str) -> None:
    model = tiny_language_model(family, initializer_range=0.5)
    (answer,) = anaphora.answers(model, [QUESTION], tokenizer=tokenizer())
    subject = LanguageModelSubject(
        TransformersLanguageModel(open_model(model, tokenizer())), [example_from_query(*QUESTION)]
    )
    anna, emma, _ = subject.scores()[0]
    assert [one.words for one in answer.candidates] == ["Emma", "Anna"]
    assert answer.candidates[0].probability == pytest.approx(1 / (1 + np.exp(anna - emma)), abs=1e-6)
    assert answer.none_of_them == 0 and answer.answer == ("Emma" if emma > anna else "Anna")


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_logits_that_are_not_finite_give_no_answers(family: str) -> None:
    """Quantisation to 8-bit floats divides a row of zeros by 0, for instance that of [PAD] in the output layer."""
    model = tiny_language_model(family, initializer_range=0.5, tie_word_embeddings=False)
    model.get_output_embeddings().weight.data[0] = torch.nan
    with pytest.raises(UserError, match=r"its output layer gives numbers that are not finite .* \('Anna helped Emma "):
        anaphora.answers(model, [QUESTION], tokenizer=tokenizer())


def test_a_question_that_a_language_model_cannot_be_asked_is_named() -> None:
    model = tiny_language_model("bert")
    longest = "Anna helped Emma " + "because " * 58 + "she left."
    fits = (longest, "she", ["Anna"])
    assert len(anaphora.answers(model, [QUESTION], tokenizer=tokenizer())) == 1
    with pytest.raises(UserError, match=r"tokens|cannot be asked"):
        anaphora.answers(model, [QUESTION, fits], tokenizer=tokenizer())
    with pytest.raises(UserError, match="no output layer"):
        anaphora.answers(tiny("bert"), [QUESTION], tokenizer=tokenizer())


def test_a_loss_of_the_experts_is_not_taken_for_the_logits() -> None:
    settings = {**GROUPED, "num_local_experts": 4, "initializer_range": 0.5}

    def answer(output_router_logits: bool) -> list[float]:
        torch.manual_seed(0)
        config = transformers.MixtralConfig(**settings, output_router_logits=output_router_logits)
        model = transformers.MixtralForCausalLM(config).eval()
        (one,) = anaphora.answers(model, [QUESTION], tokenizer=tokenizer())
        return [candidate.probability for candidate in one.candidates]

    assert answer(output_router_logits=True) == answer(output_router_logits=False)


@pytest.mark.parametrize(
    ("family", "changes", "reason"),
    [
        ("xlnet", {"d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64, "vocab_size": 120}, "is not causal"),
        ("bert", {"is_decoder": True}, "is causal"),
    ],
)
def test_an_output_layer_that_does_not_fit_the_attention_gives_no_answers(
    family: str, changes: dict[str, Any], reason: str
) -> None:
    """XLNet's answers to masks would come from a second stream, which reads no text by itself."""
    model = tiny_language_model(family, **changes)
    with pytest.raises(UserError, match=reason):
        anaphora.answers(model, [QUESTION], tokenizer=tokenizer())
