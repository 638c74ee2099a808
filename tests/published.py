"""Small folders of random pretrained weights in published formats, and a reference implementation of the models."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer as Backend
from tokenizers import models, normalizers, pre_tokenizers, processors
from torch import Tensor
from torch.nn import functional

KINDS = ("bert", "roberta", "distilbert", "minilm")
POSITIONS = 60


class Shape(NamedTuple):
    """Size of a model."""

    width: int
    layers: int
    heads: int
    hidden: int


_SMALL, _MANY_HEADS = Shape(width=16, layers=2, heads=2, hidden=24), Shape(width=24, layers=3, heads=6, hidden=96)


def shape_of(kind: str) -> Shape:
    """Return the size of a model; MiniLM has as many heads as BERT, but half of its width."""
    return _MANY_HEADS if kind == "minilm" else _SMALL


_WORDS = ("anna", "met", "tom", "mary", "peter", "before", "she", "he", "went", "to", "the", "shop", "park", "##s")
_LETTERS = "abcdefghijklmnopqrstuvwxyz.,'王芳李强她他去了"


def word_pieces() -> Backend:
    """Return BERT's tokenizer with a small vocabulary."""
    subwords = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *_WORDS, *_LETTERS]
    subwords += [f"##{letter}" for letter in _LETTERS if f"##{letter}" not in subwords]
    backend = Backend(models.WordPiece({subword: number for number, subword in enumerate(subwords)}, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    ends = [(name, backend.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    backend.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", special_tokens=ends)
    backend.enable_truncation(8)  # published files cut and fill; neither may happen here
    backend.enable_padding(length=8)
    return backend


def byte_pairs() -> Backend:
    """Return RoBERTa's tokenizer with few merges."""
    subwords = ["<s>", "<pad>", "</s>", "<unk>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    merges = [("Ġ", "t"), ("Ġt", "o"), ("s", "h"), ("sh", "e"), ("Ġ", "she"), ("n", "n")]
    subwords += [first + second for first, second in merges] + ["<mask>"]
    backend = Backend(models.BPE({subword: number for number, subword in enumerate(subwords)}, merges))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    backend.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return backend


def config_of(kind: str, vocabulary: int) -> dict[str, Any]:
    """Return the contents of config.json."""
    width, layers, heads, hidden = shape_of(kind)
    if kind == "distilbert":
        shape = {"dim": width, "n_layers": layers, "n_heads": heads, "hidden_dim": hidden, "activation": "gelu"}
        return {"model_type": kind, "vocab_size": vocabulary, "max_position_embeddings": POSITIONS, **shape}
    shape = {
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": hidden,
        "layer_norm_eps": 1e-5 if kind == "roberta" else 1e-12,
        "type_vocab_size": 1 if kind == "roberta" else 2,
        "pad_token_id": 1 if kind == "roberta" else 0,
    }
    return {
        "model_type": "bert" if kind == "minilm" else kind,
        "vocab_size": vocabulary,
        "max_position_embeddings": POSITIONS,
        "hidden_act": "gelu",
        **shape,
    }


def tensors_of(kind: str, vocabulary: int) -> dict[str, Tensor]:
    """Return random tensors with the published names."""
    draw = torch.Generator().manual_seed(3)
    width, layers, _, hidden = shape_of(kind)

    def linear(name: str, rows: int, columns: int) -> dict[str, Tensor]:
        weight = torch.randn(rows, columns, generator=draw) / math.sqrt(columns)
        return {f"{name}.weight": weight, f"{name}.bias": torch.randn(rows, generator=draw) / 4}

    def norm(name: str) -> dict[str, Tensor]:
        weight = 1 + torch.randn(width, generator=draw) / 4
        return {f"{name}.weight": weight, f"{name}.bias": torch.randn(width, generator=draw) / 4}

    tensors = {
        "embeddings.word_embeddings.weight": torch.randn(vocabulary, width, generator=draw),
        "embeddings.position_embeddings.weight": torch.randn(POSITIONS, width, generator=draw),
        **norm("embeddings.LayerNorm"),
    }
    if kind != "distilbert":
        types = torch.randn(1 if kind == "roberta" else 2, width, generator=draw)
        tensors["embeddings.token_type_embeddings.weight"] = types
    if kind == "minilm":  # sentence-transformers stores the numbers of the places and the layer over [CLS] too
        tensors["embeddings.position_ids"] = torch.arange(POSITIONS)[None]
        tensors |= linear("pooler.dense", width, width)
    for layer in range(layers):
        block = NAMES[kind]["block"].format(layer)
        for name in ("query", "key", "value", "output"):
            tensors |= linear(block + NAMES[kind][name], width, width)
        tensors |= linear(block + NAMES[kind]["widen"], hidden, width) | linear(
            block + NAMES[kind]["narrow"], width, hidden
        )
        tensors |= norm(block + NAMES[kind]["first_norm"]) | norm(block + NAMES[kind]["second_norm"])
    return tensors


_BERT = {
    "block": "encoder.layer.{}.",
    **{name: f"attention.self.{name}" for name in ("query", "key", "value")},
    "output": "attention.output.dense",
    "first_norm": "attention.output.LayerNorm",
    "widen": "intermediate.dense",
    "narrow": "output.dense",
    "second_norm": "output.LayerNorm",
}
NAMES = {
    "bert": _BERT,
    "roberta": _BERT,
    "minilm": _BERT,
    "distilbert": {
        "block": "transformer.layer.{}.",
        **{name: f"attention.{name[0]}_lin" for name in ("query", "key", "value")},
        "output": "attention.out_lin",
        "first_norm": "sa_layer_norm",
        "widen": "ffn.lin1",
        "narrow": "ffn.lin2",
        "second_norm": "output_layer_norm",
    },
}


def write_folder(folder: Path, kind: str, prefix: str = "") -> Path:
    """Write a folder as on the Hub: config.json, model.safetensors and tokenizer.json."""
    folder.mkdir(parents=True)
    backend = byte_pairs() if kind == "roberta" else word_pieces()
    vocabulary = backend.get_vocab_size() + 2  # tables are often padded
    (folder / "config.json").write_text(json.dumps(config_of(kind, vocabulary)), encoding="utf-8")
    tensors = {prefix + name: value for name, value in tensors_of(kind, vocabulary).items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    backend.save(str(folder / "tokenizer.json"))
    return folder


def computed(kind: str, ids: list[int]) -> tuple[Tensor, list[Tensor]]:
    """Compute the states and attention maps of a published model for one text, after Devlin et al. 2019.

    Returns:
        (T, W), and (H, T, T) for each layer.
    """
    vocabulary = (byte_pairs() if kind == "roberta" else word_pieces()).get_vocab_size() + 2
    tensors, names = tensors_of(kind, vocabulary), NAMES[kind]
    width, layers, heads, _ = shape_of(kind)
    epsilon = 1e-5 if kind == "roberta" else 1e-12

    def linear(name: str, values: Tensor) -> Tensor:
        return functional.linear(values, tensors[f"{name}.weight"], tensors[f"{name}.bias"])

    def norm(name: str, values: Tensor) -> Tensor:
        return functional.layer_norm(values, (width,), tensors[f"{name}.weight"], tensors[f"{name}.bias"], epsilon)

    first = 2 if kind == "roberta" else 0
    hidden = tensors["embeddings.word_embeddings.weight"][ids]
    hidden = hidden + tensors["embeddings.position_embeddings.weight"][first : first + len(ids)]
    if "embeddings.token_type_embeddings.weight" in tensors:
        hidden = hidden + tensors["embeddings.token_type_embeddings.weight"][0]
    hidden = norm("embeddings.LayerNorm", hidden)
    maps = []
    for layer in range(layers):
        block = names["block"].format(layer)
        query, key, value = (
            linear(block + names[name], hidden).view(len(ids), heads, -1).transpose(0, 1)
            for name in ("query", "key", "value")
        )
        maps.append((query @ key.mT / math.sqrt(width // heads)).softmax(dim=-1))
        mixed = (maps[-1] @ value).transpose(0, 1).flatten(1)
        hidden = norm(block + names["first_norm"], hidden + linear(block + names["output"], mixed))
        inner = linear(block + names["narrow"], functional.gelu(linear(block + names["widen"], hidden)))
        hidden = norm(block + names["second_norm"], hidden + inner)
    return hidden, maps
