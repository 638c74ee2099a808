#!/usr/bin/env bash
# What one would guess: a hook on hook_pattern that sets a head's weights to 0 and returns them, in place as tutorials of
# transformer_lens do it, knocks out this head in every model that TransformerBridge opens, or a warning says that it
# cannot; and one does if the hook changes a copy. Found in transformer_lens 4.3.0 with transformers 5.23.0: in BERT and
# RoBERTa the hook runs after the model has computed its attention, so the effect is exactly 0 for each of the 8 heads.
# The warning compares what the hook returns with what it was given, which after a change in place is the same tensor,
# and so it does not come. The cache of this run shows the head with weights of 0, as if it had worked. In GPT-2 and
# Llama, the same hook has the effect of setting the head's z to 0, as it should; z works in BERT and RoBERTa too. No
# line in the log says so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 transformers==5.23.0 \
  transformer-lens==4.3.0 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/heads.py" <<'PYTHON'
import logging
import sys
import warnings
from importlib.metadata import version

import tokenizers
import torch
import transformers
from transformer_lens.model_bridge import TransformerBridge
from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM
from transformers import PreTrainedTokenizerFast, RobertaConfig, RobertaForMaskedLM

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] Anna Tom saw because she he had helped .".split()
TEXT = "[CLS] Anna saw Tom because she had helped . [SEP]"
LAYERS, HEADS = 2, 4
SIZE = {"vocab_size": len(WORDS), "initializer_range": 0.3, "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
WIDE = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS} | SIZE
MODELS = {
    "GPT-2": (GPT2LMHeadModel, GPT2Config(n_embd=32, n_layer=LAYERS, n_head=HEADS, n_positions=64, **SIZE)),
    "Llama": (LlamaForCausalLM, LlamaConfig(**WIDE)),
    "BERT": (BertForMaskedLM, BertConfig(**WIDE)),
    "RoBERTa": (RobertaForMaskedLM, RobertaConfig(**WIDE)),
}
words = tokenizers.Tokenizer(
    tokenizers.models.WordLevel({word: place for place, word in enumerate(WORDS)}, unk_token="[UNK]")
)
words.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "bos_token": "[CLS]"}
special |= {"eos_token": "[SEP]", "mask_token": "[MASK]"}
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, **special)
ids = tokenizer(TEXT, return_tensors="pt").input_ids
said = []
handler = logging.Handler()
handler.emit = said.append
logging.getLogger().addHandler(handler)
logging.getLogger("transformers").addHandler(handler)


def in_place(head):
    def hook(pattern, hook):
        pattern[:, head] = 0
        return pattern

    return "pattern", hook


def in_a_copy(head):
    def hook(pattern, hook):
        pattern = pattern.clone()
        pattern[:, head] = 0
        return pattern

    return "pattern", hook


def at_z(head):
    def hook(z, hook):
        z[:, :, head] = 0
        return z

    return "z", hook


def knock_out(bridge, way, layer, head):
    """Logits, what the cache shows of the head, and warnings and lines in the log."""
    place, hook = way(head)
    said.clear()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with bridge.hooks(fwd_hooks=[(f"blocks.{layer}.attn.hook_{place}", hook)]):
            logits, cache = bridge.run_with_cache(ids)
    shown = float(cache[f"blocks.{layer}.attn.hook_pattern"][:, head].abs().max())
    return logits, shown, [str(one.message) for one in warned] + [line.getMessage() for line in said]


print("transformer_lens", version("transformer-lens"), "transformers", transformers.__version__, "torch", torch.__version__)
for name, (kind, configuration) in MODELS.items():
    torch.manual_seed(0)
    folder = f"{sys.argv[1]}/{name}"
    model = kind._from_config(configuration, attn_implementation="eager").eval()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    bridge = TransformerBridge.boot_transformers(folder)
    delegates = name in ("BERT", "RoBERTa")
    with torch.no_grad():
        own = model(ids, output_attentions=True)
        clean, cache = bridge.run_with_cache(ids)
        assert torch.allclose(clean, own.logits, atol=1e-4), "the bridge is another model"
        for layer in range(LAYERS):
            assert torch.allclose(cache[f"blocks.{layer}.attn.hook_pattern"], own.attentions[layer], atol=1e-4)
        rows = {}
        for way in (in_place, in_a_copy, at_z):
            runs = [knock_out(bridge, way, layer, head) for layer in range(LAYERS) for head in range(HEADS)]
            effects = [float((logits - clean).abs().max()) for logits, _, _ in runs]
            shown = max(weight for _, weight, _ in runs)
            messages = sum(len(lines) for _, _, lines in runs)
            rows[way] = effects, messages
            print(f"{name}, {way.__name__}: effects of the heads {', '.join(f'{one:.3f}' for one in effects)};", end=" ")
            print(f"largest weight that the cache shows {shown:.3f}; warnings and lines in the log {messages}")
            if way is not at_z:
                assert shown == 0, "the behaviour has changed"
        effects, messages = rows[in_place]
        assert min(rows[at_z][0]) > 0.1 and rows[at_z][1] == messages == 0, "the behaviour has changed"
        if delegates:
            assert effects == rows[in_a_copy][0] == [0] * LAYERS * HEADS, "the behaviour has changed"
            assert rows[in_a_copy][1] > 0, "the behaviour has changed"
        else:
            expected = torch.tensor(rows[at_z][0])
            assert torch.allclose(torch.tensor(effects), expected, atol=1e-3), "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" "$folder/heads.py" "$folder" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
