"""Tests of the files that a model folder needs for correct maps."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny import (
    GROUPED,
    SETTINGS,
    SIZE,
    TEXTS,
    skip_if_unknown,
    tiny,
    tiny_folder,
    tiny_language_model,
    tokenizer,
    transformers,
)
from tokenizers import AddedToken, pre_tokenizers
from torch import Tensor

from anaphora.base.errors import UserError
from anaphora.hf.reader import open_model

Tensors = dict[str, Tensor]
KEY = "encoder.layer.1.attention.self.key.weight"
DISTANCES = "encoder.layer.0.attention.self.distance_embedding.weight"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_folder(tmp_path_factory, "bert")


@pytest.fixture
def model(folder: Path, tmp_path: Path) -> Path:
    """Return a copy of the folder, to be damaged."""
    return Path(shutil.copytree(folder, tmp_path / "model"))


def stored(model: Any, path: Path) -> Path:
    model.save_pretrained(path)
    tokenizer().save_pretrained(path)
    return path


def change_tensors(model: Path, change: Callable[[Tensors], Tensors]) -> None:
    changed = change(load_file(model / "model.safetensors"))
    save_file(changed, model / "model.safetensors", metadata={"format": "pt"})


def change_config(model: Path, **changes: Any) -> None:
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, **changes}))


def maps(model: Path) -> Any:
    return open_model(model).maps(TEXTS[0])[1]


def refused(model: Path, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        open_model(model)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("prefix", ["module.", "model.", "_orig_mod.", "transformer.", "encoder.", "module.bert."])
def test_weights_under_a_foreign_prefix_are_missing(prefix: str, model: Path) -> None:
    change_tensors(model, lambda tensors: {prefix + key: value for key, value in tensors.items()})
    refused(
        model, f"weights are missing in the file: embeddings.LayerNorm.bias, .* the file calls the first {prefix}emb"
    )


@pytest.mark.parametrize("absent", [KEY, "embeddings.position_embeddings.weight", "encoder.layer.0.output.dense.bias"])
def test_one_missing_weight_is_named(absent: str, model: Path) -> None:
    change_tensors(model, lambda tensors: {key: value for key, value in tensors.items() if key != absent})
    refused(model, f"weights are missing in the file: {absent}; config.json and the weights must belong together")


@pytest.mark.parametrize("family", ["gpt2", "t5"])
def test_missing_embeddings_are_named_in_decoders_and_encoder_decoders(family: str, tmp_path: Path) -> None:
    """This includes embeddings tied to an output layer or a decoder."""
    path = stored(tiny_language_model(family) if family == "gpt2" else tiny(family), tmp_path / "model")
    names = ("transformer.wte.weight", "shared.weight")
    change_tensors(path, lambda tensors: {key: value for key, value in tensors.items() if key not in names})
    refused(path, r"weights are missing in the file: (transformer\.wte|encoder\.embed_tokens)\.weight;")


@pytest.mark.parametrize("absent", ["experts.1.w1.", "experts.1."])
def test_a_missing_expert_is_named_as_in_the_file(absent: str, tmp_path: Path) -> None:
    config = transformers.MixtralConfig(**GROUPED, num_local_experts=3)
    path = stored(transformers.MixtralForCausalLM(config), tmp_path / "model")
    change_tensors(path, lambda tensors: {key: value for key, value in tensors.items() if absent not in key})
    refused(path, r"missing in the file: model\.layers\.0\.block_sparse_moe\.experts\.1\.w1\.weight, model\.layers\.")


def test_layers_of_the_configuration_alone_or_of_the_file_alone_are_refused(model: Path) -> None:
    change_config(model, num_hidden_layers=4)
    refused(model, r"weights are missing in the file: encoder\.layer\.2\..* and 29 more")
    change_config(model, num_hidden_layers=1)
    refused(model, r"BertModel does not read these weights of the file: encoder\.layer\.1\..* and 13 more")


@pytest.mark.parametrize(
    "extra",
    [DISTANCES, "encoder.layer.0.attention.self.query.lora_A.weight", "encoder.relative_bias.weight", "wpe.weight"],
)
def test_weights_that_nothing_reads_are_refused(extra: str, model: Path) -> None:
    change_tensors(model, lambda tensors: {**tensors, extra: torch.randn(8, 32)})
    refused(model, f"BertModel does not read these weights of the file: {extra};")


def test_prompts_of_an_encoder_that_nothing_reads_are_refused(tmp_path: Path) -> None:
    """As in MVP with use_prompt, whose encoder transformers 5.23 builds without its prompts."""
    path = stored(tiny("t5"), tmp_path / "model")
    change_tensors(path, lambda tensors: {**tensors, "decoder.self_attn_prompt.weight": torch.randn(8, 32)})
    open_model(path)
    change_tensors(path, lambda tensors: {**tensors, "encoder.self_attn_prompt.weight": torch.randn(8, 32)})
    refused(path, "T5Model does not read these weights of the file: encoder.self_attn_prompt.weight;")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("position_embedding_type", "relative_key"),
        ("alibi", True),
        ("rope_scaling", {"type": "x"}),
        ("qk_norm", True),
        ("attention_multiplier", 0.5),
    ],
)
def test_a_key_that_changes_attention_and_is_ignored_is_refused(key: str, value: object, model: Path) -> None:
    change_config(model, **{key: value})
    refused(model, rf"config\.json: {key} .* ignores this key in models of the family bert")


def test_a_rotary_base_that_some_layers_do_not_use_is_refused(tmp_path: Path) -> None:
    """As in Olmo 3, whose config.json of transformers 4 has one base for all layers; 5.23 uses it in some."""
    skip_if_unknown("olmo3")
    config = transformers.Olmo3Config(**GROUPED, layer_types=["sliding_attention", "full_attention"])
    path = stored(transformers.Olmo3Model(config), tmp_path / "model")
    change_config(path, rope_parameters=None, rope_theta=500_000.0)
    open_model(path)
    change_config(path, rope_theta=10_000.0)
    read = transformers.AutoConfig.from_pretrained(path).rope_parameters
    if read["sliding_attention"]["rope_theta"] == read["full_attention"]["rope_theta"]:
        pytest.skip("this version of transformers uses one base")
    refused(path, r"config.json: rope_theta \(10000.0\): transformers .* uses 500000.0 in some layers")


def test_a_class_of_the_models_own_code_is_refused_and_not_read_as_one_of_its_family(model: Path, folder: Path) -> None:
    own = {"AutoModel": "modeling_bidirectional.BidirectionalModel"}
    change_config(model, architectures=["BidirectionalModel"], auto_map=own)
    refused(model, r"architectures \(BidirectionalModel\) is code of the model's own \(auto_map\), which is never run")
    change_config(model, architectures=None, auto_map=own)
    refused(model, r"auto_map \(BidirectionalModel\) is code of the model's own")
    change_config(model, model_type="own", auto_map=own)
    refused(model, r"auto_map \(BidirectionalModel\) is code of the model's own \(auto_map\), which is never run$")
    change_config(model, model_type="bert")
    change_config(model, architectures=["BidirectionalModel"], auto_map={"AutoTokenizer": ["tokenization.Own", None]})
    np.testing.assert_array_equal(maps(model), maps(folder))
    change_config(model, architectures=["BertModel"], auto_map=own)
    refused(model, r"auto_map \(BidirectionalModel\) is code of the model's own")
    change_config(model, architectures=["BERTModel"], auto_map={"AutoModel": "modeling_bert.BERTModel"})
    np.testing.assert_array_equal(maps(model), maps(folder))


def test_a_limit_may_be_infinite(model: Path, folder: Path) -> None:
    """As time_step_limit in hybrids with Mamba layers, which transformers 4 writes as [0.0, Infinity]."""
    change_config(model, time_step_limit=[0.0, float("inf")])
    np.testing.assert_array_equal(maps(model), maps(folder))


def test_keys_that_say_what_the_library_does_are_no_obstacle(model: Path, folder: Path) -> None:
    change_config(model, position_embedding_type="absolute", alibi=False, rope_scaling=None, sliding_window=None)
    np.testing.assert_array_equal(maps(model), maps(folder))


@pytest.mark.parametrize(
    "extra",
    [
        {"embeddings.position_ids": torch.arange(64)[None]},
        {"classifier.weight": torch.ones(2, 32), "cls.predictions.bias": torch.ones(120)},
        {"pooler.gate.weight": torch.ones(2, 32)},
        {"encoder.layer.0.attention.bias": torch.ones(1, 1, 64, 64).tril()},
        {"encoder.layer.0.attention.rotary_emb.inv_freq": torch.ones(4)},
    ],
    ids=lambda tensors: next(iter(tensors)),
)
def test_output_layers_poolers_and_buffers_may_be_unread(extra: Tensors, model: Path, folder: Path) -> None:
    change_tensors(model, lambda tensors: {**tensors, **extra})
    np.testing.assert_array_equal(maps(model), maps(folder))


def test_a_missing_pooler_is_the_same_at_every_opening(model: Path, folder: Path) -> None:
    change_tensors(model, lambda tensors: {key: value for key, value in tensors.items() if "pooler" not in key})
    np.testing.assert_array_equal(maps(model), maps(folder))
    assert open_model(model).digest() == open_model(model).digest()


@pytest.mark.parametrize("task", ["SequenceClassification", "TokenClassification", "MaskedLM", "PreTraining"])
def test_models_of_tasks_are_read_through_their_base(task: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    whole = getattr(transformers, f"BertFor{task}")(transformers.BertConfig(**SIZE)).eval()
    np.testing.assert_array_equal(
        maps(stored(whole, tmp_path / "model")), open_model(whole, tokenizer()).maps(TEXTS[0])[1]
    )


def test_an_encoder_that_is_stored_without_its_decoder_is_read(tmp_path: Path) -> None:
    torch.manual_seed(0)
    whole = transformers.T5Model(transformers.T5Config(**SETTINGS["t5"])).eval()
    alone = transformers.T5EncoderModel(transformers.T5Config(**SETTINGS["t5"]))
    alone.load_state_dict(whole.state_dict(), strict=False)
    np.testing.assert_array_equal(maps(stored(alone, tmp_path / "alone")), maps(stored(whole, tmp_path / "whole")))


def test_so_is_one_with_another_task(tmp_path: Path) -> None:
    torch.manual_seed(0)
    whole = transformers.T5ForTokenClassification(transformers.T5Config(**SETTINGS["t5"])).eval()
    expected = open_model(whole, tokenizer()).maps(TEXTS[0])[1]
    np.testing.assert_array_equal(maps(stored(whole, tmp_path / "model")), expected)


def test_another_shape_is_named_with_both_sizes(model: Path) -> None:
    change_config(model, intermediate_size=128)
    refused(
        model, r"encoder\.layer\.0\.intermediate\.dense\.bias has the shape \(64,\) in the file, and \(128,\) by config"
    )


@pytest.mark.parametrize("family", ["roberta", "distilbert", "gpt2", ["bert"]])
def test_a_file_of_another_family_is_refused(family: str | list[str], model: Path) -> None:
    change_config(model, model_type=family)
    named = re.escape(str(family))
    refused(model, rf"architectures \(BertModel\) is of model_type bert, but model_type is {named}")


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_that_are_not_finite_are_refused(number: float, model: Path) -> None:
    change_tensors(model, lambda tensors: {**tensors, KEY: torch.full((32, 32), number)})
    refused(model, f"{KEY} holds numbers that are not finite")


@pytest.mark.parametrize("kind", [torch.int8, torch.uint8, torch.float8_e4m3fn])
def test_integers_in_place_of_weights_are_refused(kind: torch.dtype, model: Path) -> None:
    change_tensors(model, lambda tensors: {**tensors, KEY: tensors[KEY].to(kind)})
    refused(model, f"{KEY} holds numbers of type .* must be one of F64, F32, F16, BF16")


def test_numbers_of_eight_bits_are_refused_under_an_old_name_too(model: Path) -> None:
    """transformers reads gamma as the weight of a norm, and joins the matrices of experts."""
    key = "encoder.layer.1.output.LayerNorm.weight"
    old = key.replace("weight", "gamma")
    change_tensors(model, lambda tensors: {**tensors, old: tensors[key].to(torch.float8_e4m3fn)})
    change_tensors(model, lambda tensors: {name: value for name, value in tensors.items() if name != key})
    refused(model, f"{old} holds numbers of type F8_E4M3 in model.safetensors")


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
def test_other_precisions_are_read(kind: torch.dtype, model: Path, folder: Path) -> None:
    change_tensors(model, lambda tensors: {key: value.to(kind) for key, value in tensors.items()})
    change_config(model, dtype=str(kind).removeprefix("torch."))
    np.testing.assert_allclose(maps(model), maps(folder), atol=1e-3)


@pytest.mark.parametrize(
    "quantised", [{"quant_method": "gptq", "bits": 4}, {"quant_method": "own"}, {"load_in_8bit": True}]
)
def test_quantised_weights_are_refused(quantised: dict[str, object], model: Path) -> None:
    change_config(model, quantization_config=quantised)
    refused(model, r"quantization_config \(.*\): quantised weights cannot be read; name the unquantised model")


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    path = tmp_path / "shards"
    tiny("bert").save_pretrained(path, max_shard_size="20KB")
    tokenizer().save_pretrained(path)
    return path


def change_places(shards: Path, change: Callable[[dict[str, str]], dict[str, str]]) -> None:
    index = json.loads((shards / "model.safetensors.index.json").read_text())
    index["weight_map"] = change(index["weight_map"])
    (shards / "model.safetensors.index.json").write_text(json.dumps(index))


def test_weights_in_several_files_are_read(shards: Path, folder: Path) -> None:
    np.testing.assert_array_equal(maps(shards), maps(folder))


def test_a_file_that_the_index_does_not_name_is_missed(shards: Path) -> None:
    change_places(shards, lambda places: {key: file for key, file in places.items() if file != places[KEY]})
    refused(shards, "weights are missing in the file")


def test_a_missing_file_is_named(shards: Path) -> None:
    (shards / "model-00002-of-00006.safetensors").unlink()
    refused(shards, r"model-00002-of-00006\.safetensors")


def test_an_index_must_be_true(shards: Path) -> None:
    change_places(shards, lambda places: {**places, "encoder.layer.9.x": places[KEY]})
    refused(shards, r"encoder\.layer\.9\.x should be in model-.*, which has no such tensor")
    change_places(shards, lambda places: {key: file for key, file in places.items() if key != "encoder.layer.9.x"})
    first = shards / "model-00001-of-00006.safetensors"
    save_file({**load_file(first), KEY: torch.ones(32, 32)}, first, metadata={"format": "pt"})
    refused(shards, f"{KEY} is in model-00001-of-00006.safetensors and in model-")


def test_one_file_beside_the_index_of_others_is_refused(shards: Path, folder: Path) -> None:
    shutil.copy(folder / "model.safetensors", shards)
    refused(shards, r"there are both model\.safetensors and model\.safetensors\.index\.json")


def test_a_table_that_is_not_finite_gives_no_map(model: Path) -> None:
    name = "embeddings.word_embeddings.weight"
    change_tensors(model, lambda tensors: {**tensors, name: tensors[name].fill_(float("nan"))})
    with pytest.raises(UserError):
        maps(model)


def in_class(name: str | None, folder: Path) -> Path:
    """Return the folder after its tokenizer_config.json has been made to name a class of tokenizers."""
    named = {} if name is None else {"tokenizer_class": name}
    (folder / "tokenizer_config.json").write_text(json.dumps(named), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("name", "read"),
    [(None, "BertTokenizer"), ("BertTokenizerFast", "BertTokenizer"), ("GPT2Tokenizer", "GPT2Tokenizer")],
)
def test_a_tokenizer_that_transformers_reads_otherwise_than_its_file_is_an_error(
    name: str | None, read: str, model: Path
) -> None:
    """Many classes take only the vocabulary from tokenizer.json, and lower-case or split a text as they always do."""
    if type(transformers.AutoTokenizer.from_pretrained(in_class(name, model))).__name__ == "TokenizersBackend":
        pytest.skip("this version of transformers takes everything from tokenizer.json")
    with pytest.raises(UserError, match=rf"tokenizer.json splits .* which reads it as {read}, into .*_class") as error:
        open_model(model)
    assert "\n" not in str(error.value)
    open_model(in_class("PreTrainedTokenizerFast", model))


def test_an_added_word_whose_spaces_transformers_reads_otherwise_is_an_error(tmp_path: Path) -> None:
    letters = {letter: number for number, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    path = tmp_path / "model"
    tiny_language_model("qwen2", vocab_size=300).save_pretrained(path)
    own = transformers.Qwen2Tokenizer(vocab=letters, merges=[])
    own.add_tokens([AddedToken("<her>", lstrip=True, rstrip=True)])
    own.save_pretrained(path)
    open_model(path)
    config = json.loads((path / "tokenizer_config.json").read_text())
    (path / "tokenizer_config.json").write_text(json.dumps({**config, "extra_special_tokens": ["<her>"]}))
    if transformers.AutoTokenizer.from_pretrained(path).tokenize("a <her>") == own.tokenize("a <her>"):
        pytest.skip("this version of transformers keeps the spaces")
    refused(
        path, r"into \.\.\. e t  <her>  t .* into \.\.\. e t Ġ <her> Ġ .* in Python, give tokenizer=PreTrainedToken"
    )
    assert open_model(path, transformers.PreTrainedTokenizerFast.from_pretrained(path)).layers == 2


def test_a_digest_covers_configuration_and_tokenizer(model: Path, folder: Path) -> None:
    digests = {open_model(folder).digest()}
    change_config(model, hidden_act="relu")
    digests.add(open_model(model).digest())
    path = model / "tokenizer.json"
    written = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**written, "normalizer": {"type": "Lowercase"}}), encoding="utf-8")
    opened = open_model(model)
    digests.add(opened.digest())
    assert len(digests) == 3
    opened.tokenize("Anna left.")
    assert opened.digest() in digests
