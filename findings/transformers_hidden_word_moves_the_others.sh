#!/usr/bin/env bash
# What one would guess: a word is hidden from a model by a 0 in the attention mask, or replaced by the padding token, and
# the other words stay in their places, so what changes is the effect of that word. Found in transformers 5.23.0: OPT,
# BLOOM and Falcon (with ALiBi) count places along the mask, and RoBERTa, XLM-RoBERTa and MPNet along the tokens that are
# not padding, so all words behind the hidden one move forward by one, as if it had been cut out of the text (a
# difference of 0.000002, but 3.2 in OPT from the same with position_ids given). In GPT-2, MPT (with ALiBi too), Llama,
# BERT and ELECTRA nothing moves. So one experiment asks two questions, depending on the model, and no warning says so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 transformers==5.23.0 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/hidden.py" <<'PYTHON'
import torch
import transformers
from transformers import BertConfig, BertModel, BloomConfig, BloomModel, ElectraConfig, ElectraModel, FalconConfig, FalconModel
from transformers import GPT2Config, GPT2Model, LlamaConfig, LlamaModel, MPNetConfig, MPNetModel, MptConfig, MptModel
from transformers import OPTConfig, OPTModel, RobertaConfig, RobertaModel, XLMRobertaConfig, XLMRobertaModel

TOKENS, HIDDEN, PADDING = 12, 5, 1
SIZE = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
WIDE = {**SIZE, "intermediate_size": 64}
DECODERS = {
    OPTModel: OPTConfig(**SIZE, ffn_dim=64, word_embed_proj_dim=32, init_std=0.3),
    BloomModel: BloomConfig(**SIZE, initializer_range=0.3),
    FalconModel: FalconConfig(**SIZE, alibi=True, initializer_range=0.3),
    GPT2Model: GPT2Config(**SIZE, bos_token_id=0, eos_token_id=0, initializer_range=0.3),
    MptModel: MptConfig(**SIZE, max_seq_len=32, initializer_range=0.3),
    LlamaModel: LlamaConfig(**WIDE, initializer_range=0.3),
}
ENCODERS = {
    RobertaModel: RobertaConfig,
    XLMRobertaModel: XLMRobertaConfig,
    MPNetModel: MPNetConfig,
    BertModel: BertConfig,
    ElectraModel: ElectraConfig,
}
ids = torch.arange(3, 3 + TOKENS)[None]
others = [place for place in range(TOKENS) if place != HIDDEN]
mask = torch.ones_like(ids)
mask[0, HIDDEN] = 0
edges = torch.ones(1, 1, TOKENS, TOKENS).tril()
edges[..., HIDDEN] = 0
edges = (1 - edges) * torch.finfo(edges.dtype).min
print("transformers", transformers.__version__, "torch", torch.__version__)
moved = []
with torch.no_grad():
    for kind, configuration in DECODERS.items():
        torch.manual_seed(0)
        model = kind._from_config(configuration, attn_implementation="eager").eval()
        states = model(ids, attention_mask=mask)[0][:, others]
        apart = float((states - model(ids[:, others])[0]).abs().max())
        print(f"{kind.__name__}, mask 0 for a token: largest difference of the others from the text without this token {apart:.6f}")
        if apart < 1e-4:
            moved.append(kind)
        else:
            cut = float((states - model(ids, attention_mask=edges)[0][:, others]).abs().max())
            print("  from the text whose edges to this token are cut", cut)
            assert apart > 0.1 and cut < 1e-5, "the behaviour has changed"
        if kind is OPTModel:
            staying = model(ids, attention_mask=mask, position_ids=torch.arange(TOKENS)[None])[0][:, others]
            shift = float((states - staying).abs().max())
            print(f"  from the same with position_ids given {shift:.3f}")
            assert shift > 0.1, "the behaviour has changed"
    changed = {}
    for kind, configuration in ENCODERS.items():
        torch.manual_seed(0)
        model = kind(configuration(**WIDE, pad_token_id=PADDING, initializer_range=0.3)).eval()
        padded = ids.clone()
        padded[0, HIDDEN] = PADDING
        difference = (model.embeddings(padded) - model.embeddings(ids)).abs().amax(-1)[0]
        changed[kind] = (difference > 1e-5).nonzero().flatten().tolist()
        print(f"{kind.__name__}, token {HIDDEN} of {TOKENS} replaced by the padding token: embeddings changed at", changed[kind])
assert moved == [OPTModel, BloomModel, FalconModel], "the behaviour has changed"
behind = list(range(HIDDEN, TOKENS))
for kind in ENCODERS:
    expected = [HIDDEN] if kind in (BertModel, ElectraModel) else behind
    assert changed[kind] == expected, "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" "$folder/hidden.py" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
