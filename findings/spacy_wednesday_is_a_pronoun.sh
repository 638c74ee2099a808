#!/usr/bin/env bash
# What one would guess: spaCy's English tokenizer splits contractions at their apostrophe and, where it is left out,
# only what can be nothing else, for its rules spare "ill", "well", "shed", "Its" and "were". So a count of pronouns
# finds what a reader finds. Found in spaCy 3.8.18: "Wed", "wed", "Id", "id", "Im" and "Ive" are split, and the norm of
# the first half is a pronoun. "On Wed Anna called Tom." has a "we" and "Her id was lost." an "i"; the surnames of Mr.
# Im and Mr. Ive become an "I" and a rest, so that the person whom a "he" refers to is gone from the text. In 8
# sentences with 4 pronouns, 10 are counted. No warning says so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check spacy==3.8.18 numpy==2.4.6 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/pronouns.py" <<'PYTHON'
import warnings

import spacy

PRONOUNS = {"i", "we", "you", "he", "she", "it", "they"}
TEXTS = {  # with the pronouns that a reader finds
    "On Wed Anna called Tom.": [],
    "The two wed in June.": [],
    "Her id was lost.": [],
    "Id and ego are words of Freud.": [],
    "Mr. Im said he was tired.": ["he"],
    "Mr. Ive drew it alone.": ["it"],
    "She was ill in the shed.": ["she"],
    "Its shell was well made, and they were glad.": ["they"],
}
WEEK = "Mon Tue Wed Thu Fri Sat Sun"
with warnings.catch_warnings():
    warnings.simplefilter("error")
    read = spacy.blank("en")
    print("spaCy", spacy.__version__)
    counted = []
    for text, expected in TEXTS.items():
        tokens = read(text)
        found = [token.norm_ for token in tokens if token.norm_ in PRONOUNS]
        counted.append(found)
        print(f"{text} - tokens {[token.text for token in tokens]}, pronouns counted {found}, of a reader {expected}")
    days = [token.text for token in read(WEEK)]
print("tokens of the weekdays:", days)
print("pronouns counted:", sum(map(len, counted)), "of a reader:", sum(map(len, TEXTS.values())))
assert days == ["Mon", "Tue", "We", "d", "Thu", "Fri", "Sat", "Sun"], "the behaviour has changed"
assert counted == [["we"], ["we"], ["i"], ["i"], ["i", "he"], ["i", "it"], ["she"], ["they"]], "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" "$folder/pronouns.py" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
