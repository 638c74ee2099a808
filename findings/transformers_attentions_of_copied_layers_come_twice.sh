#!/usr/bin/env bash
# What one would guess: attentions of a model's output has one map for each layer, in order, whatever the layers are made
# of, so a student made of copies of every second layer of its teacher returns two maps for two layers. Found in
# transformers 5.23.0: maps and states are collected by hooks that the first call that asks for them adds to the layers,
# and a copied layer brings its hook along. If the teacher has returned its maps before, the student adds a second hook,
# and each map comes twice: attentions[1] is the map of layer 0 again, and hidden_states has five entries instead of three.
# A layer that replaces another one after such a call has no hook at all and is missing from both, so attentions[0] is the
# map of layer 1. The last states are right each time, in BERT, GPT-2 and Llama, and no warning or line in the log says so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 transformers==5.23.0 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/student.py" <<'PYTHON'
import copy
import logging
import warnings

import torch
import transformers
from transformers import BertConfig, BertModel, GPT2Config, GPT2Model, LlamaConfig, LlamaModel

SIZE = {"vocab_size": 64, "hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 64, "initializer_range": 0.3}
WITHOUT_CACHE = {**SIZE, "use_cache": False, "bos_token_id": 0, "eos_token_id": 0}
KINDS = (
    (BertModel, BertConfig(**SIZE), lambda model: model.encoder.layer),
    (GPT2Model, GPT2Config(**WITHOUT_CACHE), lambda model: model.h),
    (LlamaModel, LlamaConfig(**WITHOUT_CACHE), lambda model: model.layers),
)
ids = torch.arange(3, 15)[None]
said = []
handler = logging.Handler()
handler.emit = said.append


def made(kind, configuration, layers):
    torch.manual_seed(0)
    configuration = copy.deepcopy(configuration)
    configuration.num_hidden_layers = layers
    return kind._from_config(configuration, attn_implementation="eager").eval()


def student_of(teacher, kind, configuration, layers_of):
    student = made(kind, configuration, layers=2)
    for layer in range(2):
        layers_of(student)[layer] = copy.deepcopy(layers_of(teacher)[2 * layer])
    return student


def asked(model):
    return model(ids, output_attentions=True, output_hidden_states=True)


def places(output, maps):
    return [[torch.equal(one, layer) for layer in maps].index(True) for one in output.attentions]


print("transformers", transformers.__version__, "torch", torch.__version__)
logging.getLogger("transformers").addHandler(handler)
with torch.no_grad(), warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    for kind, configuration, layers_of in KINDS:
        teacher = made(kind, configuration, layers=4)
        expected = asked(student_of(teacher, kind, configuration, layers_of))
        asked(teacher)
        copied = asked(student_of(teacher, kind, configuration, layers_of))
        second = made(kind, configuration, layers=2)
        asked(second)
        fresh = made(kind, configuration, layers=4)  # the teacher's weights again, without hooks
        layers_of(second)[0] = layers_of(fresh)[0]
        layers_of(second)[1].load_state_dict(layers_of(fresh)[2].state_dict())
        replaced = asked(second)
        outputs = {"teacher not asked before": expected, "teacher asked before": copied, "one layer replaced": replaced}
        for name, output in outputs.items():
            print(f"{kind.__name__}, {name}: attentions of the layers", places(output, expected.attentions), end=", ")
            print("entries of hidden_states", len(output.hidden_states), end=", ")
            print("last states right:", torch.equal(output.last_hidden_state, expected.last_hidden_state))
            assert torch.equal(output.last_hidden_state, expected.last_hidden_state), "the behaviour has changed"
        found = [(places(output, expected.attentions), len(output.hidden_states)) for output in outputs.values()]
        assert found == [([0, 1], 3), ([0, 0, 1, 1], 5), ([1], 2)], "the behaviour has changed"
print("warnings and lines in the log:", len(warned) + len(said))
assert not warned and not said, "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" "$folder/student.py" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
