"""A model is read and edited alike in inference mode, compiled, and in several threads."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from tiny import TEXTS, tiny, tiny_folder, tiny_language_model, tokenizer

from anaphora.analysis.causal.interventions import knockout_edges
from anaphora.analysis.results.scores import Head
from anaphora.base.errors import UserError
from anaphora.hf.reader import TransformersModel, open_model


def maps_and_logits(opened: TransformersModel) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the maps of a text, and its logits when token 5 does not attend to token 2 in one head."""
    tokens = opened.tokenize(TEXTS[0])
    cut = knockout_edges({Head(0, 1): (torch.tensor([5]), torch.tensor([2]))})
    return opened.token_maps(tokens), opened.logits([tokens], cut)[0].numpy()


def assert_same(opened: TransformersModel, expected: tuple[NDArray[np.float32], NDArray[np.float32]]) -> None:
    for one, other in zip(maps_and_logits(opened), expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


@pytest.mark.parametrize("family", ["bert", "bloom", "llama"])
def test_inference_mode_changes_nothing(family: str) -> None:
    expected = maps_and_logits(open_model(tiny_language_model(family), tokenizer()))
    with torch.inference_mode():
        assert_same(open_model(tiny_language_model(family), tokenizer()), expected)
        made_in_it = tiny_language_model(family)
    assert_same(open_model(made_in_it, tokenizer()), expected)


def test_a_folder_without_a_pooler_opens_in_inference_mode(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder: Path = tiny_folder(tmp_path_factory, "bert")
    path = folder / "model.safetensors"
    save_file({key: one for key, one in load_file(path).items() if "pooler" not in key}, path, {"format": "pt"})
    with torch.inference_mode():
        maps = open_model(folder).maps(TEXTS[0])[1]
    np.testing.assert_array_equal(maps, open_model(tiny("bert"), tokenizer()).maps(TEXTS[0])[1])


@pytest.fixture
def _not_compiled_before() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.mark.usefixtures("_not_compiled_before")
def test_a_model_of_compiled_parts_is_read_and_edited() -> None:
    model, ids = tiny_language_model("llama"), torch.arange(2, 14)[None]
    expected = maps_and_logits(open_model(model, tokenizer()))
    model.model.compile(backend="eager")
    with torch.no_grad():
        before = model(ids, attention_mask=torch.ones_like(ids)).logits
    assert_same(open_model(model, tokenizer()), expected)
    with torch.no_grad():
        assert torch.equal(model(ids, attention_mask=torch.ones_like(ids)).logits, before)


def test_a_compiled_copy_names_the_model_itself() -> None:
    copy: Any = torch.compile(tiny("bert"), backend="eager")
    with pytest.raises(UserError, match=r"give the model itself: model\._orig_mod"):
        open_model(copy, tokenizer())


@pytest.mark.usefixtures("_not_compiled_before")
@pytest.mark.filterwarnings("ignore:flex_attention called without")
def test_flex_attention_is_read_and_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.nn.attention.flex_attention, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True)
    model = tiny_language_model("llama")
    expected = maps_and_logits(open_model(model, tokenizer()))
    model.set_attn_implementation("flex_attention")
    assert_same(open_model(model, tokenizer()), expected)
    assert model.config._attn_implementation == "flex_attention"


def test_threads_may_read_two_models_at_once() -> None:
    models = [tiny_language_model(family) for family in ("llama", "gpt2")]
    expected = [maps_and_logits(open_model(model, tokenizer())) for model in models]

    def read_often(number: int) -> None:
        for _ in range(5):
            assert_same(open_model(models[number], tokenizer()), expected[number])

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(read_often, range(2)))


def test_threads_may_share_a_model() -> None:
    model = tiny_language_model("llama")
    opened = open_model(model, tokenizer())
    expected = maps_and_logits(opened)

    def read_often(_: int) -> None:
        for _ in range(20):
            assert_same(opened, expected)

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(read_often, range(3)))
    assert model.config._attn_implementation == "sdpa"
