#!/usr/bin/env bash
# What one would guess: if the words of a name are merged into one token, as spaCy's "merge_entities" does, everything
# that the document keeps about spans moves along, as its entities do; so clusters of mentions in doc.spans, where
# coreference is usually kept, still name the same words. Found in spaCy 3.8.18: the spans of a group keep their old token
# numbers, which then count other words. The mention "Mary Ann Smith" becomes "Mary Ann Smith met Tom", her "she" becomes
# "him", and the entities are right. A mention near the end can no longer be read: an IndexError comes when it is, not at
# the merge. In a document that goes on, nothing is raised, and every mention behind the name is wrong. Splitting a token
# does the same, so "she" becomes the word before it. No warning says so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check spacy==3.8.18 numpy==2.4.6 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/clusters.py" <<'PYTHON'
import warnings

import spacy
from spacy.tokens import Span

TEXT = "Mary Ann Smith met Tom because she liked him . So it went on"
nlp = spacy.blank("en")
merge = spacy.blank("en").add_pipe("merge_entities")


def document(text):
    doc = nlp(text)
    doc.ents = [Span(doc, 0, 3, "PERSON"), Span(doc, 4, 5, "PERSON")]
    doc.spans["Mary"] = [doc[0:3], doc[6:7]]
    doc.spans["Tom"] = [doc[4:5], doc[8:9]]
    return doc


def mentions(doc):
    return {name: [span.text for span in group] for name, group in doc.spans.items()}


print("spacy", spacy.__version__)
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    before = mentions(document(TEXT))
    merged = merge(document(TEXT))
    after = mentions(merged)
    entities = [entity.text for entity in merged.ents]
    short = merge(document(TEXT[: TEXT.index(" .")]))
    try:
        raised = f"no error: {mentions(short)}"
    except IndexError as error:
        raised = f"IndexError: {error}"
    divided = document(TEXT)
    with divided.retokenize() as retokenizer:
        retokenizer.split(divided[3], ["m", "et"], heads=[(divided[3], 1), divided[2]])
    split = mentions(divided)
print("tokens:", [token.text for token in merged])
print("entities after the merge:", entities)
print("clusters before the merge:", before)
print("clusters after the merge: ", after)
print("clusters after a split of \"met\":", split)
print("in a text that ends with \"him\":", raised)
print("warnings:", [str(warning.message) for warning in warned])
assert before == {"Mary": ["Mary Ann Smith", "she"], "Tom": ["Tom", "him"]}, "the behaviour has changed"
assert entities == ["Mary Ann Smith", "Tom"] and len(merged) == len(document(TEXT)) - 2, "the behaviour has changed"
assert after == {"Mary": ["Mary Ann Smith met Tom", "him"], "Tom": ["she", "So"]}, "the behaviour has changed"
assert split["Mary"] == ["Mary Ann Smith", "because"], "the behaviour has changed"
assert raised.startswith("IndexError") and not warned, "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" "$folder/clusters.py" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
