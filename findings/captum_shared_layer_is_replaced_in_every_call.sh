#!/usr/bin/env bash
# What one would guess: if a layer runs several times, as the one layer of ALBERT does, captum refuses it or scores its
# last call, whose output is what LayerActivation returns. So ALBERT with one shared layer, and the same ALBERT with a
# copy of the layer for each call, which gives the same outputs, get the same scores for the last call. Found in captum
# 0.9.0: gradient times activation does score the last call, but integrated gradients and ablation write what they made
# of the last call's output into every call. They explain another model: on the way from the baseline to the text, the
# output ends at -0.248 instead of the text's -0.232, and ablation gives the third token -0.146 instead of 0.239. No
# warning says so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 transformers==5.23.0 captum==0.9.0 \
  2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/calls.py" <<'PYTHON'
import captum
import torch
import transformers
from captum.attr import LayerFeatureAblation, LayerGradientXActivation, LayerIntegratedGradients
from transformers import AlbertConfig, AlbertModel

LAYERS, TOKENS, WIDTH, PRONOUN = 4, 8, 16, 4
SIZE = {"vocab_size": 32, "embedding_size": WIDTH, "hidden_size": WIDTH, "num_attention_heads": 2, "intermediate_size": 32}
transformers.logging.set_verbosity_error()
torch.manual_seed(0)
shared = AlbertModel(AlbertConfig(**SIZE, num_hidden_layers=LAYERS, num_hidden_groups=1, initializer_range=0.3)).eval()
apart = AlbertModel(AlbertConfig(**SIZE, num_hidden_layers=LAYERS, num_hidden_groups=LAYERS)).eval()
apart.load_state_dict(shared.state_dict(), strict=False)
for group in apart.encoder.albert_layer_groups:
    group.load_state_dict(shared.encoder.albert_layer_groups[0].state_dict())
ids = torch.arange(3, 3 + TOKENS)[None]
by_token = torch.arange(TOKENS)[None, :, None].expand(1, TOKENS, WIDTH)
answer, end, scores = {}, {}, {}


def explain(name, model):
    outputs = []

    def read(texts):
        outputs.append(model(texts).last_hidden_state[:, PRONOUN, 0])
        return outputs[-1]

    answer[name] = float(read(ids).detach())
    layer = model.encoder.albert_layer_groups[-1].albert_layers[0].attention.value
    path = LayerIntegratedGradients(read, layer).attribute(ids, baselines=torch.ones_like(ids), n_steps=50)
    end[name] = float(outputs[-1][-1].detach())
    product = LayerGradientXActivation(read, layer).attribute(ids)
    ablation = LayerFeatureAblation(read, layer).attribute(ids, layer_mask=by_token)[0, :, 0]
    scores[name] = {"integrated gradients": path.sum(-1)[0], "ablation": ablation, "gradient x activation": product.sum(-1)[0]}
    print(f"{name}: output {answer[name]:.3f}, at the end of the path of integrated gradients {end[name]:.3f}")
    for method, score in scores[name].items():
        print(f"  {method}, scores of the tokens:", [round(value, 3) for value in score.tolist()])


print("captum", captum.__version__, "transformers", transformers.__version__, "torch", torch.__version__)
explain("four copies of the layer", apart)
explain("one shared layer", shared)
first, second = scores.values()
distance = {method: float((first[method] - second[method]).detach().abs().max()) for method in first}
copies, one = answer
print("largest difference of the scores:", distance)
assert abs(answer[copies] - answer[one]) < 1e-5 and abs(end[copies] - answer[copies]) < 1e-3, "the behaviour has changed"
assert abs(end[one] - answer[one]) > 0.01, "the behaviour has changed"
assert distance["gradient x activation"] < 1e-5, "the behaviour has changed"
assert distance["ablation"] > 0.1 and distance["integrated gradients"] > 0.1, "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" "$folder/calls.py" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
