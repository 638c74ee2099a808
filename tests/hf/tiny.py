"""Tiny transformers models with random weights, and a matching tokenizer."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers

transformers: Any = import_module("transformers")
TEXTS = (
    "Anna helped Emma because she was weak.",
    "The old man left the park because he was unbelievably tired.",
    "小红推了小明，因为他很生气。",
)
SIZE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "vocab_size": 120,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 2,
    "eos_token_id": 3,
}
GROUPED = {**SIZE, "num_key_value_heads": 2}
GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 120, "n_positions": 64, "pad_token_id": 0}
GPT2 |= {"bos_token_id": 2, "eos_token_id": 3}
NOT_EDITED = ("diffllama",)
"""Families with supported maps, whose attention cannot be edited."""
SETTINGS: dict[str, dict[str, Any]] = {
    "albert": {**SIZE, "embedding_size": 16},
    "bert": SIZE,
    "camembert": SIZE,
    "distilbert": {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64, "vocab_size": 120},
    "electra": {**SIZE, "embedding_size": 32},
    "ernie": SIZE,
    "modernbert": {**SIZE, "cls_token_id": 2, "sep_token_id": 3},
    "nomic_bert": SIZE,
    "roberta": SIZE,
    "xlm-roberta": SIZE,
    "gemma2": {**GROUPED, "head_dim": 8},
    "gpt2": GPT2,
    "gpt_bigcode": GPT2,
    "gpt_neox": SIZE,
    "llama": GROUPED,
    "mistral": GROUPED,
    "opt": {**SIZE, "ffn_dim": 64, "word_embed_proj_dim": 32},
    "phi": SIZE,
    "qwen2": GROUPED,
    "qwen3": {**GROUPED, "head_dim": 8},
    "bart": {
        "d_model": 32,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_ffn_dim": 64,
        "decoder_ffn_dim": 64,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "vocab_size": 120,
        "max_position_embeddings": 64,
    },
    "bloom": {"hidden_size": 32, "n_layer": 2, "n_head": 4, "vocab_size": 120, "initializer_range": 0.2},
    "deberta-v2": SIZE,
    "diffllama": GROUPED,
    "mpnet": SIZE,
    "t5": {"d_model": 32, "num_layers": 2, "num_heads": 4, "d_ff": 64, "d_kv": 8, "vocab_size": 120},
}
"""Settings of a tiny model of each family."""
ONLY_EAGER = ("bloom", "deberta-v2", "gemma2", "mpnet", "t5", "xlnet")
"""Families with eager attention only."""


VERSION = tuple(map(int, transformers.__version__.split(".")[:2]))


def skip_if_unknown(family: str) -> None:
    """Skip a test if a version of `transformers` before the tested one lacks a family."""
    if VERSION < (5, 16) and family not in transformers.CONFIG_MAPPING:
        pytest.skip(f"transformers {transformers.__version__} does not have {family}")


@cache
def tokenizer() -> Any:
    """Return a fast tokenizer that adds [CLS] and [SEP]."""
    backend = Tokenizer(models.BPE(unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    backend.train_from_iterator(TEXTS, trainers.BpeTrainer(vocab_size=90, special_tokens=special, show_progress=False))
    ends = [("[CLS]", 2), ("[SEP]", 3)]
    backend.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", special_tokens=ends)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )


def tiny(family: str, implementation: str = "sdpa") -> Any:
    """Return a model of a family, with the same weights at each call."""
    skip_if_unknown(family)
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(family, **SETTINGS[family])
    implementation = "eager" if family in ONLY_EAGER else implementation
    return transformers.AutoModel.from_config(config, attn_implementation=implementation).eval()


def tiny_folder(factory: pytest.TempPathFactory, family: str) -> Path:
    """Return a folder "tiny-<family>" with a model of a family and its tokenizer."""
    path = factory.mktemp("models") / f"tiny-{family}"
    tiny(family).save_pretrained(path)
    tokenizer().save_pretrained(path)
    return path


def tiny_language_model(family: str, **changes: Any) -> Any:
    """Return a model of a family with a random output layer over the vocabulary."""
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(family, **{**SETTINGS.get(family, {}), **changes})
    masked = family in ("bert", "distilbert", "modernbert", "mpnet", "roberta")
    automatic = transformers.AutoModelForMaskedLM if masked else transformers.AutoModelForCausalLM
    return automatic.from_config(config, attn_implementation="eager" if family in ONLY_EAGER else "sdpa").eval()


MIXED = {**SIZE, "num_hidden_layers": 4, "num_key_value_heads": 2, "head_dim": 8}
NEXT: dict[str, Any] = {**MIXED, "linear_num_key_heads": 2, "linear_num_value_heads": 2, "linear_key_head_dim": 8}
NEXT |= {"linear_value_head_dim": 8, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
NEXT |= {"shared_expert_intermediate_size": 16, "initializer_range": 0.2}
HYBRIDS = [
    ("qwen3_next", {**NEXT, "layer_types": ["linear_attention", "full_attention"] * 2}),
    ("lfm2", {**MIXED, "layer_types": ["conv", "full_attention"] * 2, "initializer_range": 0.2}),
]
"""Families with the settings of a model with attention only in layers 1 and 3."""


def random_model(family: str, **settings: Any) -> Any:
    """Return a model with weights large enough to distinguish its heads."""
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(family, **settings)
    return transformers.AutoModel.from_config(config).eval()
