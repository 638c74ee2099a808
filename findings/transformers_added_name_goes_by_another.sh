#!/usr/bin/env bash
# What one would guess: a token and its id stand for each other, so turning a text's ids into tokens and these into ids
# gives the ids again, at least where no token is unknown; and a name that is added as "Anna", and counted as new, leaves
# the vocabulary's own "anna" as it is. Found in transformers 5.23.0 with tokenizers 0.23.3: an added word is normalized
# like the text, and every list of tokens shows that form. BERT's tokenizer, which lowercases, calls the added "Anna"
# "anna", as it calls another id; "小红" becomes " 小  红 ", with spaces that are not in the text, and no id is found for it.
# Ids made from a list of tokens then lead to another row of the embeddings or to [UNK]. The word "anna" in the text gets
# the new id too, and "Annabel", one token before, becomes the new word and three pieces. No warning says so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check transformers==5.23.0 tokenizers==0.23.3 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/names.py" <<'PYTHON'
import logging
import warnings

import tokenizers
import transformers
from transformers import BertTokenizer

TEXT, LONGER, ADDED = "小红感谢Anna，anna很好。", "Annabel", ["Anna", "小红"]
pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "anna", "annabel", "b", "##e", "##l", *sorted(set("小红感谢很好，。"))]
said = []
handler = logging.Handler()
handler.emit = said.append


def ids_of(text):
    return tokenizer(text, add_special_tokens=False)["input_ids"]


with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    tokenizer = BertTokenizer(vocab={piece: number for number, piece in enumerate(pieces)})
    logging.getLogger("transformers").addHandler(handler)
    old = {name: tokenizer.vocab[name] for name in ("anna", "annabel")}
    before, longer_before = tokenizer.tokenize(TEXT), tokenizer.tokenize(LONGER)
    assert tokenizer.convert_tokens_to_ids(before) == ids_of(TEXT) and longer_before == ["annabel"]
    counted = tokenizer.add_tokens(ADDED)
    added = tokenizer.get_added_vocab()
    anna, xiaohong = added["Anna"], added["小红"]
    encoded = tokenizer(TEXT, add_special_tokens=False, return_offsets_mapping=True)
    ids = encoded["input_ids"]
    places = [TEXT[start:end] for start, end in encoded["offset_mapping"]]
    tokens = {
        "tokenize": tokenizer.tokenize(TEXT),
        "tokens": encoded.tokens(),
        "convert_ids_to_tokens": tokenizer.convert_ids_to_tokens(ids),
    }
    back = tokenizer.convert_tokens_to_ids(tokens["convert_ids_to_tokens"])
    longer = tokenizer.tokenize(LONGER)
    names = tokenizer.convert_ids_to_tokens([anna, old["anna"]])
print("transformers", transformers.__version__, "tokenizers", tokenizers.__version__)
print("vocabulary:", old, "- added:", counted, {name: added[name] for name in ADDED})
print("before:", before, longer_before)
for name, listed in tokens.items():
    print(f"{name}: {listed}")
print("their places in the text:", places)
print("ids of the text:  ", ids)
print("ids of its tokens:", back)
print(f"ids {anna} and {old['anna']} are both called", names, "- Annabel became", longer)
print("warnings and lines in the log:", len(warned) + len(said))
assert counted == 2 and places == ["小红", "感", "谢", "Anna", "，", "anna", "很", "好", "。"]
assert all(listed == [" 小  红 ", "感", "谢", "anna", "，", "anna", "很", "好", "。"] for listed in tokens.values()), "the behaviour has changed"
assert [ids[place] for place in (0, 3, 5)] == [xiaohong, anna, anna], "the behaviour has changed"
assert [back[place] for place in (0, 3, 5)] == [tokenizer.unk_token_id, old["anna"], old["anna"]], "the behaviour has changed"
assert names == ["anna", "anna"] and longer == ["anna", "b", "##e", "##l"], "the behaviour has changed"
assert not warned and not said, "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" "$folder/names.py" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
