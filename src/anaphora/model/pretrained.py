"""Published weights as the weights of our encoder, and back: renamed, and folded where ours has no module for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from anaphora.errors import UserError
from anaphora.model import settings
from anaphora.model.encoder import Encoder
from anaphora.model.families import ACTIVATIONS, CONFIG, FAMILIES, WEIGHTS, Family, read_config

_OLD_NAMES = {".LayerNorm.gamma": ".LayerNorm.weight", ".LayerNorm.beta": ".LayerNorm.bias"}


def fill(encoder: Encoder, folder: Path, rows: Sequence[int | None]) -> None:
    """Give an encoder of the settings that `model_settings` finds in a folder of pretrained weights those weights.

    The vector of token type 0, which every token of a single text has, is folded into the token embedding; the rows of
    the position table that stand before a text's first place are dropped.

    Args:
        encoder: takes the weights.
        folder: with config.json and model.safetensors.
        rows: for each of our tokens the row of the published table; None gets the mean of all rows.

    Raises:
        UserError: a file is missing or broken, or the tensors do not fit config.json; named by file and tensor.
    """
    config = read_config(folder)
    family = FAMILIES[config["model_type"]]
    path = folder / WEIGHTS
    state = _state(_tensors(path, family), family, encoder.settings.layers, rows, family.first_place(config), path)
    for name, wanted in encoder.state_dict().items():
        if state[name].shape != wanted.shape:
            raise UserError(
                f"{path}: the tensor for {name} has shape {tuple(state[name].shape)}; "
                f"{folder / CONFIG} says {tuple(wanted.shape)}"
            )
    encoder.load_state_dict(state)


def _tensors(path: Path, family: Family) -> dict[str, Tensor]:
    """The file's tensors in single precision, by name without prefix; names of old files made new."""
    try:
        loaded = load_file(path)
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path}: missing, broken or cut off ({error})") from None
    tensors = {}
    for name, value in loaded.items():
        plain = name.removeprefix(family.prefix)
        for old, new in _OLD_NAMES.items():
            plain = plain.replace(old, new)
        tensors[plain] = value.float()
    return tensors


def _state(
    tensors: Mapping[str, Tensor], family: Family, layers: int, rows: Sequence[int | None], first: int, path: Path
) -> dict[str, Tensor]:
    def at(name: str) -> Tensor:
        if name not in tensors:
            raise UserError(f"{path}: the tensor {name} is missing")
        return tensors[name]

    table = at("embeddings.word_embeddings.weight")
    highest = max((row for row in rows if row is not None), default=0)
    if highest >= len(table):
        raise UserError(f"{path}: the token table has {len(table)} rows; the tokenizer numbers tokens up to {highest}")
    fresh = table.mean(dim=0)
    tokens = torch.stack([fresh if row is None else table[row] for row in rows])
    if "embeddings.token_type_embeddings.weight" in tensors:
        tokens = tokens + tensors["embeddings.token_type_embeddings.weight"][0]
    state = {
        "tokens.weight": tokens,
        "position.table.weight": at("embeddings.position_embeddings.weight")[first:],
    }
    for ours, theirs in _modules(family, layers):
        for part in ("weight", "bias"):
            state[f"{ours}.{part}"] = at(f"{theirs}.{part}")
    return state


def _modules(family: Family, layers: int) -> Iterator[tuple[str, str]]:
    """Our name and theirs of every module with a weight and a bias."""
    yield "embedding_norm", "embeddings.LayerNorm"
    for layer in range(layers):
        for ours, theirs in family.tensors.items():
            yield f"blocks.{layer}.{ours}", f"{family.block}{layer}.{theirs}"


def exported(encoder: Encoder) -> tuple[dict[str, object], dict[str, Tensor]]:
    """An encoder as a BERT of `transformers`: config.json and the tensors of BertModel.

    Raises:
        UserError: the encoder has something that BERT has not; the setting is named.
    """
    chosen = encoder.settings
    attention, feed_forward = chosen.attention, chosen.feed_forward
    wanted = {
        "model.position": (chosen.position.kind, ("learned",)),
        "model.attention": (attention.kind, ("multi_head", "single_head", "shared_query_key")),
        "model.feed_forward": (feed_forward.kind, tuple(ACTIVATIONS)),
        "model.norm": (chosen.norm.kind, ("layer_norm",)),
        "model.norm.placement": (chosen.norm.placement, ("post",)),
        "model.norm.embedding": (str(chosen.norm.embedding).lower(), ("true",)),
        "model.values": (chosen.values, ("hidden",)),
        "model.second_sequence": (str(chosen.second_sequence).lower(), ("false",)),
    }
    for name, (value, allowed) in wanted.items():
        if value not in allowed:
            raise UserError(f"{name} ({value}) has no counterpart in BERT, which needs {' or '.join(allowed)}")
    assert isinstance(chosen.position, settings.Learned)
    state = encoder.state_dict()
    config = {
        "model_type": "bert",
        "architectures": ["BertModel"],
        "vocab_size": encoder.tokens.num_embeddings,
        "hidden_size": chosen.width,
        "num_hidden_layers": chosen.layers,
        "num_attention_heads": settings.heads_of(attention),
        "intermediate_size": len(state["blocks.0.feed_forward.widen.weight"]),
        "hidden_act": feed_forward.kind,
        "hidden_dropout_prob": chosen.dropout,
        "attention_probs_dropout_prob": float(getattr(attention, "dropout", 0.0)),
        "layer_norm_eps": chosen.norm.epsilon,
        "max_position_embeddings": chosen.position.max_length,
        "type_vocab_size": 1,
        "pad_token_id": 0,
    }
    tensors = {
        "embeddings.word_embeddings.weight": state["tokens.weight"],
        "embeddings.position_embeddings.weight": state["position.table.weight"],
        "embeddings.token_type_embeddings.weight": torch.zeros(1, chosen.width),
    }
    for ours, theirs in _modules(FAMILIES["bert"], chosen.layers):
        shared = isinstance(attention, settings.SharedQueryKey)
        source = ours.replace("attention.key", "attention.query") if shared else ours
        for part in ("weight", "bias"):
            tensors[f"{theirs}.{part}"] = state[f"{source}.{part}"]
    return config, {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
