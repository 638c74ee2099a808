"""Small folders of made-up pretrained weights in the formats of published ones, and what such a model computes."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer as Backend
from tokenizers import models, normalizers, pre_tokenizers, processors
from torch import Tensor
from torch.nn import functional

KINDS = ("bert", "roberta", "distilbert")
WIDTH, LAYERS, HEADS, HIDDEN, PLACES = 16, 2, 2, 24, 60
_WORDS = ("anna", "met", "tom", "mary", "peter", "before", "she", "he", "went", "to", "the", "shop", "park", "##s")
_LETTERS = "abcdefghijklmnopqrstuvwxyz.,'王芳李强她他去了"


def word_pieces() -> Backend:
    """BERT's way of cutting text, with few pieces."""
    pieces = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *_WORDS, *_LETTERS]
    pieces += [f"##{letter}" for letter in _LETTERS if f"##{letter}" not in pieces]
    backend = Backend(models.WordPiece({piece: place for place, piece in enumerate(pieces)}, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    ends = [(name, backend.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    backend.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", special_tokens=ends)
    backend.enable_truncation(8)  # published files cut and fill; neither may happen here
    backend.enable_padding(length=8)
    return backend


def byte_pairs() -> Backend:
    """RoBERTa's way of cutting text, with few merges."""
    pieces = ["<s>", "<pad>", "</s>", "<unk>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    merges = [("Ġ", "t"), ("Ġt", "o"), ("s", "h"), ("sh", "e"), ("Ġ", "she"), ("n", "n")]
    pieces += [first + second for first, second in merges] + ["<mask>"]
    backend = Backend(models.BPE({piece: place for place, piece in enumerate(pieces)}, merges))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    backend.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return backend


def config_of(kind: str, vocabulary: int) -> dict[str, Any]:
    """What config.json says."""
    if kind == "distilbert":
        shape = {"dim": WIDTH, "n_layers": LAYERS, "n_heads": HEADS, "hidden_dim": HIDDEN, "activation": "gelu"}
        return {"model_type": kind, "vocab_size": vocabulary, "max_position_embeddings": PLACES, **shape}
    shape = {
        "hidden_size": WIDTH,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "intermediate_size": HIDDEN,
        "layer_norm_eps": 1e-12 if kind == "bert" else 1e-5,
        "type_vocab_size": 2 if kind == "bert" else 1,
        "pad_token_id": 0 if kind == "bert" else 1,
    }
    return {
        "model_type": kind,
        "vocab_size": vocabulary,
        "max_position_embeddings": PLACES,
        "hidden_act": "gelu",
        **shape,
    }


def tensors_of(kind: str, vocabulary: int) -> dict[str, Tensor]:
    """Random tensors under the published names."""
    draw = torch.Generator().manual_seed(3)

    def linear(name: str, rows: int, columns: int) -> dict[str, Tensor]:
        weight = torch.randn(rows, columns, generator=draw) / math.sqrt(columns)
        return {f"{name}.weight": weight, f"{name}.bias": torch.randn(rows, generator=draw) / 4}

    def norm(name: str) -> dict[str, Tensor]:
        weight = 1 + torch.randn(WIDTH, generator=draw) / 4
        return {f"{name}.weight": weight, f"{name}.bias": torch.randn(WIDTH, generator=draw) / 4}

    found = {
        "embeddings.word_embeddings.weight": torch.randn(vocabulary, WIDTH, generator=draw),
        "embeddings.position_embeddings.weight": torch.randn(PLACES, WIDTH, generator=draw),
        **norm("embeddings.LayerNorm"),
    }
    if kind != "distilbert":
        types = torch.randn(2 if kind == "bert" else 1, WIDTH, generator=draw)
        found["embeddings.token_type_embeddings.weight"] = types
    for layer in range(LAYERS):
        block = NAMES[kind]["block"].format(layer)
        for name in ("query", "key", "value", "output"):
            found |= linear(block + NAMES[kind][name], WIDTH, WIDTH)
        found |= linear(block + NAMES[kind]["widen"], HIDDEN, WIDTH) | linear(
            block + NAMES[kind]["narrow"], WIDTH, HIDDEN
        )
        found |= norm(block + NAMES[kind]["first_norm"]) | norm(block + NAMES[kind]["second_norm"])
    return found


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
    """A folder as the hub has them: config.json, model.safetensors and tokenizer.json."""
    folder.mkdir(parents=True)
    backend = byte_pairs() if kind == "roberta" else word_pieces()
    vocabulary = backend.get_vocab_size() + 2  # tables are often padded
    (folder / "config.json").write_text(json.dumps(config_of(kind, vocabulary)), encoding="utf-8")
    tensors = {prefix + name: value for name, value in tensors_of(kind, vocabulary).items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    backend.save(str(folder / "tokenizer.json"))
    return folder


def computed(kind: str, ids: list[int]) -> tuple[Tensor, list[Tensor]]:
    """What the published model makes of one text, written down from Devlin et al. 2019: states and attention maps.

    Returns:
        (T, W), and for each layer (H, T, T).
    """
    vocabulary = (byte_pairs() if kind == "roberta" else word_pieces()).get_vocab_size() + 2
    tensors, names = tensors_of(kind, vocabulary), NAMES[kind]
    epsilon = 1e-5 if kind == "roberta" else 1e-12

    def linear(name: str, values: Tensor) -> Tensor:
        return functional.linear(values, tensors[f"{name}.weight"], tensors[f"{name}.bias"])

    def norm(name: str, values: Tensor) -> Tensor:
        return functional.layer_norm(values, (WIDTH,), tensors[f"{name}.weight"], tensors[f"{name}.bias"], epsilon)

    first = 2 if kind == "roberta" else 0
    hidden = tensors["embeddings.word_embeddings.weight"][ids]
    hidden = hidden + tensors["embeddings.position_embeddings.weight"][first : first + len(ids)]
    if "embeddings.token_type_embeddings.weight" in tensors:
        hidden = hidden + tensors["embeddings.token_type_embeddings.weight"][0]
    hidden = norm("embeddings.LayerNorm", hidden)
    maps = []
    for layer in range(LAYERS):
        block = names["block"].format(layer)
        query, key, value = (
            linear(block + names[name], hidden).view(len(ids), HEADS, -1).transpose(0, 1)
            for name in ("query", "key", "value")
        )
        maps.append((query @ key.mT / math.sqrt(WIDTH // HEADS)).softmax(dim=-1))
        mixed = (maps[-1] @ value).transpose(0, 1).flatten(1)
        hidden = norm(block + names["first_norm"], hidden + linear(block + names["output"], mixed))
        inner = linear(block + names["narrow"], functional.gelu(linear(block + names["widen"], hidden)))
        hidden = norm(block + names["second_norm"], hidden + inner)
    return hidden, maps
