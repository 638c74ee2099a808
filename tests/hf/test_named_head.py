"""Tests of the rows of one named head, for which the forward pass stops at its layer, and of faster linear layers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tiny import HYBRIDS, TEXTS, random_model, tiny, tokenizer
from torch import nn
from torch.nn import functional

from anaphora.analysis.results.scores import Head
from anaphora.base.errors import UserError
from anaphora.data.own_sentence import example_from_query
from anaphora.hf.reader import open_model
from anaphora.hf.verification import forward
from anaphora.model import linear as kernels
from anaphora.model.linear import faster_products

EXAMPLES = [
    example_from_query(TEXTS[0], "she", ["Anna", "Emma"]),
    example_from_query(TEXTS[1], "unbelievably", ["The old man"]),
    example_from_query(TEXTS[0], "helped", ["Anna", "Emma"]),
    example_from_query(TEXTS[2], "他", ["小红", "小明"]),
]


@pytest.mark.parametrize("family", ["bert", "albert", "gpt2", "gemma2", "t5", "bloom", "deberta-v2"])
def test_the_rows_of_one_head_are_those_of_all_heads(family: str) -> None:
    """This includes a layer that runs twice, capped scores, position biases and eager mode."""
    opened = open_model(tiny(family), tokenizer())
    every = list(opened.records(EXAMPLES))
    for head in (Head(0, 3), Head(1, 0)):
        for whole, one in zip(every, opened.records(EXAMPLES, head), strict=True):
            assert one.weights.shape == (1, 1, whole.weights.shape[2])
            assert np.allclose(one.weights[0, 0], whole.weights[head.layer, head.head], atol=1e-6)


@pytest.mark.parametrize(("family", "settings"), HYBRIDS)
def test_layers_keep_their_numbers_where_some_do_not_attend(family: str, settings: dict[str, Any]) -> None:
    opened = open_model(random_model(family, **settings), tokenizer())
    (whole,), (one,) = opened.records(EXAMPLES[:1]), opened.records(EXAMPLES[:1], Head(3, 1))
    assert np.allclose(one.weights[0, 0], whole.weights[3, 1], atol=1e-6) and one.weights.sum() > 0
    with pytest.raises(UserError, match=r"layer \(0\) has no attention; layers with attention: 1, 3"):
        list(opened.records(EXAMPLES[:1], Head(0, 1)))


def test_the_sink_has_its_column() -> None:
    settings = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
    settings |= {
        "intermediate_size": 16,
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
        "vocab_size": 120,
        "head_dim": 8,
    }
    opened = open_model(random_model("gpt_oss", **settings), tokenizer())
    (whole,), (one,) = opened.records(EXAMPLES[:1]), opened.records(EXAMPLES[:1], Head(1, 2))
    assert one.special[0] == "[sink]" and np.allclose(one.weights[0, 0], whole.weights[1, 2], atol=1e-6)


def test_a_pass_ends_in_the_layer_of_the_head_and_leaves_the_model_as_it_was() -> None:
    opened = open_model(tiny("bert"), tokenizer())
    before = opened.model(torch.tensor([[2, 5, 6, 3]])).last_hidden_state
    opened.tokenize(TEXTS[0])  # which measures the longest text in a pass of its own
    ran: list[int] = []
    encoder: Any = opened.model.encoder
    hooks = [
        layer.output.register_forward_hook(lambda *_, number=number: ran.append(number))
        for number, layer in enumerate(encoder.layer)
    ]
    list(opened.records(EXAMPLES, Head(0, 0)))
    assert ran == []  # not even the end of layer 0
    list(opened.records(EXAMPLES))
    assert ran == [0]
    for hook in hooks:
        hook.remove()
    assert torch.equal(opened.model(torch.tensor([[2, 5, 6, 3]])).last_hidden_state, before)
    assert opened.model.config._attn_implementation == "sdpa"
    with pytest.raises(UserError, match=r"head \(4\) must be from 0 to 3"):
        list(opened.records(EXAMPLES, Head(0, 4)))


def test_what_a_pass_alters_is_set_back_before_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model is prepared once for several passes, each of which may change its state."""
    opened = open_model(tiny("bert"), tokenizer())
    expected = list(opened.records(EXAMPLES))
    run, seen = forward.run_model, []

    def altering(model: Any, inputs: Any, **options: Any) -> Any:
        seen.append(model.config.marked)
        model.config.marked = True
        return run(model, inputs, **options)

    opened.model.config.marked = False
    monkeypatch.setattr("anaphora.hf.reader.run_model", altering)
    monkeypatch.setattr("anaphora.hf.reader._ITEMS_AT_ONCE", 1)
    opened.model.train()
    for one, other in zip(opened.records(EXAMPLES), expected, strict=True):
        assert np.allclose(one.weights, other.weights, atol=1e-6)
    assert seen == [False] * 3 and opened.model.config.marked is False
    assert all(part.training for part in opened.model.modules())


def test_linear_layers_of_any_module_use_the_faster_product(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[torch.Size] = []

    def product(vectors: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        called.append(vectors.shape)
        return functional.linear(vectors, weight, bias)

    monkeypatch.setattr(kernels, "onednn_product", product)
    layer, rows = nn.Linear(8, 4), torch.randn(2, 9, 8)
    for has_kernel, calls in ((True, 1), (False, 0)):
        monkeypatch.setattr(kernels, "has_faster_kernel", lambda has_kernel=has_kernel: has_kernel)
        called.clear()
        with torch.no_grad(), faster_products():
            inside = layer(rows), layer(rows[0])  # nine rows are too few
        assert len(called) == calls
        assert torch.allclose(inside[0], layer(rows)) and torch.allclose(inside[1], layer(rows[0]))
    called.clear()
    assert layer(rows).shape == (2, 9, 4) and not called


def test_reading_uses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    entered: list[bool] = []

    def entering() -> Any:
        entered.append(True)
        return faster_products()

    monkeypatch.setattr("anaphora.hf.reader.faster_products", entering)
    list(open_model(tiny("bert"), tokenizer()).records(EXAMPLES))
    assert entered
