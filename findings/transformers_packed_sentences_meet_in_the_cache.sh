#!/usr/bin/env bash
# What one would guess: use_cache decides whether keys and values are kept for a later call, and gradient checkpointing
# saves memory; neither changes a number. Found in transformers 5.23.0: if several sentences share a row and positions
# start from 0 in each, as DataCollatorWithFlattening writes them, a decoder in eager mode or with sdpa keeps them apart
# only with use_cache=False. With the default, True, every sentence attends to those before it, and the loss is another
# one. Gradient checkpointing turns the cache off, so it changes the loss; the log names the cache alone. The class
# Trainer turns it off as well, so a model measured in a loop of one's own differs from the one that was trained.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 transformers==5.23.0 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/packed.py" <<'PYTHON'
import torch
import transformers
from transformers import DataCollatorWithFlattening, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

SIZE = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
FIRST, SECOND = list(range(3, 11)), list(range(20, 32))
packed = DataCollatorWithFlattening(return_tensors="pt")([{"input_ids": FIRST}, {"input_ids": SECOND}])
transformers.logging.set_verbosity_error()
print("transformers", transformers.__version__, "torch", torch.__version__)
print("positions:", packed["position_ids"][0].tolist())
families = {
    "Llama": (LlamaForCausalLM, LlamaConfig(**SIZE, intermediate_size=64, initializer_range=0.3)),
    "GPT-2": (GPT2LMHeadModel, GPT2Config(**SIZE, initializer_range=0.3, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)),
}
for name, (kind, configuration) in families.items():
    torch.manual_seed(0)
    model = kind._from_config(configuration, attn_implementation="eager").eval()
    apart, across, loss = {}, {}, {}
    with torch.no_grad():
        alone = model(torch.tensor([SECOND])).logits[0]
        for setting, options in {"default": {}, "True": {"use_cache": True}, "False": {"use_cache": False}}.items():
            output = model(**packed, output_attentions=True, **options)
            apart[setting] = float((output.logits[0, len(FIRST) :] - alone).abs().max())
            across[setting] = float(torch.stack(output.attentions)[..., len(FIRST) :, : len(FIRST)].sum(-1).mean())
            loss[setting] = float(output.loss)
            print(f"{name}, use_cache {setting}: largest difference of the second sentence from alone {apart[setting]:.6f},")
            print(f"  mean weight of its rows on the first sentence {across[setting]:.3f}, loss {loss[setting]:.4f}")
    model.train()
    plain = model(**packed).loss.item()
    model.activation_checkpointing_enable()
    checkpointed = model(**packed).loss.item()
    print(f"{name}, in training: loss {plain:.4f}, with gradient checkpointing {checkpointed:.4f}")
    assert apart["False"] < 1e-4 and across["False"] == 0, "the behaviour has changed"
    assert apart["default"] == apart["True"] > 0.1 and across["True"] > 0.05, "the behaviour has changed"
    assert abs(plain - loss["True"]) < 1e-4 and abs(checkpointed - loss["False"]) < 1e-4, "the behaviour has changed"
    assert abs(plain - checkpointed) > 0.01, "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" "$folder/packed.py" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
