#!/usr/bin/env bash
# What one would guess: BertConfig(position_embedding_type="relative_key"), as configurations of published models and
# code for comparing position encodings have it, gives a BERT with relative positions, or is refused like any value that
# a model cannot do. Found in transformers 5.23.0: BERT, RoBERTa, ELECTRA and ALBERT take the option, keep it, write it
# to config.json, and have absolute positions all the same. Seeded alike, "absolute", "relative_key",
# "relative_key_query" and a kind that does not exist give one and the same training, bit for bit, so a comparison finds
# that the kind of positions makes no difference. A text moved on by some places gets other states, as it never does
# with relative positions. "pruned_heads" is dropped alike: the model computes with all heads. Neither a warning nor a
# line in the log says so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 transformers==5.23.0 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/positions.py" <<'PYTHON'
import json
import logging
import pathlib
import sys
import warnings

import torch
import transformers
from transformers import AlbertConfig, AlbertForMaskedLM, BertConfig, BertForMaskedLM, ElectraConfig, ElectraForMaskedLM
from transformers import RobertaConfig, RobertaForMaskedLM

SIZE = {"vocab_size": 64, "hidden_size": 32, "embedding_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
SIZE |= {"intermediate_size": 64, "max_position_embeddings": 64, "initializer_range": 0.1}
KINDS = ("absolute", "relative_key", "relative_key_query", "no such kind")
MODELS = {
    BertForMaskedLM: BertConfig,
    RobertaForMaskedLM: RobertaConfig,
    ElectraForMaskedLM: ElectraConfig,
    AlbertForMaskedLM: AlbertConfig,
}
torch.set_num_threads(1)
ids = torch.arange(3, 15)[None]
places = torch.arange(2, 14)[None]
said = []
handler = logging.Handler(logging.WARNING)
handler.emit = said.append
logging.getLogger("transformers").addHandler(handler)


def trained(kind, configuration):
    torch.manual_seed(0)
    model = kind(configuration)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    for _ in range(5):
        optimizer.zero_grad()
        model(ids, labels=ids).loss.backward()
        optimizer.step()
    return model.eval()


def states(model, **options):
    with torch.no_grad():
        return model(ids, **options).logits


print("transformers", transformers.__version__, "torch", torch.__version__)
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    for kind, settings in MODELS.items():
        models = [trained(kind, settings(**SIZE, position_embedding_type=positions)) for positions in KINDS]
        models.append(trained(kind, settings(**SIZE, pruned_heads={0: [0, 1], 1: [3]})))
        models[1].save_pretrained(sys.argv[1])
        written = json.loads(pathlib.Path(sys.argv[1], "config.json").read_text(encoding="utf-8"))["position_embedding_type"]
        equal = [torch.equal(states(models[0]), states(model)) for model in models]
        shift = float((states(models[1], position_ids=places) - states(models[1], position_ids=places + 20)).abs().max())
        print(f"{kind.__name__}: written to config.json {written!r}; trained model equal to that of {KINDS[0]!r}:", end=" ")
        print(dict(zip([*KINDS, "pruned_heads"], equal)), f"; largest difference for a text moved on by 20 places {shift:.3f}")
        assert all(equal) and written == KINDS[1] and shift > 0.01, "the behaviour has changed"
print("warnings and lines in the log:", len(warned) + len(said))
assert not warned and not said, "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" "$folder/positions.py" "$folder/model" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
