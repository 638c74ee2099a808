"""Families of published encoders, such as BERT: tensor names, and conversion of config.json to model settings.

Importing this module does not import torch.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anaphora.base.errors import UserError
from anaphora.base.files import read_json
from anaphora.settings.model import attention as attention_settings
from anaphora.settings.model import encoder as model_settings
from anaphora.settings.model import position as position_settings

CONFIG, WEIGHTS, ADAPTER = "config.json", "model.safetensors", "adapter_config.json"
"""Names of files; `ADAPTER` describes an adapter such as LoRA, whose weights are added to those of a base model."""
BUFFER = re.compile(r"(^|[._])(position_ids|token_type_ids|inv_freq|masked_bias|num_batches_tracked|version)$")
"""Pattern of the end of a tensor's name if the tensor is computed, not learned; old files store such tensors."""
_ACTS_ON_ATTENTION = re.compile(
    r"position_embedding_type|(use_)?alibi|rotary|(use_)?rotary_\w+|rope_(scaling|parameters)|is_causal"
    r"|use_bidirectional_attention|sliding_window|(use_)?qk_(layer)?norm|attn_logit_softcapping|relative_attention"
    r"|attention_type|scale_attn_by_inverse_layer_idx|attention_sinks?|attention_multiplier|query_pre_attn_scalar"
    r"|clip_qkv|no_rope_layers|attention_chunk_size"
)
"""Pattern of the keys of config.json that change how attention is computed."""
_WITHOUT_EFFECT: tuple[object, ...] = (None, False, "", "absolute", "original_full", "full", 0, [], {})
"""Values of these keys that stand for standard attention."""


@dataclass(frozen=True, kw_only=True)
class Family:
    """Names and conventions of a family of published encoders; "setting" and "module" are those of this package.

    Attributes:
        prefix: prefix of the encoder's tensor names in files that also contain a task-specific head.
        fields: field of config.json for each setting of the encoder, such as width.
        block: prefix of a Transformer block's tensor names; the index of the block follows it.
        tensors: name in the checkpoint of each module of `Block`; a module has a weight and a bias.
        output: name in the checkpoint of each module of the masked-LM head.
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


_CLASSES_OF_ADAPTERS = {
    "CAUSAL_LM": "AutoPeftModelForCausalLM",
    "SEQ_2_SEQ_LM": "AutoPeftModelForSeq2SeqLM",
    "SEQ_CLS": "AutoPeftModelForSequenceClassification",
    "TOKEN_CLS": "AutoPeftModelForTokenClassification",
    "QUESTION_ANS": "AutoPeftModelForQuestionAnswering",
    "FEATURE_EXTRACTION": "AutoPeftModelForFeatureExtraction",
}
"""Classes of peft that load an adapter together with its base model, by `task_type`."""
_NOT_MERGED = re.compile("PREFIX|PROMPT|P_TUNING|CPT|CARTRIDGE|XLORA")
"""Pattern of the kinds of adapters that are not changes of weights, such as vectors that precede each text."""


def check_no_adapter(path: Path | None, place: str, title: str) -> None:
    """Raise UserError if a model is an adapter, such as LoRA, whose weights would not be read.

    Args:
        path: the model's file `ADAPTER`; None if there is none.
        place: folder or name on the Hugging Face Hub, as peft takes it.
        title: beginning of the error message.

    Raises:
        UserError: the file exists. The message explains how to merge the adapter into its base model. The base model
            must be loaded with the class that was adapted; with another class, peft ignores the adapter's weights.
    """
    if path is None or not path.exists():
        return
    adapter = read_json(path, dict)
    kind, base = adapter.get("peft_type"), adapter.get("base_model_name_or_path") or adapter.get("model_name")
    problem = f"{title}: {ADAPTER} belongs to an adapter ({kind or 'of unknown kind'}) of {base or 'a base model'}"
    if _NOT_MERGED.search(str(kind)):
        raise UserError(
            f"{problem}, which adds vectors of its own to every text and cannot be merged into the weights; name the "
            "base model to read it without the adapter"
        )
    name = _CLASSES_OF_ADAPTERS.get(str(adapter.get("task_type")), "")
    if base and (name or adapter.get("auto_mapping")):
        opened, where = f"peft.{name or 'AutoPeftModel'}.from_pretrained({place!r})", ""
    else:
        opened, where = (
            f"peft.PeftModel.from_pretrained(base, {place!r})",
            "; base must be of the class that was adapted",
        )
    raise UserError(
        f"{problem}; merge it first: {opened}.merge_and_unload().save_pretrained(folder), with the tokenizer beside it"
        f"{where}"
    )


def acts_on_attention(key: str, value: object) -> bool:
    """Return whether a key of config.json, with this value, changes how attention is computed."""
    return _ACTS_ON_ATTENTION.fullmatch(key) is not None and value not in _WITHOUT_EFFECT


def check_not_quantised(config: Mapping[str, Any], path: str | Path) -> None:
    """Raise UserError if a config.json describes quantised weights."""
    quantised = config.get("quantization_config") or config.get("compression_config")
    if quantised:
        method = quantised.get("quant_method") if isinstance(quantised, dict) else None
        raise UserError(
            f"{path}: quantization_config ({method or 'without quant_method'}): quantised weights cannot be read; name "
            "the unquantised model, or load this one with transformers and give the object to anaphora.attention"
        )


def declared_classes(config: Mapping[str, Any]) -> tuple[list[tuple[str, str]], bool]:
    """Return the model classes that a config.json declares, and whether its `auto_map` names custom model code.

    Each class is given as (field of config.json, class name). The field `architectures` declares all of its classes;
    `auto_map` declares the class for `AutoModel` and, if `architectures` is empty, those for the other Auto classes.
    """
    places, named = config.get("auto_map"), config.get("architectures")
    pairs = places.items() if isinstance(places, dict) else ()
    own = {key: str(place).rpartition(".")[2] for key, place in pairs if key.startswith("AutoModel")}
    classes = [("architectures", str(name)) for name in (named if isinstance(named, list) else ())]
    of_auto_map = [name for key, name in own.items() if key == "AutoModel" or not classes]
    return classes + [("auto_map", name) for name in of_auto_map], bool(own)


def read_config(folder: Path) -> dict[str, Any]:
    """Read the config.json of a folder of pretrained weights.

    Raises:
        UserError: the file is missing, is not a JSON object, names an unsupported `model_type`, or describes quantised
            weights, custom model code, or attention that this encoder does not compute.
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
    check_not_quantised(config, path)
    classes, has_own_code = declared_classes(config)
    for field, name in classes:
        if has_own_code and not re.fullmatch(rf"{kind}(model|lmheadmodel|for\w+)", name.lower()):
            raise UserError(f"{path}: {field} ({name}) is code of the model's own (auto_map), which is never run")
    for key, value in config.items():
        if acts_on_attention(key, value) and key != "position_embedding_type":
            raise UserError(f"{path}: {key} ({value!r}): this encoder does not compute such attention")
    return config


def encoder_settings(folder: Path) -> model_settings.Model:
    """Convert the config.json of a folder of pretrained weights to this package's encoder settings.

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
    """Return whether a folder of pretrained weights includes a masked-LM head that this package can load.

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
    """Return the name under which the bias of the output layer is stored, given the names of all stored tensors."""
    own = family.output["decoder"].replace("weight", "bias")
    return own if own in names else family.output["bias"]


_LEGACY_NAMES = {".LayerNorm.gamma": ".LayerNorm.weight", ".LayerNorm.beta": ".LayerNorm.bias"}


def current_tensor_name(name: str, family: Family) -> str:
    """Return a tensor's name without the family's prefix; layer-norm gamma and beta become weight and bias."""
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
