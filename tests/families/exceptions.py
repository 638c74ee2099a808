"""Exceptions to the shrinking rules: settings of single families, and model types that cannot be built."""

from __future__ import annotations

from typing import Any

_SECTIONS = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [1, 1, 2], "partial_rotary_factor": 1.0}
"""Settings of three-dimensional rotary positions, for heads of eight features."""
SETTINGS: dict[str, dict[str, Any]] = {
    "bamba": {"attn_layer_indices": [1]},
    "cosmos3_edge_text": {
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [1, 1, 2]}
    },
    "dbrx": {"attn_config": {"rope_theta": 10000.0, "clip_qkv": 8.0}},
    "esm": {"pad_token_id": 1, "mask_token_id": 4},
    "gemma3n_text": {
        "num_hidden_layers": 4,
        "num_kv_shared_layers": 2,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
        "intermediate_size": [64, 64, 64, 64],
        "activation_sparsity_pattern": [0.95, 0.0, 0.0, 0.0],
    },
    "gemma4_unified_assistant": {
        "text_config": {
            "num_kv_shared_layers": 1,
            "layer_types": ["full_attention", "full_attention"],
            "num_hidden_layers": 2,
        }
    },
    "glm4v_moe_text": {"rope_parameters": _SECTIONS},
    "glm4v_text": {"rope_parameters": _SECTIONS},
    "glm5_next_text": {"index_kpool": 2},
    "glm_image_text": {"rope_parameters": _SECTIONS},
    "glm_ocr_text": {"rope_parameters": _SECTIONS},
    "granitemoehybrid": {"layer_types": ["linear_attention", "full_attention"]},
    "hunyuan_vl_text": {"rope_parameters": _SECTIONS},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1},
    "kyutai_speech_to_text": {"audio_pad_token_id": 100},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"], "num_dense_layers": 1},
    "mamba2": {"num_heads": 8},
    "mistral4": {"head_dim": 16},
    "qwen2_5_vl_text": {"rope_parameters": _SECTIONS},
    "qwen2_vl_text": {"rope_parameters": _SECTIONS},
    "qwen4_exp_text": {
        "indexer_n_heads": 2,
        "indexer_kv_heads": 1,
        "indexer_head_dim": 8,
        "indexer_budget": 4,
        "indexer_compress_ratio": 2,
    },
    "recurrent_gemma": {"num_hidden_layers": 3},
    "reformer": {"axial_pos_embds_dim": [8, 24], "axial_pos_shape": [8, 8], "attn_layers": ["local", "lsh"]},
    "xlstm": {"hidden_size": 128, "embedding_dim": 128},
    "xmod": {"default_language": "en_XX"},
    "zamba": {
        "num_hidden_layers": 5,
        "attn_layer_period": 3,
        "attn_layer_offset": 1,
        "layers_block_type": ["linear_attention", "hybrid", "linear_attention", "linear_attention", "hybrid"],
        "attention_hidden_size": 64,
        "attention_head_dim": 16,
    },
    "zamba2": {
        "attention_hidden_size": 64,
        "attention_head_dim": 16,
        "layers_block_type": ["linear_attention", "hybrid", "linear_attention", "hybrid"],
        "num_hidden_layers": 4,
        "hybrid_layer_ids": [1, 3],
    },
}
"""Attributes by model type, for values that must be consistent or have no usable default."""
UNBUILDABLE = {
    "gemma4_assistant": "its configuration demands that every layer shares keys and values, and then forbids it"
}
"""Model types that cannot be built, with the reason; the script fails if one of them can be built."""
