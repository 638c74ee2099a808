"""Two development sentences of each language that differ only in the pronoun, for a picture."""

from __future__ import annotations

from collections.abc import Sequence

import anaphora
from anaphora.analysis.results.scores import Head
from anaphora.data.example import Example, overlapping
from experiments.pointing_heads.rows import Part, listed


def shortest_pair(examples: Sequence[Example]) -> list[Example]:
    """Return the shortest minimal pair of the cue type gender, by the length of its longer text."""
    pairs: dict[str, list[Example]] = {}
    for example in examples:
        if example.factors.get("type") == "gender":
            pairs.setdefault(example.minimal_pair, []).append(example)
    return min(pairs.values(), key=lambda pair: max(len(example.text) for example in pair))


def examples_part(folder: str, head: Head, examples: Sequence[Example]) -> Part:
    """Return the words of a minimal pair, and the pronoun's attention in a head."""
    sentences = []
    for example in shortest_pair(examples):
        start, end = example.pronoun
        maps = anaphora.attention(folder, example.text, f"{start}:{end}")
        row = maps.row(f"{start}:{end}", layer=head.layer, head=head.head)
        places = [overlapping(row.spans, spans[0]) for spans in example.candidates]
        sentences.append(
            {
                "words": list(row.words),
                "weights": listed(row.weights),
                "pronoun": overlapping(row.spans, example.pronoun)[0],
                "antecedents": [places[number] for number in example.antecedents],
                "others": [place for number, place in enumerate(places) if number not in example.antecedents],
            }
        )
    return {"sentences": sentences}
