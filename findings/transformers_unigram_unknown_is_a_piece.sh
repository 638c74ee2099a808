#!/usr/bin/env bash
# What one would guess: a tokenizer whose unknown token is "<unk>" turns a character that its vocabulary lacks into
# "<unk>", so counting "<unk>" tells how much of a text a model cannot read. Found in transformers 5.23.0: some classes
# of unigram tokenizers fix the index of the unknown piece and do not look where "<unk>" stands in the vocabulary that
# they are given. With the order that SentencePiece writes by default (<unk>, <s>, </s>, pieces), XLM-RoBERTa's encodes
# such a character as the most frequent piece, and T5's as the end of the sentence, while unk_token_id is 0. No warning.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check transformers==5.23.0 tokenizers==0.23.3 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/unknown.py" <<'PYTHON'
import json

import tokenizers
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

TEXTS = ["Anna helped Emma because she was weak.", "The cup fell off the table because it was wet."] * 20
transformers.logging.set_verbosity_error()
trained = Tokenizer(models.Unigram())
trained.pre_tokenizer = pre_tokenizers.Metaspace()
special = ["<unk>", "<s>", "</s>"]
trained.train_from_iterator(TEXTS, trainers.UnigramTrainer(vocab_size=60, special_tokens=special, unk_token="<unk>"))
vocabulary = [tuple(entry) for entry in json.loads(trained.to_str())["model"]["vocab"]]
vocabulary += [("<pad>", 0.0), ("<mask>", 0.0), ("<cls>", 0.0), ("<sep>", 0.0)]
print("transformers", transformers.__version__, "tokenizers", tokenizers.__version__)
print("vocabulary begins with", [piece for piece, _ in vocabulary[:5]])
assert "红" not in dict(vocabulary)
became = {}
for name in ("XLNetTokenizer", "XLMRobertaTokenizer", "T5Tokenizer"):
    tokenizer = getattr(transformers, name)(vocab=vocabulary)
    assert tokenizer.unk_token == "<unk>" and tokenizer.unk_token_id == 0
    pieces = tokenizer.convert_ids_to_tokens(tokenizer("wet 红", add_special_tokens=False)["input_ids"])
    became[name] = pieces[-1]
    print(f"{name}: unknown token {tokenizer.unk_token}, id {tokenizer.unk_token_id}; the unknown character became {pieces[-1]}")
expected = {"XLNetTokenizer": "<unk>", "XLMRobertaTokenizer": vocabulary[3][0], "T5Tokenizer": "</s>"}
assert became == expected, "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" "$folder/unknown.py" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
