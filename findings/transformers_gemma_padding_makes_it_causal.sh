#!/usr/bin/env bash
# What one would guess: use_bidirectional_attention=True in the configuration of a Gemma model does what its
# documentation says, "the model will attend to all text tokens instead of using a causal mask", in every batch, as it
# does in Gemma 3. Found in transformers 5.23.0 with torch 2.13.0: in Gemma, it depends on the other texts of the batch,
# as the layers read the setting and the mask does not. With sdpa, the default, a batch without padding gets no mask and
# is bidirectional. Once one text is padded, on either side, the mask is made, and all texts of the batch, the longest
# too, are read by a causal model, to the last bit. In eager, the model is always causal, and so is Gemma 2, which has
# no sdpa. A model trained on texts of one length answers them all, and by chance once a longer text joins the batch.
# Neither a warning nor a line in the log says so. is_causal=False in the configuration holds in all of these cases.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 transformers==5.23.0 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/padding.py" <<'PYTHON'
import logging
import warnings

import torch
import transformers
from transformers import Gemma2Config, Gemma2Model, Gemma3TextConfig, Gemma3TextModel, GemmaConfig, GemmaModel

WORDS, TOKENS, LONGER = 8, 8, 12
SIZE = {"vocab_size": 32, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4}
SIZE |= {"head_dim": 8, "intermediate_size": 64, "pad_token_id": 0, "sliding_window": 64}
KINDS = {
    "Gemma": (GemmaModel, GemmaConfig),
    "Gemma 2": (Gemma2Model, Gemma2Config),
    "Gemma 3": (Gemma3TextModel, Gemma3TextConfig),
}
FLAG = {"use_bidirectional_attention": True}
print("transformers", transformers.__version__, "torch", torch.__version__)
said = []
handler = logging.Handler()
handler.emit = said.append
logging.getLogger("transformers").addHandler(handler)


def build(kind, attention, **settings):
    model, configuration = KINDS[kind]
    torch.manual_seed(0)
    size = SIZE | {"initializer_range": 0.3}
    return model._from_config(configuration(**size, **settings), attn_implementation=attention).eval()


def read(model, texts, batch, whole=False):
    """States of the texts, alone or in one batch with a longer text; or of the whole batch."""
    if batch in ("no mask", "mask of ones"):
        return model(texts, **({} if batch == "no mask" else {"attention_mask": torch.ones_like(texts)}))[0]
    empty = torch.zeros(len(texts), LONGER - TOKENS, dtype=torch.long)
    padded = torch.cat((texts, empty) if batch == "padded right" else (empty, texts), 1)
    ids = torch.cat((padded, torch.arange(1, LONGER + 1)[None]))
    mask = (ids != 0).long()
    states = model(ids, attention_mask=mask, position_ids=(mask.cumsum(1) - 1).clamp(min=0))[0]
    if whole:
        return states
    return states[:-1, :TOKENS] if batch == "padded right" else states[:-1, -TOKENS:]


def moved(model, batch):
    """Largest change of earlier states if the last token changes."""
    text = torch.arange(3, 3 + TOKENS)[None]
    other = text.clone()
    other[0, -1] = 30
    return float((read(model, text, batch) - read(model, other, batch))[:, :-1].abs().max())


BATCHES = ("no mask", "mask of ones", "padded right", "padded left")
CASES = [("Gemma", "sdpa"), ("Gemma", "eager"), ("Gemma 2", "eager"), ("Gemma 3", "sdpa"), ("Gemma 3", "eager")]
EXPECTED = {
    ("Gemma", "sdpa"): [True, True, False, False],
    ("Gemma", "eager"): [False] * 4,
    ("Gemma 2", "eager"): [False] * 4,
}
with torch.no_grad(), warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    for kind, attention in CASES:
        for settings in ({}, FLAG, {"is_causal": False}):
            model = build(kind, attention, **settings)
            sees = [moved(model, batch) > 0.1 for batch in BATCHES]
            written = ", ".join(f"{batch}: {'yes' if one else 'no'}" for batch, one in zip(BATCHES, sees, strict=True))
            print(f"{kind}, {attention}, {settings or 'plain'}: do states depend on later tokens? {written}")
            should = EXPECTED.get((kind, attention), [True] * 4) if settings == FLAG else [bool(settings)] * 4
            assert sees == should, "the behaviour has changed"
    text = torch.arange(3, 3 + TOKENS)[None]
    flagged, plain = build("Gemma", "sdpa", **FLAG), build("Gemma", "sdpa")
    for batch in BATCHES:
        equal = torch.equal(read(flagged, text, batch, whole=True), read(plain, text, batch, whole=True))
        print(f"Gemma, sdpa, {batch}: states of the whole batch equal those of the causal model: {equal}")
        assert equal == batch.startswith("padded"), "the behaviour has changed"
    print("warnings and lines in the log:", len(warned) + len(said))
    assert not warned and not said, "the behaviour has changed"

texts = torch.randint(3, 3 + WORDS, (256, TOKENS), generator=torch.Generator().manual_seed(1))
answers = texts[:, -1] - 3  # the first state must tell the last token
torch.manual_seed(0)
model = GemmaModel(GemmaConfig(**SIZE, **FLAG))
print("Gemma trained without padding, with", model.config._attn_implementation)
optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
for _ in range(200):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(texts)[0][:, 0, :WORDS], answers).backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    right = {batch: float((read(model, texts, batch)[:, 0, :WORDS].argmax(-1) == answers).float().mean()) for batch in BATCHES}
    model.set_attn_implementation("eager")
    right["eager"] = float((read(model, texts, "no mask")[:, 0, :WORDS].argmax(-1) == answers).float().mean())
print("right answers:", ", ".join(f"{name} {value:.3f}" for name, value in right.items()), end=f"; by chance {1 / WORDS}\n")
assert min(right["no mask"], right["mask of ones"]) > 0.95, "the behaviour has changed"
assert max(right["padded right"], right["padded left"], right["eager"]) < 0.3, "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" "$folder/padding.py" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
