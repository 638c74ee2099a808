#!/usr/bin/env bash
# What one would guess: a marker added as AddedToken with lstrip and rstrip takes the spaces beside it, and does so
# again after save_pretrained and from_pretrained, as tokenizer.json stores both flags with the token; if they were
# lost, it would be for every tokenizer. Found in transformers 5.23.0 with tokenizers 0.23.3: it depends on the method
# and on the class. Added as extra_special_tokens to the tokenizer of Qwen 2 and 3, Cohere or RemBERT, the marker no
# longer takes them once it has been saved and loaded: a text gets tokens for the spaces beside a marker, and all later
# positions move. tokenizer.json has the flags, and tokenizer_config.json names the marker among the special tokens,
# without them. GPT-2, RoBERTa and Llama keep them, and so does each class after add_tokens. No warning says so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check transformers==5.23.0 tokenizers==0.23.3 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/marker.py" <<'PYTHON'
import json
import logging
import sys
import warnings
from pathlib import Path

import tokenizers
import transformers
from tokenizers import AddedToken, Tokenizer, pre_tokenizers
from transformers import CohereTokenizer, GPT2Tokenizer, LlamaTokenizer
from transformers import Qwen2Tokenizer, RemBertTokenizer, RobertaTokenizer

TEXT, MARKER, FLAGS = "she met <she> there", "<she>", {"lstrip": True, "rstrip": True, "normalized": False}
BYTES = {letter: number for number, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
NAMES = ["<pad>", "<unk>", "<s>", "</s>", "[CLS]", "[SEP]", "[MASK]", "<mask>"]
PIECES = [(name, 0.0) for name in NAMES] + [(piece, -2.0) for piece in "▁abcdefghijklmnopqrstuvwxyz"]
LETTERS = {piece: number for number, (piece, _) in enumerate(PIECES)}
MADE = {
    Qwen2Tokenizer: lambda: Qwen2Tokenizer(vocab=dict(BYTES), merges=[]),
    CohereTokenizer: lambda: CohereTokenizer(vocab=dict(BYTES), merges=[]),
    RemBertTokenizer: lambda: RemBertTokenizer(vocab=PIECES),
    GPT2Tokenizer: lambda: GPT2Tokenizer(vocab=dict(BYTES), merges=[]),
    RobertaTokenizer: lambda: RobertaTokenizer(vocab=dict(BYTES), merges=[]),
    LlamaTokenizer: lambda: LlamaTokenizer(vocab=dict(LETTERS), merges=[]),
}
LOSE_THEM = {Qwen2Tokenizer, CohereTokenizer, RemBertTokenizer}
print("transformers", transformers.__version__, "tokenizers", tokenizers.__version__)
said = []
handler = logging.Handler()
handler.emit = said.append
logging.getLogger("transformers").addHandler(handler)


def tokens(backend):
    return backend.encode(TEXT, add_special_tokens=False).tokens


with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    for kind, make in MADE.items():
        for way in ("add_tokens", "extra_special_tokens"):
            tokenizer = make()
            if way == "add_tokens":
                tokenizer.add_tokens([AddedToken(MARKER, **FLAGS)])
            else:
                tokenizer.add_special_tokens({"extra_special_tokens": [AddedToken(MARKER, **FLAGS)]})
            path = Path(sys.argv[1]) / f"{kind.__name__}-{way}"
            tokenizer.save_pretrained(path)
            before, after = tokens(tokenizer.backend_tokenizer), tokens(kind.from_pretrained(path).backend_tokenizer)
            stored = json.loads((path / "tokenizer.json").read_text(encoding="utf-8"))["added_tokens"]
            (flags,) = ({name: one[name] for name in FLAGS} for one in stored if one["content"] == MARKER)
            of_file = tokens(Tokenizer.from_file(str(path / "tokenizer.json")))
            print(f"{kind.__name__}, {way}: {before} before saving, {after} after loading")
            loses = kind in LOSE_THEM and way == "extra_special_tokens"
            assert flags == FLAGS and before == of_file and f" {MARKER} " in before, "the behaviour has changed"
            assert (len(after) > len(before)) == (MARKER in after) == loses, "the behaviour has changed"
print("warnings and lines in the log:", len(warned) + len(said))
assert not warned and not said, "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" "$folder/marker.py" "$folder" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
