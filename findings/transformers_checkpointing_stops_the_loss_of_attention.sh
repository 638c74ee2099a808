#!/usr/bin/env bash
# What one would guess: gradient checkpointing of either kind saves memory and changes no gradient, or raises an error
# if it cannot; so a loss on the returned maps, which trains heads to attend from a pronoun to its antecedent, works
# with it.
# Found in transformers 5.23.0 with torch 2.13.0: with {"use_reentrant": True}, the default of transformers 4, the maps
# come with the right numbers but outside the graph, for the layer runs without gradients and only its output is joined
# to the graph again. The loss of the task trains the model as before, so nothing is raised, and the loss on the maps
# adds nothing. After 60 steps that train both, the weight is 1.0 in BERT and GPT-2 and 0.9 in Llama without
# checkpointing and with use_reentrant=False, and 0.1, as at the start, with True. No warning or line in the log says
# so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 transformers==5.23.0 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/losses.py" <<'PYTHON'
import logging
import warnings

import torch
import transformers
from transformers import BertConfig, BertModel, GPT2Config, GPT2Model, LlamaConfig, LlamaModel

SIZE = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
IDS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
PRONOUN, ANTECEDENT, STEPS = 9, 2, 60
FAMILIES = {"BERT": (BertModel, BertConfig), "GPT-2": (GPT2Model, GPT2Config), "Llama": (LlamaModel, LlamaConfig)}
KINDS = {"no checkpointing": None, "use_reentrant=False": False, "use_reentrant=True": True}
torch.manual_seed(0)
ids, answers = torch.randint(3, 64, (16, 12)), torch.randint(0, 2, (16,))
lines, starts, weights, tasks, joined = [], {}, {}, {}, {}


class Keep(logging.Handler):
    def emit(self, record):
        lines.append(record.getMessage())


def train(family, reentrant):
    torch.manual_seed(0)
    kind, config = family
    model = kind(config(**SIZE, **IDS, attn_implementation="eager"))
    classify = torch.nn.Linear(32, 2)
    for part in model.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    model.train()
    if reentrant is not None:
        model.activation_checkpointing_enable({"use_reentrant": reentrant})
    optimizer = torch.optim.Adam([*model.parameters(), *classify.parameters()], lr=0.003)
    seen = []
    for _ in range(STEPS):
        output = model(ids, output_attentions=True, use_cache=False)
        weight = torch.stack(output.attentions)[..., PRONOUN, ANTECEDENT].mean((0, 2))
        seen.append(float(weight.detach().mean()))
        task = torch.nn.functional.cross_entropy(classify(output.last_hidden_state[:, PRONOUN]), answers)
        loss = task - weight.log().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return seen[0], seen[-1], float(task.detach()), weight.requires_grad


transformers.logging.set_verbosity_warning()
transformers.logging.add_handler(Keep())
print("transformers", transformers.__version__, "torch", torch.__version__)
print(f"weight from the pronoun to its antecedent before and after {STEPS} steps that train it and a task; loss of the task:")
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    for name, family in FAMILIES.items():
        for kind, reentrant in KINDS.items():
            case = name, kind
            starts[case], weights[case], tasks[case], joined[case] = train(family, reentrant)
            print(f"  {name}, {kind}: {starts[case]:.3f} -> {weights[case]:.3f}, {tasks[case]:.4f}, in the graph: {joined[case]}")
print("warnings:", [str(warning.message) for warning in warned], "lines in the log:", lines)
for name in FAMILIES:
    without, new, old = ((name, kind) for kind in KINDS)
    assert abs(starts[without] - starts[old]) < 1e-6 and starts[old] < 0.2, f"the behaviour has changed: {name}"
    assert abs(weights[without] - weights[new]) < 0.02 and weights[new] > 0.8, f"the behaviour has changed: {name}"
    assert weights[old] < 0.2 and not joined[old] and joined[new], f"the behaviour has changed: {name}"
    assert max(tasks[without], tasks[new], tasks[old]) < 0.05, f"the behaviour has changed: {name}"
assert not warned and not lines, "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" "$folder/losses.py" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
