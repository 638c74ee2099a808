#!/usr/bin/env bash
# What one would guess: hidden_states of a model's output are the states that it computed with, so a state that a forward
# hook replaces, as in activation patching, is found there. Found in transformers 5.23.0: the library collects the states
# with hooks of its own, which the first call that asks for them adds behind the hooks that are there, and which stay. In
# a fresh model the output shows the patch exactly. After one call that asked for states, such as the clean run with which
# patching begins, the same hook and call show the state without the patch (4 to 17 away in BERT, GPT-2 and Llama), while
# all later layers compute with it, as the equal last states show. Read from the output, a patch then has no effect in its
# own layer and its full effect in the next one. No warning says so. A hook with prepend=True is seen in both cases.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 transformers==5.23.0 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/patch.py" <<'PYTHON'
import logging
import warnings

import torch
import transformers
from transformers import BertConfig, BertModel, GPT2Config, GPT2Model, LlamaConfig, LlamaModel

SIZE = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 64}
LAYER, TOKEN = 1, 5
KINDS = (
    (BertModel, BertConfig(**SIZE, initializer_range=0.3), lambda model: model.encoder.layer),
    (GPT2Model, GPT2Config(**SIZE, initializer_range=0.3, bos_token_id=0, eos_token_id=0), lambda model: model.h),
    (LlamaModel, LlamaConfig(**SIZE, initializer_range=0.3), lambda model: model.layers),
)
ids = torch.arange(3, 15)[None]
donor = torch.full((32,), 2.0)
received, said = [], []
handler = logging.Handler()
handler.emit = said.append


def patch(layer, arguments, output):
    states = (output[0] if isinstance(output, tuple) else output).clone()
    states[:, TOKEN] = donor
    return (states, *output[1:]) if isinstance(output, tuple) else states


def patched_run(kind, configuration, layers_of, clean_run, prepend=False):
    torch.manual_seed(0)
    model = kind(configuration).eval()
    layers = layers_of(model)
    if clean_run:
        model(ids, output_hidden_states=True)
    layers[LAYER].register_forward_hook(patch, prepend=prepend)
    layers[LAYER + 1].register_forward_pre_hook(lambda layer, arguments: received.append(arguments[0][0, TOKEN]))
    output = model(ids, output_hidden_states=True)
    shown = float((output.hidden_states[LAYER + 1][0, TOKEN] - donor).abs().max())
    return shown, output.last_hidden_state


print("transformers", transformers.__version__, "torch", torch.__version__)
logging.getLogger("transformers").addHandler(handler)
with torch.no_grad(), warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    for kind in KINDS:
        fresh, states = patched_run(*kind, clean_run=False)
        after, states_after = patched_run(*kind, clean_run=True)
        prepended, _ = patched_run(*kind, clean_run=True, prepend=True)
        print(f"{kind[0].__name__}: largest difference of the state in the output from the patch: fresh model {fresh},", end=" ")
        print(f"after a clean run {after:.3f}, the same with prepend=True {prepended};", end=" ")
        print("equal last states:", torch.equal(states, states_after))
        assert fresh == 0 and after > 0.1 and prepended == 0 and torch.equal(states, states_after), "the behaviour has changed"
print("the next layer received the patch in all runs:", all(torch.equal(state, donor) for state in received))
print("warnings and lines in the log:", len(warned) + len(said))
assert len(received) == 9 and all(torch.equal(state, donor) for state in received), "the behaviour has changed"
assert not warned and not said, "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" "$folder/patch.py" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
