#!/usr/bin/env bash
# What one would guess: a BPE tokenizer without a token for unknown characters leaves such a character out, and every
# other token keeps its own place in the text. Found in tokenizers 0.23.3: behind the character that is left out, the
# tokens of the same word get the places of other characters, so that weights are put on the wrong word without an error.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check tokenizers==0.23.3 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
"$folder/venv/bin/python" - <<'PYTHON'
import tokenizers
from tokenizers import Tokenizer, models, pre_tokenizers

TEXT = "an红a, x!"


def places(unknown):
    vocabulary = {piece: number for number, piece in enumerate(["a", "n", "x", ",", "!", "[U]"])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token=unknown))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    encoding = tokenizer.encode(TEXT)
    return [(token, TEXT[start:end]) for token, (start, end) in zip(encoding.tokens, encoding.offsets)]


with_unknown, without = places("[U]"), places(None)
print("tokenizers", tokenizers.__version__)
print("with a token for unknown characters:", with_unknown)
print("without one:                        ", without)
assert with_unknown == [("a", "a"), ("n", "n"), ("[U]", "红"), ("a", "a"), (",", ","), ("x", "x"), ("!", "!")]
assert without == [("a", "a"), ("n", "n"), ("a", "红"), (",", "红"), ("x", "x"), ("!", "!")], "the behaviour has changed"
PYTHON
