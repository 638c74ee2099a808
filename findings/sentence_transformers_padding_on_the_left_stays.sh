#!/usr/bin/env bash
# What one would guess: encode(..., output_value="token_embeddings") gives a vector for each token of a sentence and none
# for padding, since it cuts padding off; so a pronoun's vector stands at the pronoun's place among the tokens, whatever
# other sentences are in the batch. Found in sentence-transformers 6.2.0: padding is cut off on the right only. If the
# tokenizer pads on the left, as those of many embedding models made from decoders do, a sentence that is shorter than
# the longest of its batch begins with the vectors of padding. Of 20 sentences of five lengths, all have the pronoun's
# vector at its place if they come one by one, and the 4 longest if they come in one batch; for the others, a vector of
# padding or of another word is read. The embeddings of whole sentences are right in both cases, so nothing shows it,
# and no warning or line in the log says so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 transformers==5.23.0 \
  sentence-transformers==6.2.0 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/padding.py" <<'PYTHON'
import logging
import sys
import warnings

import sentence_transformers
import tokenizers
import torch
import transformers
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from transformers import LlamaConfig, LlamaModel, PreTrainedTokenizerFast

NAMES = "Anna Emma Tom Paul".split()
ENDS = ["", "today", "because of that", "after the long meeting", "when nobody was there any more"]
SENTENCES = [f"{name} said she left {end}".strip() for name in NAMES for end in ENDS]
WORDS = ["[PAD]", "[UNK]", *sorted({word for sentence in SENTENCES for word in sentence.split()})]
SHE = 2  # place of "she" in each sentence
SIZE = {"vocab_size": len(WORDS), "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "pad_token_id": 0}
words = tokenizers.Tokenizer(
    tokenizers.models.WordLevel({word: place for place, word in enumerate(WORDS)}, unk_token="[UNK]")
)
words.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
torch.manual_seed(0)
decoder = LlamaModel(LlamaConfig(num_attention_heads=4, initializer_range=0.3, **SIZE)).eval()
with torch.no_grad():
    tokens = [torch.tensor([[WORDS.index(word) for word in sentence.split()]]) for sentence in SENTENCES]
    right = [decoder(ids).last_hidden_state[0] for ids in tokens]
said = []
handler = logging.Handler()
handler.setLevel(logging.WARNING)
handler.emit = said.append


def equal(first, second):
    return torch.allclose(first, second, atol=1e-3)


def read(model, size):
    """How many sentences have one vector for each token, the pronoun's at its place, and the right last vector."""
    found = model.encode(SENTENCES, output_value="token_embeddings", batch_size=size, show_progress_bar=False)
    rows = list(zip(found, right, strict=True))
    return (
        sum(len(one) == len(true) for one, true in rows),
        sum(equal(one[SHE], true[SHE]) for one, true in rows),
        sum(equal(one[-len(true) :], true) for one, true in rows),
    )


print("sentence-transformers", sentence_transformers.__version__, "transformers", transformers.__version__)
results = {}
for side in ("right", "left"):
    folder = f"{sys.argv[1]}/{side}"
    decoder.save_pretrained(folder)
    PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]", padding_side=side
    ).save_pretrained(folder)
    for name in (None, "transformers", "sentence_transformers"):
        logging.getLogger(name).addHandler(handler)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        model = SentenceTransformer(modules=[Transformer(folder), Pooling(32, "lasttoken")], device="cpu")
        assert model.tokenizer.padding_side == side
        for size in (1, 20):
            results[side, size] = read(model, size)
            whole = torch.tensor(model.encode(SENTENCES, batch_size=size, show_progress_bar=False))
            assert equal(whole, torch.stack([one[-1] for one in right])), "the behaviour has changed"
            print(f"padding on the {side}, {size} in a batch, of 20 sentences:", end=" ")
            print("{} have a vector for each token, {} the pronoun's at its place,".format(*results[side, size]), end=" ")
            print(results[side, size][2], "end with the right vectors; all sentence embeddings are right")
    print("warnings and lines in the log:", len(warned) + len(said))
    assert not warned and not said, "the behaviour has changed"
assert results["right", 1] == results["right", 20] == results["left", 1] == (20, 20, 20), "the behaviour has changed"
assert results["left", 20] == (4, 4, 20), "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" "$folder/padding.py" "$folder" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
