"""Description of a run's model and tokenizer for the JavaScript of the HTML page that runs the model in the browser.

The script reimplements `anaphora.model` for the variants in `SUPPORTED`; tests compare both implementations.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import torch

from anaphora.base.errors import UserError
from anaphora.data.tokens.vocabulary import character_vocabulary, wordpiece_vocabulary
from anaphora.settings.model.attention import MultiHead, heads_of
from anaphora.settings.model.position import Rotary, Sinusoidal, T5Relative
from anaphora.settings.model.prediction import Pair, Pointer

if TYPE_CHECKING:
    from anaphora.model import position as modules
    from anaphora.runs.directory import Run
    from anaphora.settings.run import Config

SUPPORTED: Mapping[str, tuple[str, ...]] = {
    "model.attention": ("multi_head", "single_head", "shared_query_key", "uniform", "parameter_free"),
    "model.position": ("none", "sinusoidal", "learned", "rotary", "alibi", "t5_relative"),
    "model.feed_forward": ("relu", "gelu", "swiglu"),
    "model.norm": ("layer_norm", "rms_norm"),
    "task.prediction": ("word", "slot", "bilinear", "pair", "pointer"),
}
"""Variants that the script implements, by setting."""
_TOKENIZERS: Mapping[str, Mapping[str, Any]] = {
    "Unigram": {"unk_id": 1, "byte_fallback": False},
    "WordPiece": {"unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100},
    "BPE": {
        "dropout": None,
        "unk_token": "[UNK]",
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
    },
}
"""Tokenizer models that the script implements, each with the options that it must have."""


def check_supported(run: Run) -> None:
    """Raise UserError if the page's script does not support a run's model; `stored_tokenizer` checks the tokenizer."""
    config = run.config
    kinds = {
        "model.attention": config.model.attention.kind,
        "model.position": config.model.position.kind,
        "model.feed_forward": config.model.feed_forward.kind,
        "model.norm": config.model.norm.kind,
        "task.prediction": config.task.prediction.kind,
    }
    for setting, kind in kinds.items():
        if kind not in SUPPORTED[setting]:
            allowed = ", ".join(SUPPORTED[setting])
            raise UserError(f"{run.name}: format=page does not support {setting}={kind}; it supports {allowed}")
    if config.model.second_sequence:
        raise UserError(f"{run.name}: format=page does not support model.second_sequence=true")


def shape_of(run: Run) -> dict[str, Any]:
    """Return the hyperparameters of a run's model in the form that the page's script reads."""
    model = run.config.model
    attention, norm = model.attention, model.norm
    heads = heads_of(attention)
    is_unscaled = isinstance(attention, MultiHead) and not attention.scaled
    transform = ("relu" if model.feed_forward.kind == "relu" else "gelu") if model.output_transform else None
    return {
        "width": model.width,
        "layers": model.layers,
        "heads": heads,
        "attention": attention.kind,
        "scale": 1.0 if is_unscaled else (model.width / heads) ** -0.5,
        "position": _position(run),
        "feed_forward": model.feed_forward.kind,
        "norm": {"kind": norm.kind, "placement": norm.placement, "epsilon": norm.epsilon, "embedding": norm.embedding},
        "values": model.values,
        "output_transform": transform,
        "prediction": _prediction(run.config),
    }


def _position(run: Run) -> dict[str, Any]:
    position = run.config.model.position
    described: dict[str, Any] = {"kind": position.kind}
    if isinstance(position, Sinusoidal | Rotary):
        described["base"] = position.base
    if isinstance(position, T5Relative):
        # Buckets of distances to the left, computed by torch; the script derives the buckets to the right.
        module = cast("modules.T5Relative", run.model.encoder.position)
        left = module.bucket(-torch.arange(position.max_distance + 1))
        described |= {"buckets": left.tolist(), "side": position.buckets // 2}
    return described


def _prediction(config: Config) -> dict[str, Any]:
    prediction = config.task.prediction
    described: dict[str, Any] = {"kind": prediction.kind, "none_of_them": prediction.none_of_them}
    if isinstance(prediction, Pointer):
        described |= {"layer": prediction.layer % config.model.layers, "head": prediction.head}
    if isinstance(prediction, Pair):
        described["attention"] = prediction.attention
    return described


def stored_tokenizer(run: Run) -> dict[str, Any]:
    """Return the tokenizer of a run in the format that the page's JavaScript reads.

    Raises:
        UserError: the tokenizer was not trained by this package, for example because it comes from a pretrained model.
    """
    content = json.loads(run.tokenizer.dumps())
    model = content["model"]
    pipelines = {False: _pipeline(character_vocabulary(["a"], 1)), True: _pipeline(wordpiece_vocabulary(["aa"], 16))}
    single = [is_single for is_single, parts in pipelines.items() if parts == {name: content[name] for name in parts}]
    options = _TOKENIZERS.get(model["type"])
    if not single or options is None or any(model.get(name, value) != value for name, value in options.items()):
        raise UserError(
            f"{run.name}: format=page does not support this tokenizer ({model['type']} of another origin); it supports "
            "those of vocabulary=word, character, wordpiece and bpe"
        )
    tokens = [run.tokenizer.token(number) for number in range(run.tokenizer.size)]
    stored: dict[str, Any] = {"kind": model["type"], "tokens": tokens, "single": single[0]}
    if model["type"] == "Unigram":
        stored["scores"] = [score for _, score in model["vocab"]]
    if model["type"] == "BPE":
        stored["merges"] = [merge.split(" ") if isinstance(merge, str) else merge for merge in model["merges"]]
    return stored


def _pipeline(tokenizer: Any) -> dict[str, Any]:
    """Return the fields of a tokenizer's JSON that determine its pre- and post-processing."""
    content = json.loads(tokenizer.dumps())
    return {name: content[name] for name in ("normalizer", "pre_tokenizer", "post_processor", "added_tokens")}
