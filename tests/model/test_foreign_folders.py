"""Tests of pretrained folders that differ from those of the models' authors, opened as a run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
import torch
from published import byte_pairs, word_pieces, write_folder
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, processors

import anaphora
from anaphora.base.errors import UserError
from anaphora.data.tokens.vocabulary import read_tokenizer
from anaphora.model.pretrained.families import FAMILIES
from anaphora.runs.directory import load
from anaphora.runs.items import weights_digest

TEXT = "Anna met Mary before she went to the shop."


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_an_output_has_the_bias_that_transformers_adds(kind: str, tied: bool, tmp_path: Path) -> None:
    """An untied output has a bias of its own; a tied one may be stored under either name."""
    library = pytest.importorskip("transformers")
    config = library.AutoConfig.from_pretrained(write_folder(tmp_path / kind, kind), tie_word_embeddings=tied)
    torch.manual_seed(0)
    model = library.AutoModelForMaskedLM.from_config(config).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith("bias"):
                weight.normal_()
    folder = tmp_path / "model"
    model.save_pretrained(folder)
    shutil.copy(tmp_path / kind / "tokenizer.json", folder)
    if tied:
        family = FAMILIES[kind]
        tensors = load_file(folder / "model.safetensors")
        tensors[family.output["decoder"].replace("weight", "bias")] = tensors.pop(family.output["bias"])
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    run = load(folder)
    rows = read_tokenizer(folder).rows
    own = model.get_output_embeddings()
    known = [place for place, row in enumerate(rows) if row is not None]
    torch.testing.assert_close(run.model.output.linear.bias[known], own.bias[[rows[place] for place in known]])


@pytest.mark.parametrize(
    ("padding", "reason"),
    [
        (0, r"\(0\) is not the padding token"),
        (6, r"\(6\) is not the padding token"),
        (None, r"\(None\) must be a whole number"),
    ],
)
def test_a_token_of_texts_without_a_position_is_refused(padding: int | None, reason: str, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "roberta", "roberta")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "pad_token_id": padding}))
    with pytest.raises(UserError, match=f"config.json: pad_token_id {reason}"):
        load(folder)


@pytest.mark.parametrize(
    ("template", "tokens"), [("[CLS] $A", ["[CLS]", "anna"]), ("[CLS] $A [SEP]", ["[CLS]", "anna", "[SEP]"])]
)
def test_a_text_has_the_special_tokens_that_its_file_states(template: str, tokens: list[str], tmp_path: Path) -> None:
    backend = word_pieces()
    ends = [(name, backend.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    backend.post_processor = processors.TemplateProcessing(template, special_tokens=ends)
    backend.save(str(tmp_path / "tokenizer.json"))
    own = read_tokenizer(tmp_path).tokenizer
    assert [own.token(number) for number in own.encode("Anna").ids] == tokens


def test_other_special_tokens_are_refused_and_none_are_those_of_the_family(tmp_path: Path) -> None:
    backend = byte_pairs()
    backend.post_processor = processors.TemplateProcessing("$A </s>", special_tokens=[("</s>", 2)])
    backend.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(UserError, match=r"tokenizer.json: it puts </s> around a text; this encoder reads <s> before"):
        read_tokenizer(tmp_path)
    backend.post_processor = processors.ByteLevel()
    backend.save(str(tmp_path / "tokenizer.json"))
    own = read_tokenizer(tmp_path).tokenizer
    assert [own.token(number) for number in own.encode("t").ids] == ["[CLS]", "t", "[SEP]"]


@pytest.mark.parametrize(
    "model",
    [
        models.Unigram([("[PAD]", 0.0), ("[CLS]", 0.0), ("[SEP]", 0.0), ("[MASK]", 0.0), ("b", -1.0)], unk_id=None),
        models.WordPiece({"[PAD]": 0, "[CLS]": 1, "[SEP]": 2, "[MASK]": 3, "b": 4}, unk_token="<unknown>"),
        models.WordLevel({"[PAD]": 0, "[CLS]": 1, "[SEP]": 2, "[MASK]": 3, "b": 4}, unk_token="<unknown>"),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("template", ["[CLS] $A", "[CLS] $A [SEP]"])
def test_a_tokenizer_without_an_unknown_token_is_read(template: str, model: models.Model, tmp_path: Path) -> None:
    backend = Tokenizer(model)
    backend.post_processor = processors.TemplateProcessing(template, special_tokens=[("[CLS]", 1), ("[SEP]", 2)])
    backend.save(str(tmp_path / "tokenizer.json"))
    own = read_tokenizer(tmp_path).tokenizer
    assert [own.token(number) for number in own.encode("b").ids] == template.replace("$A", "b").split()
    if isinstance(model, models.Unigram):  # ours names the unknown token by its id
        assert own.encode("c").unread == ((0, 1),)
        return
    with pytest.raises(UserError, match=r"characters that the tokenizer does not know \(.*; its vocabulary needs"):
        own.encode("c")


def test_an_encoder_without_an_output_layer_gives_no_answers(tmp_path: Path) -> None:
    run = anaphora.load(write_folder(tmp_path / "minilm", "minilm"))
    reason = "minilm: it has no output layer over the vocabulary that could be read"
    with pytest.raises(UserError, match=reason):
        run.answers([(TEXT, "she", ["Anna", "Mary"])])
    assert run.attention(TEXT).weights.shape[0] == run.layers


def test_nor_a_perplexity(tmp_path: Path, script: Any) -> None:
    folder = write_folder(tmp_path / "minilm", "minilm")
    texts = tmp_path / "texts.jsonl"
    texts.write_text("".join(json.dumps({"text": f"Anna met Mary {number}."}) + "\n" for number in range(40)))
    ran = script("evaluate", f"run={folder}", "data=plain_text", f"data.path={texts}")
    assert ran.status == 2
    assert "minilm: it has no output layer over the vocabulary that could be read, so it has no perplexity" in ran.err


def test_weights_in_several_files_are_to_be_joined(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "bert", "bert")
    (folder / "model.safetensors").rename(folder / "model-00001-of-00001.safetensors")
    (folder / "model.safetensors.index.json").write_text("{}")
    with pytest.raises(UserError, match=r"model.safetensors is missing; the weights are in several files: store them"):
        load(folder)


def test_a_message_names_the_folder_whose_head_is_not_chosen(tmp_path: Path, script: Any) -> None:
    folder = write_folder(tmp_path / "bert", "bert")
    ran = script("explain", f"run={folder}", "text=Anna met Tom.", "pronoun=Tom")
    assert ran.status == 2 and f"choose it with anaphora score run={folder}" in ran.err


def test_a_model_is_the_same_and_named_as_given_from_a_folder_and_from_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_folder(tmp_path / "bert", "bert")
    local = load(folder)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *_, **__: str(folder))
    published = load("hf://owner/name")
    assert weights_digest(published) == weights_digest(local)
    assert (published.argument, local.argument) == ("hf://owner/name", str(folder))
    assert load("shipped").argument == "shipped"


def test_a_message_names_the_folder_inside_that_holds_the_model(tmp_path: Path, script: Any) -> None:
    """As in older folders of sentence-transformers, whose other layers have weights without the settings of a model."""
    folder = tmp_path / "model"
    inner = write_folder(folder / "1_Transformer", "minilm")
    (folder / "0_Dense").mkdir()
    shutil.copy(inner / "model.safetensors", folder / "0_Dense")
    ran = script("attention", f"run={folder}", "text=Anna met Tom.")
    assert ran.status == 2 and ran.err.endswith(f"; a run or model is in {inner}\n")


@pytest.mark.parametrize(("count", "more"), [(3, ""), (4, ", ...")])
def test_such_a_message_lists_at_most_three_folders(count: int, more: str, tmp_path: Path, script: Any) -> None:
    for number in range(count):
        (tmp_path / f"run_{number}").mkdir()
        (tmp_path / f"run_{number}" / "config.yaml").touch()
    listed = ", ".join(str(tmp_path / f"run_{number}") for number in range(3))
    ran = script("attention", f"run={tmp_path}", "text=Anna met Tom.")
    assert ran.status == 2 and ran.err.endswith(f"; a run or model is in {listed}{more}\n")


def change_config(folder: Path, **changes: object) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **changes}))


@pytest.mark.parametrize("kind", ["bert", "distilbert"])
def test_layers_that_the_configuration_leaves_out_are_refused(kind: str, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / kind, kind)
    change_config(folder, **{FAMILIES[kind].fields["layers"]: 1})
    with pytest.raises(
        UserError, match=r"layer\.1\..* and 15 more: the encoder that config.json describes \(1 layer\)"
    ):
        load(folder)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("bert.encoder.layer.0.attention.self.query.lora_A.weight", "does not read these weights"),
        ("bert.embeddings.word_embeddings.weight", "is stored under two names with different numbers"),
        ("embeddings.LayerNorm.gamma", "is stored under two names with different numbers"),
    ],
)
def test_weights_that_would_be_left_out_are_refused(name: str, reason: str, tmp_path: Path) -> None:
    path = write_folder(tmp_path / "bert", "bert") / "model.safetensors"
    save_file({**load_file(path), name: torch.ones(4)}, path, metadata={"format": "pt"})
    with pytest.raises(UserError, match=reason):
        load(path.parent)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"quantization_config": {"quant_method": "gptq"}},
            r"quantization_config \(gptq\): quantised weights cannot be",
        ),
        ({"alibi": True}, r"alibi \(True\): this encoder does not compute such attention"),
        ({"rope_scaling": {"type": "linear"}}, "rope_scaling .*: this encoder does not compute such attention"),
        (
            {"auto_map": {"AutoModel": "modeling.JinaBertModel"}},
            r"auto_map \(JinaBertModel\) is code of the model's own",
        ),
    ],
)
def test_attention_of_another_kind_is_refused(changes: dict[str, object], reason: str, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "bert", "bert")
    change_config(folder, architectures=["BertForMaskedLM"], sliding_window=None, is_causal=False)
    load(folder)
    change_config(folder, **changes)
    with pytest.raises(UserError, match=f"config.json: {reason}"):
        load(folder)


def test_an_adapter_beside_the_weights_is_to_be_merged_first(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "bert", "bert")
    adapter = {"base_model_name_or_path": "bert", "peft_type": "LORA", "task_type": "TOKEN_CLS"}
    (folder / "adapter_config.json").write_text(json.dumps(adapter))
    with pytest.raises(UserError, match=r"merge it first: peft\.AutoPeftModelForTokenClassification\.from_pretrained"):
        load(folder)
