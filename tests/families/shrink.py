"""Tiny configurations of any family, from the names and default values of configuration attributes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

from families.exceptions import SETTINGS
from families.registry import Family

transformers: Any = import_module("transformers")
VOCABULARY = 128
POSITIONS = 64
WIDTH = 32
HEADS = 4
HEAD_WIDTH = 8
RULES: tuple[tuple[str, int], ...] = (
    (r"rotary_dim", HEAD_WIDTH // 2),
    (r"qk_head_dim", 2 * HEAD_WIDTH),
    (r"entity_vocab_size|vocab_size_per_layer_input", VOCABULARY),
    (r"max(_\w+)?_position_embeddings|n_positions|n_ctx|max_seq_len|context_length|max_length", POSITIONS),
    (
        r"hidden_size|d_model|n_embd|dim|emb_dim|\w*embedding_size|embedding_dim|word_embed_proj_dim|\w*hidden_size",
        WIDTH,
    ),
    (
        r"entity_emb_size|true_hidden_size|intra_bottleneck_size|lru_width|hidden_size_per_layer_input|projection_dim",
        WIDTH,
    ),
    (r"d_inner|dff|dim_ff|hidden_dim|feed_forward_size|n_inner|\w*d_ff|\w*ffn_dim|\w*intermediate_size\w*", 2 * WIDTH),
    (r"\w*ffn_hidden_size", 2 * WIDTH),
    (r"(swa_|num_)?(\w+_)?attention_heads|n_heads?|num_heads|linear_num_\w*heads|index_n_heads|resampler_heads", HEADS),
    (r"\w*head_dim|d_head|d_kv|dim_head|attention_head_size|kv_channels|mamba_d_head|mamba_headdim", HEAD_WIDTH),
    (r"mamba_n(um)?_heads|n_mamba_heads", 2 * WIDTH // HEAD_WIDTH),
    (r"(encoder_|decoder_)?layers|n_layers?|num_(encoder_|decoder_|hidden_)?layers|num_blocks", 2),
    (r"(num|n)_(routed_|local_)?experts|moe_num_experts", 4),
    (r"(moe_)?(num|n)_shared_experts", 1),
    (r"num_experts_per_tok(en)?|top_k_experts|moe_topk|moe_k", 2),
    (r"n_group|topk_group|num_expert_group", 1),
    (r"\w*lora_rank|laurel_rank|gated_norm_rank|\w*lowrank|(mamba_)?dt_rank|time_step_rank|d_rel|adapter_rank", 8),
    (r"state_size|ssm_state_size|mamba_d_state|\w*chunk_size|block_multiple_of|router_hidden_size", 8),
    (r"mamba_d_ssm", 2 * WIDTH),
    (
        r"\w*sliding_window(_size)?|window_size|local_attention|attention_window(_size)?|local_radius|keep_window_size",
        4,
    ),
    (r"attention_chunk_size|index_topk|local_attention_window_len|index_block_size", 4),
)
"""New values of attributes by pattern of the whole name, if the default is larger."""
UNSET = (
    r"head_dim|num_attention_heads|num_key_value_heads|vocab_size|moe_intermediate_size|index_\w+"
    r"|(num|n)_(routed_|shared_)?experts|num_experts_per_tok|top_k_experts"
)
"""Attributes without a default that all published models set."""
GROUPED = r"(\w+_)?num_key_value_heads|num_kv_heads|num_query_groups"
"""Attributes for grouped-query attention: two key heads for four heads, if the default groups heads."""
IDS = {"bos_token_id": 2, "eos_token_id": 3, "cls_token_id": 2, "sep_token_id": 3, "decoder_start_token_id": 2}
"""Ids of special tokens whose default is outside the tiny vocabulary."""


def tiny_config(family: Family) -> Any:
    """Return a configuration with a few narrow layers, one of each kind in the default configuration."""
    kind = family.model_class.config_class  # of a model that is a part of its type's, it is the part's
    return _tiny(kind, SETTINGS.get(family.model_type, {}))


def _tiny(kind: Any, settings: Mapping[str, Any]) -> Any:
    try:
        default = kind()
    except Exception:  # the defaults of some configurations are invalid
        default = kind(**settings)
    values = default.to_dict()
    changes: dict[str, Any] = {}
    for name, value in values.items():
        if value is None and re.fullmatch(UNSET, name):
            value = POSITIONS
        if isinstance(value, int) and not isinstance(value, bool):
            changed = _number(name, value, values)
            if changed != values[name]:
                changes[name] = changed
    changes.update(_layers(values, changes))
    changes.update(_special_tokens(values))
    parts = {name: _tiny(type(part), settings.get(name, {})).to_dict() for name, part in _parts(default)}
    return kind(**{**changes, **settings, **parts})


def _number(name: str, value: int, values: Mapping[str, Any]) -> int:
    if re.fullmatch(GROUPED, name):
        heads = [one for other, one in values.items() if re.fullmatch(r"num_attention_heads|n_heads?", other)]
        return HEADS if heads and value >= heads[0] else min(value, HEADS // 2)
    if re.fullmatch(r"(src_|tgt_)?vocab_size", name):
        return VOCABULARY
    for pattern, most in RULES:
        if re.fullmatch(pattern, name):
            return min(value, most)
    return value


def _layers(values: Mapping[str, Any], changes: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the number of layers and the per-layer settings for one layer of each kind."""
    for name in ("num_hidden_layers", "n_layer", "n_layers", "num_layers"):
        count = values.get(name)
        if not isinstance(count, int):
            continue
        lists = {other: one for other, one in values.items() if isinstance(one, list) and len(one) == count > 2}
        if lists:
            kept = _one_of_each(list(zip(*(map(str, one) for one in lists.values()), strict=True)))
            yield from ((other, [one[place] for place in kept]) for other, one in lists.items())
            yield name, len(kept)


def _one_of_each(kinds: Sequence[Any]) -> list[int]:
    first = [place for place, kind in enumerate(kinds) if kind not in kinds[:place]][:6]
    return sorted({*first, *range(max(0, 2 - len(first)), 2)} if len(first) > 1 else {0, 1})


def _special_tokens(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, number in IDS.items():
        own = values.get(name)
        if own is not None and not (isinstance(own, int) and 0 <= own < 5):
            yield name, number
    own = values.get("pad_token_id")
    if own is not None and not 0 <= own < 5:
        yield "pad_token_id", 0


def _parts(default: Any) -> Iterator[tuple[str, Any]]:
    """Yield the nested configurations of a configuration."""
    for name in getattr(default, "sub_configs", {}):
        part = getattr(default, name, None)
        if isinstance(part, transformers.PreTrainedConfig):
            yield name, part
