"""Families of published encoders: names of their tensors, and conversion of their config.json to model settings.

Importing this module does not import torch.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anaphora.base.errors import UserError
from anaphora.base.files import read_json
from anaphora.settings.model import attention as attention_settings
from anaphora.settings.model import encoder as model_settings
from anaphora.settings.model import position as position_settings

CONFIG, WEIGHTS = "config.json", "model.safetensors"


@dataclass(frozen=True, kw_only=True)
class Family:
    """Names and conventions of a family of published encoders.

    Attributes:
        prefix: prefix of the encoder's tensor names in files that also contain a task-specific head.
        fields: names of Anaphora's shape settings, each mapped to its field of config.json.
        block: prefix of a block's tensor names; the index of the block follows it.
        tensors: name of each module in Anaphora's `Block`, mapped to its name in the checkpoint; a module has a weight
            and a bias.
        output: name of each part of Anaphora's masked-LM head, mapped to its name in the checkpoint.
        output_activation: activation in the masked-LM head; None if the head uses the activation of the encoder.
        padded_positions: whether the first rows of the position-embedding table are reserved for padding.
    """

    prefix: str
    fields: Mapping[str, str]
    block: str
    tensors: Mapping[str, str]
    output: Mapping[str, str]
    output_activation: str | None = None
    padded_positions: bool = False

    def first_position(self, config: Mapping[str, Any]) -> int:
        """Return the first used row of the position-embedding table; in RoBERTa this is the padding id plus 1."""
        return int(config.get("pad_token_id", 1)) + 1 if self.padded_positions else 0


_BERT_FIELDS = {
    "width": "hidden_size",
    "layers": "num_hidden_layers",
    "heads": "num_attention_heads",
    "hidden": "intermediate_size",
    "positions": "max_position_embeddings",
    "activation": "hidden_act",
    "epsilon": "layer_norm_eps",
    "dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
    "deviation": "initializer_range",
}
_BERT_TENSORS = {
    "attention.query": "attention.self.query",
    "attention.key": "attention.self.key",
    "attention.value": "attention.self.value",
    "attention.output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "feed_forward.widen": "intermediate.dense",
    "feed_forward.narrow": "output.dense",
    "feed_forward_norm": "output.LayerNorm",
}
_DEFAULTS = {"activation": "gelu", "epsilon": 1e-12, "dropout": 0.1, "attention_dropout": 0.1, "deviation": 0.02}
"""Values of settings whose fields config.json may omit; the epsilon of distilbert is fixed in its authors' code."""

FAMILIES = {
    "bert": Family(
        prefix="bert.",
        fields=_BERT_FIELDS,
        block="encoder.layer.",
        tensors=_BERT_TENSORS,
        output={
            "dense": "cls.predictions.transform.dense",
            "norm": "cls.predictions.transform.LayerNorm",
            "bias": "cls.predictions.bias",
            "decoder": "cls.predictions.decoder.weight",
        },
    ),
    "roberta": Family(
        prefix="roberta.",
        fields=_BERT_FIELDS,
        block="encoder.layer.",
        tensors=_BERT_TENSORS,
        output={
            "dense": "lm_head.dense",
            "norm": "lm_head.layer_norm",
            "bias": "lm_head.bias",
            "decoder": "lm_head.decoder.weight",
        },
        output_activation="gelu",
        padded_positions=True,
    ),
    "distilbert": Family(
        prefix="distilbert.",
        fields={
            "width": "dim",
            "layers": "n_layers",
            "heads": "n_heads",
            "hidden": "hidden_dim",
            "positions": "max_position_embeddings",
            "activation": "activation",
            "epsilon": "layer_norm_eps",
            "dropout": "dropout",
            "attention_dropout": "attention_dropout",
            "deviation": "initializer_range",
        },
        block="transformer.layer.",
        tensors={
            "attention.query": "attention.q_lin",
            "attention.key": "attention.k_lin",
            "attention.value": "attention.v_lin",
            "attention.output": "attention.out_lin",
            "attention_norm": "sa_layer_norm",
            "feed_forward.widen": "ffn.lin1",
            "feed_forward.narrow": "ffn.lin2",
            "feed_forward_norm": "output_layer_norm",
        },
        output={
            "dense": "vocab_transform",
            "norm": "vocab_layer_norm",
            "bias": "vocab_projector.bias",
            "decoder": "vocab_projector.weight",
        },
    ),
}
"""Families by `model_type`; MiniLM encoders have the type bert."""

ACTIVATIONS: dict[str, type[model_settings.FeedForward]] = {"gelu": model_settings.Gelu, "relu": model_settings.Relu}


def read_config(folder: Path) -> dict[str, Any]:
    """Read the config.json of a folder of pretrained weights.

    Raises:
        UserError: the file is missing, is not a JSON object, or names an unsupported `model_type`.
    """
    path = folder / CONFIG
    try:
        config: dict[str, Any] = read_json(path, dict)
    except FileNotFoundError:
        raise UserError(f"{path} is missing") from None
    kind = config.get("model_type")
    if kind not in FAMILIES:
        raise UserError(
            f"{path}: model_type ({kind!r}) must be one of {', '.join(FAMILIES)}; if transformers is installed, "
            "anaphora attention text=..., score, antecedents and the page of look also read its other models "
            "(docs/any_model.md)"
        )
    return config


def encoder_settings(folder: Path) -> model_settings.Model:
    """Return the settings of the encoder in a folder of pretrained weights.

    Raises:
        UserError: config.json is missing or damaged, lacks a field, or has a value that this encoder does not support.
    """
    path, config = folder / CONFIG, read_config(folder)
    family = FAMILIES[config["model_type"]]
    for name, allowed in (("position_embedding_type", "absolute"), ("is_decoder", False)):
        if config.get(name, allowed) != allowed:
            raise UserError(f"{path}: {name} ({config[name]!r}) must be {allowed!r}")
    padding = config.get("pad_token_id", 1)
    if family.padded_positions and (not isinstance(padding, int) or isinstance(padding, bool)):
        raise UserError(f"{path}: pad_token_id ({padding!r}) must be a whole number")
    shape: dict[str, Any] = {}
    for ours, theirs in family.fields.items():
        value = config.get(theirs, _DEFAULTS.get(ours))
        if value is None:
            raise UserError(f"{path}: {theirs} is missing")
        wanted: tuple[type, ...] = (str,) if ours == "activation" else (int, float)
        if not isinstance(value, wanted) or isinstance(value, bool):
            raise UserError(f"{path}: {theirs} ({value!r}) must be {'a name' if ours == 'activation' else 'a number'}")
        shape[ours] = value
    if shape["activation"] not in ACTIVATIONS:
        field = family.fields["activation"]
        raise UserError(f"{path}: {field} ({shape['activation']!r}) must be one of {', '.join(ACTIVATIONS)}")
    output = has_vocabulary_output(folder)
    try:
        return model_settings.Model(
            width=shape["width"],
            layers=shape["layers"],
            dropout=shape["dropout"],
            tied_output=not output or is_tied(config),
            output_transform=output,
            position=position_settings.Learned(max_length=shape["positions"] - family.first_position(config)),
            attention=attention_settings.MultiHead(heads=shape["heads"], dropout=shape["attention_dropout"]),
            feed_forward=ACTIVATIONS[shape["activation"]](expansion=shape["hidden"] / shape["width"]),
            norm=model_settings.LayerNorm(placement="post", epsilon=shape["epsilon"], embedding=True),
            initialisation=model_settings.Normal(deviation=shape["deviation"]),
        )
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None


def is_tied(config: Mapping[str, Any]) -> bool:
    """Return whether the output layer and the token embedding share weights; True if config.json has no such field."""
    return bool(config.get("tie_word_embeddings", True))


def has_vocabulary_output(folder: Path) -> bool:
    """Return whether a folder of pretrained weights includes a masked-LM head that our model supports.

    Raises:
        UserError: config.json is missing or damaged, or its `model_type` is not supported.
    """
    config = read_config(folder)
    family = FAMILIES[config["model_type"]]
    if family.output_activation not in (None, config.get(family.fields["activation"], _DEFAULTS["activation"])):
        return False
    names = {current_tensor_name(name, family) for name in _tensor_names(folder / WEIGHTS)}
    bias = output_bias(names, family)
    needed = {f"{family.output[part]}.weight" for part in ("dense", "norm")} | {bias}
    return needed <= names and (is_tied(config) or family.output["decoder"] in names)


def output_bias(names: Collection[str], family: Family) -> str:
    """Return the name of the output layer's bias: the decoder's if it is stored, otherwise that in `family.output`."""
    own = family.output["decoder"].replace("weight", "bias")
    return own if own in names else family.output["bias"]


_LEGACY_NAMES = {".LayerNorm.gamma": ".LayerNorm.weight", ".LayerNorm.beta": ".LayerNorm.bias"}


def current_tensor_name(name: str, family: Family) -> str:
    """Return a tensor's name without the family's prefix, with legacy names replaced."""
    plain = name.removeprefix(family.prefix)
    for old, new in _LEGACY_NAMES.items():
        plain = plain.replace(old, new)
    return plain


def _tensor_names(path: Path) -> list[str]:
    """Return the tensor names of a safetensors file; empty if the file is unreadable.

    An unreadable file raises no error here, but when its weights are loaded.
    """
    from safetensors import SafetensorError, safe_open  # imported late, since many commands do not read weights

    try:
        with safe_open(path, framework="numpy") as file:
            return list(file.keys())
    except (SafetensorError, OSError):
        return []
