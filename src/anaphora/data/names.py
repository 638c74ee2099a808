"""Replacement of the candidates' names in examples, so that a model cannot use what it knows about names."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from anaphora.data.corpora.division import non_overlapping, occurrences
from anaphora.data.example import Example, Span


def with_names(example: Example, names: Sequence[str]) -> Example:
    """Return a copy of an example in which a new name replaces all mentions of each candidate.

    Candidates and antecedents keep their order; spans are adjusted to the lengths of the new names. If the first or
    last word of a name occurs alone ("Lee" of "Anna Lee"), the first or last word of the new name replaces it, unless
    two candidates share the word. Factors (attributes of the item by which results are grouped) are adjusted too if
    their value is a candidate's name or contains character offsets.
    """
    written = {span: name for spans, name in zip(example.candidates, names, strict=True) for span in spans}
    written |= _name_parts(example, names, [example.pronoun, *written])
    written[example.pronoun] = example.text[slice(*example.pronoun)]
    text, moved = replace_spans(example.text, written)
    return replace(
        example,
        text=text,
        pronoun=moved[example.pronoun],
        candidates=tuple(tuple(moved[span] for span in spans) for spans in example.candidates),
        factors={name: _factor(name, value, example, names, moved) for name, value in example.factors.items()},
    )


def _factor(name: str, value: str, example: Example, names: Sequence[str], moved: Mapping[Span, Span]) -> str:
    """Return the value of a factor (attribute) of an example after its candidates have been renamed.

    Args:
        name, value: name and old value of the factor.
        example: example before the renaming.
        names: new names of the candidates.
        moved: mapping from old to new spans, from `replace_spans`.
    """

    def place(written: re.Match[str]) -> str:
        longer = (to[1] - to[0] - (end - start) for (start, end), to in moved.items() if end <= int(written[0]))
        return str(int(written[0]) + sum(longer))

    if name in _PLACES:
        return re.sub(r"\d+", place, value)
    renamed = {example.words(index): new for index, new in enumerate(names)}
    return renamed.get(value, value)


def replace_spans(text: str, written: Mapping[Span, str]) -> tuple[str, dict[Span, Span]]:
    """Replace non-overlapping spans of a text; return the new text and a mapping from old to new spans."""
    parts: list[str] = []
    moved: dict[Span, Span] = {}
    read, length = 0, 0
    for start, end in sorted(written):
        begin = length + start - read
        length = begin + len(written[start, end])
        moved[start, end] = (begin, length)
        parts += [text[read:start], written[start, end]]
        read = end
    return "".join([*parts, text[read:]]), moved


def with_exchanged_names(example: Example) -> Example:
    """Return a copy of an example in which the candidates have exchanged their names.

    Each candidate gets the name of the next candidate, and the last candidate gets the name of the first.
    """
    names = [example.words(index) for index in range(len(example.candidates))]
    return with_names(example, [*names[1:], *names[:1]])


def with_other_names(examples: Sequence[Example], copies: int, seed: int) -> list[Example]:
    """Copy each example `copies` times with names drawn from the candidates of all examples.

    A new name comes from an example with the same value of the factor `gender` (an attribute of the item). If an
    example has no such factor, its new names come from examples without this factor. A new name does not occur in the
    text and differs from the example's other new names. A name of one word is replaced by a name of one word, and a
    name of several words by a name of several words. If 20 draws give no such name, the old name is retained. The
    method follows Liu 2019 (Anonymized BERT), who uses a few common names.
    """
    pool: defaultdict[tuple[str, bool], dict[str, None]] = defaultdict(dict)
    for example in examples:
        for name in map(example.words, range(len(example.candidates))):
            pool[_name_class(example, name)][name] = None
    offered = {kind: list(names_of_kind) for kind, names_of_kind in pool.items()}
    draw = random.Random(f"{seed}/names")
    return [with_names(example, _sampled_names(example, offered, draw)) for _ in range(copies) for example in examples]


def _name_class(example: Example, name: str) -> tuple[str, bool]:
    return (example.factors.get("gender", ""), " " in name)


def _sampled_names(example: Example, listed: dict[tuple[str, bool], list[str]], draw: random.Random) -> list[str]:
    """Sample a different new name for each candidate; a candidate keeps its name if 20 draws give no suitable one."""
    names: list[str] = []
    for own in map(example.words, range(len(example.candidates))):
        offered = (draw.choice(listed[_name_class(example, own)]) for _ in range(_DRAWS))
        names.append(next((name for name in offered if name not in example.text and name not in names), own))
    return names


def _name_parts(example: Example, names: Sequence[str], taken: Sequence[Span]) -> dict[Span, str]:
    """Map each span in which the first or last word of a candidate's name occurs alone to its replacement.

    If "Anna Lee" becomes "Eva Berg", "Berg" replaces each "Lee" outside the spans in `taken`.
    """
    new: defaultdict[str, set[str]] = defaultdict(set)
    for index, name in enumerate(names):
        old, words = example.words(index).split(), name.split()
        if len(old) > 1 and words:
            new[old[0]].add(words[0])
            new[old[-1]].add(words[-1])
    parts: dict[Span, str] = {}
    for part, replacements in new.items():
        if len(replacements) == 1:
            parts |= dict.fromkeys(non_overlapping(occurrences(part, example.text), [*taken, *parts]), *replacements)
    return parts


_DRAWS = 20
_PLACES = ("extent", "extents", "word_parts", "event_names")  # factors that contain character offsets
