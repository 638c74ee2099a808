"""Conversion of published encoder weights, such as BERT's, to this package's encoder and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from anaphora.base.errors import UserError, counted
from anaphora.model.encoder import Encoder
from anaphora.model.pretrained.families import (
    ACTIVATIONS,
    BUFFER,
    CONFIG,
    FAMILIES,
    WEIGHTS,
    Family,
    current_tensor_name,
    has_vocabulary_output,
    is_tied,
    output_bias,
    read_config,
)
from anaphora.model.pronoun_model import PronounModel, VocabularyOutput
from anaphora.settings.model import attention as attention_settings
from anaphora.settings.model import position as position_settings
from anaphora.settings.vocabulary import PADDING

_FLOATING = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
"""Types of weights; numbers of 8 bits have been quantised."""


def load_pretrained(model: PronounModel, folder: Path, rows: Sequence[int | None]) -> None:
    """Load pretrained weights into a model built from the settings that `encoder_settings` returns for the folder.

    The vector of token type 0 is added to all token embeddings; with a tied output, this adds the same constant to all
    logits of a position. Rows of the position-embedding table that are reserved for padding are dropped. `rows` has,
    for each token id of the model, the index of the row in the published embedding table; None gives the mean row.

    Raises:
        UserError: a file is missing or broken, the tensors do not match config.json or `rows`, or the file has further
            tensors of layers or embeddings.
    """
    config = read_config(folder)
    family = FAMILIES[config["model_type"]]
    path = folder / WEIGHTS
    tensors, encoder = _read_tensors(path, family), model.encoder
    _check_padding(rows, family, config, folder)
    state = _encoder_state(tensors, family, encoder.settings.layers, rows, family.first_position(config), path)
    _load_state(encoder, state, folder)
    _check_all_are_read(tensors, family, encoder.settings.layers, path)
    if has_vocabulary_output(folder):
        _load_state(model.output, _output_state(tensors, family, rows, is_tied(config), state["tokens.weight"]), folder)


def _check_padding(rows: Sequence[int | None], family: Family, config: Mapping[str, Any], folder: Path) -> None:
    """Check that `pad_token_id` is the tokenizer's padding token, for families with `padded_positions`.

    Models of such families give no position to the token with this id. This package's encoder gives one to each token.
    """
    padding = family.first_position(config) - 1
    if family.padded_positions and padding in rows and rows[PADDING] != padding:
        raise UserError(
            f"{folder / CONFIG}: pad_token_id ({padding}) is not the padding token of the tokenizer, so the model "
            "gives a token of texts no position of its own; this encoder gives every token one"
        )


def _check_all_are_read(tensors: Mapping[str, Tensor], family: Family, layers: int, path: Path) -> None:
    """Raise UserError if a file has weights of layers or embeddings that the encoder does not use."""
    tables = {f"embeddings.{kind}_embeddings.weight" for kind in ("word", "position", "token_type")}
    read = tables.union(theirs for _, theirs in _encoder_names(family, layers))
    firsts = ("embeddings", family.block.partition(".")[0])
    unread = sorted(
        name for name in tensors.keys() - read if name.partition(".")[0] in firsts and not BUFFER.search(name)
    )
    if unread:
        more = f" and {len(unread) - 1} more" if len(unread) > 1 else ""
        raise UserError(
            f"{path}: {unread[0]}{more}: the encoder that {CONFIG} describes ({counted(layers, 'layer')}) does not "
            "read these "
            "weights; without them it is not the trained model"
        )


def _load_state(module: nn.Module, state: Mapping[str, Tensor], folder: Path) -> None:
    for name, wanted in module.state_dict().items():
        if state[name].shape != wanted.shape:
            raise UserError(
                f"{folder / WEIGHTS}: the tensor for {name} has shape {tuple(state[name].shape)}; "
                f"{folder / CONFIG} says {tuple(wanted.shape)}"
            )
    module.load_state_dict(state)


def _read_tensors(path: Path, family: Family) -> dict[str, Tensor]:
    """Read the tensors of a file as float32, keyed by the names that `current_tensor_name` returns."""
    try:
        loaded = load_file(path)
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path}: missing, broken or cut off ({error})") from None
    for name, value in loaded.items():
        if value.dtype not in _FLOATING and not name.endswith("_ids"):  # old files also contain position ids
            expected = ", ".join(map(str, _FLOATING))
            raise UserError(f"{path}: {name} holds numbers of type {value.dtype}; it must be one of {expected}")
        if not value.isfinite().all():
            raise UserError(f"{path}: {name} holds numbers that are not finite; fetch the file again")
    tensors: dict[str, Tensor] = {}
    for name, value in loaded.items():
        plain = current_tensor_name(name, family)
        if plain in tensors and not torch.equal(tensors[plain], value.float()):
            raise UserError(f"{path}: {plain} is stored under two names with different numbers; remove one of the two")
        tensors[plain] = value.float()
    return tensors


def _encoder_state(
    tensors: Mapping[str, Tensor], family: Family, layers: int, rows: Sequence[int | None], first: int, path: Path
) -> dict[str, Tensor]:
    def at(name: str) -> Tensor:
        if name not in tensors:
            raise UserError(f"{path}: the tensor {name} is missing")
        return tensors[name]

    table = at("embeddings.word_embeddings.weight")
    highest = max((row for row in rows if row is not None), default=0)
    if highest >= len(table):
        raise UserError(
            f"{path}: the token table has {counted(len(table), 'row')}; the tokenizer numbers tokens up to {highest}"
        )
    tokens = _reordered_rows(table, rows)
    if "embeddings.token_type_embeddings.weight" in tensors:
        tokens = tokens + tensors["embeddings.token_type_embeddings.weight"][0]
    state = {"tokens.weight": tokens, "position.table.weight": at("embeddings.position_embeddings.weight")[first:]}
    return state | {ours: at(theirs) for ours, theirs in _encoder_names(family, layers)}


def _output_state(
    tensors: Mapping[str, Tensor], family: Family, rows: Sequence[int | None], tied: bool, embedded: Tensor
) -> dict[str, Tensor]:
    state = {ours: tensors[theirs] for ours, theirs in _transform_names(family)}
    state["linear.bias"] = _reordered_rows(tensors[output_bias(tensors, family)], rows)
    state["linear.weight"] = embedded if tied else _reordered_rows(tensors[family.output["decoder"]], rows)
    return state


def _reordered_rows(table: Tensor, rows: Sequence[int | None]) -> Tensor:
    """Return the rows of a tensor in the order of the model's token ids; an index of None gives the mean row."""
    fresh = table.mean(dim=0)
    return torch.stack([fresh if row is None else table[row] for row in rows])


def _transform_names(family: Family) -> Iterator[tuple[str, str]]:
    """Yield (name in this package, name in the checkpoint) for each weight and bias of the `OutputTransform`."""
    for part, kind in product(("dense", "norm"), ("weight", "bias")):
        yield f"transform.{part}.{kind}", f"{family.output[part]}.{kind}"


def _encoder_names(family: Family, layers: int) -> Iterator[tuple[str, str]]:
    """Yield (name in this package, name in the checkpoint) for each weight and bias of the encoder."""
    modules = {"embedding_norm": "embeddings.LayerNorm"}
    for layer in range(layers):
        modules |= {f"blocks.{layer}.{ours}": f"{family.block}{layer}.{each}" for ours, each in family.tensors.items()}
    for (ours, theirs), kind in product(modules.items(), ("weight", "bias")):
        yield f"{ours}.{kind}", f"{theirs}.{kind}"


def to_bert(encoder: Encoder, output: VocabularyOutput | None = None) -> tuple[dict[str, object], dict[str, Tensor]]:
    """Convert an encoder to a BERT model of `transformers`; return the content of config.json and the tensors.

    With `output`, the model is a BertForMaskedLM, otherwise a BertModel.

    Raises:
        UserError: the structure of the encoder or of `output` is not that of BERT; the message names the settings and
            the values that can be exported.
    """
    settings = encoder.settings
    attention, feed_forward = settings.attention, settings.feed_forward
    wanted = {
        "model/position": (settings.position.kind, ("learned",)),
        "model/attention": (attention.kind, ("multi_head", "single_head", "shared_query_key")),
        "model.attention.scaled": (str(getattr(attention, "scaled", True)).lower(), ("true",)),
        "model/feed_forward": (feed_forward.kind, tuple(ACTIVATIONS)),
        "model/norm": (settings.norm.kind, ("layer_norm",)),
        "model.norm.placement": (settings.norm.placement, ("post",)),
        "model.norm.embedding": (str(settings.norm.embedding).lower(), ("true",)),
        "model.values": (settings.values, ("hidden",)),
        "model.second_sequence": (str(settings.second_sequence).lower(), ("false",)),
    }
    others = {name: value for name, (value, allowed) in wanted.items() if value not in allowed}
    if others:
        listed = ", ".join(f"{name} ({value})" for name, value in others.items())
        needed = " ".join(f"{name}={' or '.join(wanted[name][1])}" for name in others)
        raise UserError(
            f"BERT has no counterpart for {listed}; only a run trained with {needed} can be exported with format=bert; "
            "format=anaphora exports any run"
        )
    if output is not None and not settings.output_transform:
        raise UserError(
            "model.output_transform (false) has no counterpart in BertForMaskedLM, which needs true; "
            "output_layer=false exports the encoder alone"
        )
    assert isinstance(settings.position, position_settings.Learned)
    state = encoder.state_dict()
    config = {
        "model_type": "bert",
        "architectures": ["BertModel"],
        "vocab_size": encoder.tokens.num_embeddings,
        "hidden_size": settings.width,
        "num_hidden_layers": settings.layers,
        "num_attention_heads": attention_settings.heads_of(attention),
        "intermediate_size": len(state["blocks.0.feed_forward.widen.weight"]),
        "hidden_act": feed_forward.kind,
        "hidden_dropout_prob": settings.dropout,
        "attention_probs_dropout_prob": float(getattr(attention, "dropout", 0.0)),
        "layer_norm_eps": settings.norm.epsilon,
        "max_position_embeddings": settings.position.max_length,
        "type_vocab_size": 1,
        "pad_token_id": 0,
    }
    tensors = {
        "embeddings.word_embeddings.weight": state["tokens.weight"],
        "embeddings.position_embeddings.weight": state["position.table.weight"],
        "embeddings.token_type_embeddings.weight": torch.zeros(1, settings.width),
    }
    shared = isinstance(attention, attention_settings.SharedQueryKey)
    for ours, theirs in _encoder_names(FAMILIES["bert"], settings.layers):
        tensors[theirs] = state[ours.replace("attention.key", "attention.query") if shared else ours]
    if output is not None:
        config |= {"architectures": ["BertForMaskedLM"], "tie_word_embeddings": settings.tied_output}
        tensors = {f"bert.{name}": value for name, value in tensors.items()} | _output_tensors(
            output, settings.tied_output
        )
    return config, {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}


def _output_tensors(output: VocabularyOutput, tied: bool) -> dict[str, Tensor]:
    state, names = output.state_dict(), FAMILIES["bert"].output
    tensors = {theirs: state[ours] for ours, theirs in _transform_names(FAMILIES["bert"])}
    tensors[names["bias"]] = state["linear.bias"]
    if not tied:
        # If weights are not tied, transformers expects the bias under the decoder's name.
        tensors[names["decoder"].replace("weight", "bias")] = state["linear.bias"]
        tensors[names["decoder"]] = state["linear.weight"]
    return tensors
