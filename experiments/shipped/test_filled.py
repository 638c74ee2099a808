"""Tests that a candidate takes the pronoun's place and form, and that the most likely rest of a text decides."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tiny import tiny_language_model, tokenizer

from anaphora.data.own_sentence import example_from_query
from experiments.shipped.filled import filled, hits, log_likelihoods


@pytest.mark.parametrize(
    ("text", "pronoun", "expected"),
    [
        ("The nurse rang Anna because she was late.", "she", ["the nurse| was late.", "Anna| was late."]),
        ("The nurse rang Anna. Her bus was late.", "Her", ["The nurse's| bus was late.", "Anna's| bus was late."]),
        ("The nurse met Anna and I saw her.", "her", ["the nurse|.", "Anna|."]),
    ],
)
def test_a_candidate_is_written_in_the_form_of_the_pronoun(text: str, pronoun: str, expected: list[str]) -> None:
    example = example_from_query(text, pronoun, ["nurse", "Anna"], "Anna")
    rests = ["|".join(filled(example, number)).removeprefix(text[: example.pronoun[0]]) for number in range(2)]
    assert rests == expected


def test_in_chinese_the_noun_alone_takes_the_place() -> None:
    example = example_from_query("妈妈给小美打电话，因为她迟到了。", "她", ["妈妈", "小美"], "小美")
    assert filled(example, 1) == ("妈妈给小美打电话，因为小美", "迟到了。")


def test_the_likelihood_is_that_of_the_rest_after_the_first_part() -> None:
    model, tokens = tiny_language_model("llama", max_position_embeddings=256).eval(), tokenizer()
    parts = [("Anna met Tom", " and left"), ("Anna", " met Tom and left at once")]
    for (first, second), found in zip(parts, log_likelihoods(model, tokens, parts), strict=True):
        ids = torch.tensor([tokens.encode(first + second, add_special_tokens=False)])
        behind = ids.shape[1] - len(tokens.encode(first, add_special_tokens=False))
        opened = ids if tokens.bos_token_id is None else torch.cat((torch.tensor([[tokens.bos_token_id]]), ids), dim=1)
        with torch.inference_mode():
            steps = model(input_ids=opened).logits.log_softmax(-1)[0, :-1]
        expected = steps.gather(1, opened[0, 1:, None]).squeeze(1)[-behind:].sum().item()
        assert found == pytest.approx(expected, abs=1e-4)


def test_the_candidate_with_the_most_likely_rest_is_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def fewest_letters(model: Any, tokenizer: Any, parts: list[tuple[str, str]]) -> list[float]:
        return [-float(len(first)) for first, _ in parts]

    monkeypatch.setattr("experiments.shipped.filled.log_likelihoods", fewest_letters)
    text = "Ann met Gabriella before she left. "
    examples = [example_from_query(text, "she", ["Ann", "Gabriella"], meant) for meant in ("Ann", "Gabriella")]
    assert list(hits(SimpleNamespace(), SimpleNamespace(), examples)) == [True, False]
