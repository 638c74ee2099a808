"""Tests of the forms in which models of other people come: adapters, wrappers, other formats, quantised objects."""

from __future__ import annotations

import json
import shutil
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny import TEXTS, tiny, tiny_folder, tiny_language_model, tokenizer
from torch import Tensor, nn

import anaphora
from anaphora.base.errors import UserError
from anaphora.hf.reader import open_model

KEY = "encoder.layer.1.attention.self.key.weight"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_folder(tmp_path_factory, "bert")


@pytest.fixture
def model(folder: Path, tmp_path: Path) -> Path:
    """Return a copy of the folder, to be changed."""
    return Path(shutil.copytree(folder, tmp_path / "model"))


def refused(model: Any, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        open_model(model, None if isinstance(model, Path) else tokenizer())
    assert "\n" not in str(caught.value)


def write_adapter(folder: Path, **fields: object) -> None:
    (folder / "adapter_config.json").write_text(json.dumps(fields))


LORA = {"base_model_name_or_path": "google-bert/bert", "peft_type": "LORA"}
MAPPING = {"base_model_class": "BertModel", "parent_library": "transformers.models.bert.modeling_bert"}


@pytest.mark.parametrize("with_model", [True, False])
@pytest.mark.parametrize(
    ("fields", "opened"),
    [
        ({**LORA, "task_type": "CAUSAL_LM"}, r"peft\.AutoPeftModelForCausalLM\.from_pretrained\(.*model'\)\.merge_and"),
        (
            {**LORA, "task_type": "SEQ_CLS"},
            r"peft\.AutoPeftModelForSequenceClassification\.from_pretrained\(.*\.merge_and",
        ),
        ({**LORA, "auto_mapping": MAPPING}, r"peft\.AutoPeftModel\.from_pretrained\(.*\.merge_and_unload"),
        (LORA, r"peft\.PeftModel\.from_pretrained\(base, .*; base must be of the class that was adapted"),
    ],
)
def test_an_adapter_is_to_be_merged_in_the_class_that_was_adapted(
    fields: dict[str, object], opened: str, with_model: bool, model: Path
) -> None:
    """In another class, peft leaves out the adapter, since its weights have other names there."""
    write_adapter(model, **fields)
    if not with_model:
        (model / "config.json").unlink()
        (model / "model.safetensors").rename(model / "adapter_model.safetensors")
    refused(model, rf"an adapter \(LORA\) of google-bert/bert; merge it first: {opened}")


@pytest.mark.parametrize("kind", ["PREFIX_TUNING", "PROMPT_TUNING", "P_TUNING"])
def test_vectors_before_a_text_cannot_be_merged(kind: str, model: Path) -> None:
    write_adapter(model, base_model_name_or_path="google-bert/bert", peft_type=kind, task_type="CAUSAL_LM")
    refused(
        model, rf"an adapter \({kind}\) of google-bert/bert, which adds vectors .* cannot be merged into the weights"
    )


def test_a_loaded_model_with_an_adapter_is_to_be_merged_first() -> None:
    class PeftModel(nn.Module):
        def merge_and_unload(self) -> None: ...

    class PeftModelForCausalLM(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.base_model, self.peft_config = tiny("bert"), {"default": "PREFIX_TUNING"}

    refused(PeftModel(), r"model \(PeftModel\) is a model with an adapter of peft; merge it")
    refused(PeftModelForCausalLM(), r"cannot be merged; model\.get_base_model\(\) is the model without it")


def test_a_wrapper_names_the_model_that_it_holds() -> None:
    refused(nn.DataParallel(tiny("bert")), r"model \(DataParallel\) .*; give the model itself: model\.module$")
    within = nn.Sequential(nn.ModuleDict({"auto_model": tiny("bert")}))
    refused(within, r"give the model itself: model\.get_submodule\('0\.auto_model'\)")
    refused(SimpleNamespace(model=tiny("bert")), r"give the model itself: model\.model$")
    body = SimpleNamespace(model_head=None, model_body=within)  # as in SetFit
    refused(body, r"give the model itself: model\.model_body\.get_submodule\('0\.auto_model'\)")
    refused(nn.Linear(2, 2), r"model \(Linear\) must be a folder")


def test_a_model_without_weights_in_memory_is_named() -> None:
    refused(tiny("bert").to("meta"), r"model \(BertModel\) has no weights in memory; load it without offloading")


@pytest.mark.parametrize("place", ["checkpoint-500", "snapshots/0123"])
def test_a_folder_of_folders_names_the_one_with_a_model(place: str, folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "outer" / place)
    refused(tmp_path / "outer", f"there is no config.json of a model of transformers; {place} in it has one")


def test_a_file_is_no_folder(folder: Path) -> None:
    refused(folder / "model.safetensors", r"model\.safetensors\) is a file; name its folder")


@pytest.mark.parametrize("name", ["model.gguf", "onnx/model.onnx", "tf_model.h5", "model.pt", "model.fp16.safetensors"])
def test_weights_in_another_format_are_named(name: str, model: Path) -> None:
    (model / name).parent.mkdir(exist_ok=True)
    (model / "model.safetensors").rename(model / name)
    refused(model, f"model.safetensors is missing; {name} is not read in its place")


def test_a_link_to_nothing_is_named(model: Path) -> None:
    (model / "model.safetensors").unlink()
    (model / "model.safetensors").symlink_to(model / "blob")
    refused(model, "model.safetensors is a link to a file that is missing$")


@pytest.mark.parametrize(
    ("name", "reason"),
    [("model.safetensors", "broken or cut off"), ("tokenizer.json", "not JSON"), ("tokenizer_config.json", "not JSON")],
)
def test_a_broken_file_is_named(name: str, reason: str, model: Path) -> None:
    content = (model / name).read_bytes()
    (model / name).write_bytes(content[: len(content) // 2])
    refused(model, rf"{name}.*: {reason}")
    (model / name).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    refused(model, f"{name}: only a pointer of Git LFS")


@pytest.mark.parametrize("name", [None, "OwnTokenizer", "T5Tokenizer"])
def test_a_missing_tokenizer_is_named(name: str | None, model: Path) -> None:
    if name == "T5Tokenizer" and find_spec("sentencepiece"):
        pytest.skip("sentencepiece reads the file")
    (model / "tokenizer.json").unlink()
    if name:
        (model / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name}))
    if name == "T5Tokenizer":  # without the package sentencepiece, transformers takes its file for one of tiktoken
        (model / "spiece.model").write_bytes(b"no model of sentencepiece")
    refused(
        model, "its tokenizer is missing, or in a format or of a class that .* put tokenizer.json beside config.json"
    )


@pytest.mark.parametrize("implementation", ["flash_attention_2", "someone/kernel"])
@pytest.mark.parametrize("key", ["attn_implementation", "_attn_implementation"])
def test_a_kernel_that_the_configuration_asks_for_is_not_needed(
    key: str, implementation: str, model: Path, folder: Path
) -> None:
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, key: implementation}))
    np.testing.assert_array_equal(open_model(model).maps(TEXTS[0])[1], open_model(folder).maps(TEXTS[0])[1])


def change(model: Path, **added: Tensor) -> None:
    tensors = load_file(model / "model.safetensors")
    save_file(tensors | added, model / "model.safetensors", metadata={"format": "pt"})


@pytest.mark.parametrize(
    ("name", "other"),
    [(KEY, f"bert.{KEY}"), ("encoder.layer.0.output.LayerNorm.weight", "encoder.layer.0.output.LayerNorm.gamma")],
)
def test_two_tensors_for_one_weight_are_refused(name: str, other: str, model: Path) -> None:
    change(model, **{other: 2 * load_file(model / "model.safetensors")[name]})
    refused(model, r"(bert\.|gamma).* of the file are one weight of the model; remove all but one")


@pytest.mark.parametrize("part", ["weight_orig", "parametrizations.weight.original0", "qweight"])
def test_a_weight_that_is_stored_in_parts_is_named(part: str, model: Path) -> None:
    tensors = load_file(model / "model.safetensors")
    stem = KEY.removesuffix("weight")
    tensors[stem + part] = tensors.pop(KEY)
    save_file(tensors, model / "model.safetensors", metadata={"format": "pt"})
    # transformers itself renames the parts of a parametrised weight
    refused(model, rf"missing in the file: {KEY}; the file has {stem}\S*weight\S* in place of the first")


def test_a_padding_token_of_the_tokenizer_alone_is_not_needed(folder: Path) -> None:
    """It is often added to a tokenizer for training, and the table of tokens keeps its size."""
    own = open_model(folder).tokenizer
    own.add_tokens([f"added{number}" for number in range(40)])
    own.add_special_tokens({"pad_token": "<padding>"})
    opened, plain = open_model(tiny("bert"), own), open_model(folder)
    assert own.pad_token_id >= 120
    texts = [plain.tokenize(text) for text in TEXTS[:2]]
    for one, other in zip(opened.run(texts), plain.run(texts), strict=True):
        assert torch.equal(one, other)


def test_a_tokenizer_replaces_that_of_a_folder(folder: Path, model: Path) -> None:
    own = open_model(folder).tokenizer
    own.add_tokens(["helped Emma"])
    shape = np.asarray(anaphora.attention(folder, TEXTS[0], by="token", tokenizer=own)).shape
    assert shape[-1] == np.asarray(anaphora.attention(folder, TEXTS[0], by="token")).shape[-1] - 2
    (model / "tokenizer.json").unlink()
    assert np.asarray(anaphora.attention(model, TEXTS[0], by="token", tokenizer=own)).shape == shape
    with pytest.raises(UserError, match="tokenizer: shipped is a run, which has its own; leave it out"):
        anaphora.attention("shipped", TEXTS[0], tokenizer=own)


class StepsOfTheBatch(nn.Module):
    """Linear layer whose inputs are rounded in steps that depend on the greatest number of the batch."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.linear = linear

    def forward(self, inputs: Tensor) -> Tensor:
        step = inputs.abs().max() / 127
        rounded: Tensor = self.linear((inputs / step).round() * step)
        return rounded


def test_texts_run_alone_if_numbers_are_quantised_by_batch() -> None:
    model = tiny("llama")
    for layer in model.layers:
        layer.self_attn.k_proj = StepsOfTheBatch(layer.self_attn.k_proj)
    opened = open_model(model, tokenizer())
    texts = [opened.tokenize(text) for text in TEXTS[:2]]
    together = torch.stack(opened.run(texts))
    for row, text in enumerate(texts):
        alone = torch.stack(opened.run([text]))[:, 0]
        length = alone.shape[-1]
        torch.testing.assert_close(together[:, row, :, :length, :length], alone, atol=1e-6, rtol=0)


class InTwoParts(Tensor):
    """Tensor that holds integers and a scale in its place, as quantised weights do."""

    @staticmethod
    def __new__(cls, numbers: Tensor, scale: Tensor) -> InTwoParts:
        return Tensor._make_wrapper_subclass(cls, numbers.shape, dtype=scale.dtype)

    def __init__(self, numbers: Tensor, scale: Tensor) -> None:
        self.numbers, self.scale = numbers, scale

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["numbers", "scale"], None

    @staticmethod
    def __tensor_unflatten__(inner: dict[str, Tensor], *_: Any) -> InTwoParts:
        return InTwoParts(inner["numbers"], inner["scale"])

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, function: Any, types: Any, arguments: Any = (), options: Any = None
    ) -> Any:
        def plain(one: Any) -> Any:
            return one.numbers * one.scale if isinstance(one, InTwoParts) else one

        if "detach" in str(function):
            return InTwoParts(arguments[0].numbers, arguments[0].scale)
        return function(*map(plain, arguments), **(options or {}))


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_weights_in_two_parts_are_read_as_their_product(family: str) -> None:
    model, plain = tiny_language_model(family), tiny_language_model(family)
    for name in [name for name, module in model.named_modules() if isinstance(module, nn.Linear) and "layer" in name]:
        weight = plain.get_submodule(name).weight
        scale = weight.detach().abs().amax(dim=1, keepdim=True) / 127
        numbers = (weight.detach() / scale).round().to(torch.int8)
        weight.data = numbers * scale
        model.get_submodule(name).weight = nn.Parameter(InTwoParts(numbers, scale), requires_grad=False)
    expected = open_model(plain, tokenizer()).maps(TEXTS[0])[1]
    np.testing.assert_allclose(open_model(model, tokenizer()).maps(TEXTS[0])[1], expected, atol=1e-6)
