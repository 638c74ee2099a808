#!/usr/bin/env bash
# What one would guess: whole word masking hides words. In Chinese, where BERT's tokenizer makes each character a word
# of its own (word_ids says so), it hides single characters, about as many as mlm_probability asks for. Found in
# transformers 5.23.0: the collator joins all tokens that touch each other in the text, so a Chinese sentence is one
# word, and is hidden from beginning to end or not at all. In English, a comma belongs to the word before it. The share
# of hidden tokens over many texts stays near mlm_probability, and no warning says so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 transformers==5.23.0 numpy==2.4.6 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/words.py" <<'PYTHON'
import transformers
from transformers import BertTokenizer, DataCollatorForLanguageModeling

CHINESE, ENGLISH = "小红感谢小明，因为她帮助了他。", "anna thanked emma, because she helped."
ENGLISH_PIECES = ["anna", "thank", "##ed", "emma", ",", "because", "she", "help", "."]
COPIES, SHARE = 400, 0.15
transformers.logging.set_verbosity_error()
pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted(set(CHINESE)), *ENGLISH_PIECES]
tokenizer = BertTokenizer(vocab={piece: number for number, piece in enumerate(pieces)})
print("transformers", transformers.__version__)


def hidden(text):
    collator = DataCollatorForLanguageModeling(
        tokenizer, mlm_probability=SHARE, whole_word_mask=True, mask_replace_prob=1.0, random_replace_prob=0.0, seed=1
    )
    encoded = tokenizer(text, return_offsets_mapping=True, return_special_tokens_mask=True)
    words = [word for word in encoded.word_ids() if word is not None]
    assert tokenizer.unk_token_id not in encoded["input_ids"]
    labels = collator([dict(encoded) for _ in range(COPIES)])["labels"][:, 1:-1]
    print(f"{text} - tokens {len(words)}, words according to word_ids {len(set(words))}")
    return labels != -100


chinese, english = hidden(CHINESE), hidden(ENGLISH)
counts = sorted({int(count) for count in chinese.sum(1)})
print("Chinese: numbers of hidden tokens that occur:", counts, "- share of all tokens:", round(float(chinese.float().mean()), 3))
print("Chinese: share of texts without a hidden token:", round(float((chinese.sum(1) == 0).float().mean()), 3))
with_comma = bool((english[:, 3] == english[:, 4]).all())
print("English: the comma is hidden exactly when 'emma' is:", with_comma)
assert (english[:, 1] == english[:, 2]).all() and not (english[:, 0] == english[:, 1]).all(), "the behaviour has changed"
assert counts == [0, chinese.shape[1]] and 0.08 < chinese.float().mean() < 0.25, "the behaviour has changed"
assert with_comma, "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" "$folder/words.py" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
