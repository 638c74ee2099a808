"""Hand-written model whose answers depend on the pronoun's weights in some heads, and sentences for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.causal.subjects import Edges, Scores
from anaphora.analysis.results.scores import Head
from anaphora.data.example import Example
from anaphora.data.tokens.tokenizer import TokenizedText

COPIER = Head(1, 0)
OTHERS = [Head(1, 1), Head(0, 0), Head(0, 1)]
PRONOUN, CUE = 7, 8
Maps = NDArray[np.float32]


def silent(stage: str) -> None: ...


def example(number: int, right: int, cue: str = "", **factors: str) -> Example:
    """Return a text of single letters after [CLS], with candidates at tokens 2 and 5, pronoun at 7 and cue at 8."""
    word = cue or "xy"[right]
    text = f"a b c d e f g {word} h"
    return Example(
        text=text,
        language="en",
        pronoun=(12, 13),
        candidates=(((2, 3),), ((8, 9),)),
        antecedents=(right,),
        minimal_pair=f"pair {number}",
        factors={"template": f"t{number % 7}", "kind": ("set", "role")[number % 2], **factors},
    )


def tokens_of(one: Example) -> TokenizedText:
    count = len(one.text.split())
    spans = ((0, 0), *((2 * position, 2 * position + 1) for position in range(count)))
    return TokenizedText((2, *(ord(word) for word in one.text.split())), spans, (-1, *range(count)))


def without_edges(maps: Sequence[Maps], edges: Edges) -> list[Maps]:
    """Return the maps with weight 0 on some edges."""
    changed = [each.copy() for each in maps]
    for item, layer, head, query, key in zip(*edges, strict=True):
        changed[item][layer, head, query, key] = 0
    return changed


def with_rows(maps: Sequence[Maps], heads: Sequence[Head], rows: Mapping[int, Maps], pronoun: int) -> list[Maps]:
    """Return the maps with the pronoun's rows of some heads and items replaced."""
    changed = [each.copy() for each in maps]
    for item, row in rows.items():
        for head in heads:
            changed[item][head.layer, head.head, [pronoun]] = row[head.layer, head.head]
    return changed


class Copier:
    """Model that scores a candidate by the pronoun's weight on it in the given heads.

    In these heads, the antecedent has more weight (at least 0.6) than the other candidate. In all other heads, the
    pronoun attends to the cue, and every other token to its predecessor.
    """

    def __init__(self, examples: Sequence[Example], counting: Sequence[Head], votes: Sequence[float]) -> None:
        self.examples, self.counting, self.votes = examples, counting, votes
        self.tokens = [tokens_of(one) for one in examples]
        random = np.random.default_rng(0)
        self._maps = []
        for one, tokens in zip(examples, self.tokens, strict=True):
            count = len(tokens.ids)
            rest = 0.09 / (count - 1)
            maps = np.full((2, 2, count, count), rest)
            maps[:, :, np.arange(1, count), np.arange(count - 1)] = 0.91
            maps[:, :, 0, 0] = 0.91
            places = (2, 5) if one.antecedents[0] == 0 else (5, 2)
            for layer, head in np.ndindex(2, 2):
                row = np.full(count, rest)
                if Head(layer, head) in counting:
                    row[list(places)] = random.uniform(0.6, 0.8), random.uniform(0.02, 0.1)
                    row[0] = 1 - row[1:].sum()
                else:
                    row[CUE] = 0.91
                maps[layer, head, PRONOUN] = row
            self._maps.append(maps.astype(np.float32))

    @property
    def shape(self) -> tuple[int, int]:
        return 2, 2

    def maps(self) -> Iterator[tuple[int, Maps]]:
        yield from reversed(list(enumerate(self._maps)))

    def _answer(self, maps: Sequence[Maps], ablated: Sequence[Head] = ()) -> Scores:
        scores = np.full((len(maps), 3), -np.inf)
        scores[:, :2] = 0
        for head, vote in zip(self.counting, self.votes, strict=True):
            if head not in ablated:
                scores[:, :2] += [vote * each[head.layer, head.head, PRONOUN, [2, 5]] for each in maps]
        return scores

    def scores(self) -> Scores:
        return self._answer(self._maps)

    def ablated(self, heads: Sequence[Head], mode: str) -> Scores:
        return self._answer(self._maps, heads)

    def knocked_out(self, edges: Edges) -> Scores:
        return self._answer([each / each.sum(axis=-1, keepdims=True) for each in without_edges(self._maps, edges)])

    def value_zeroed(self, edges: Edges) -> Scores:
        return self._answer(without_edges(self._maps, edges))

    def patched(self, heads: Sequence[Head], rows: Mapping[int, Maps]) -> Scores:
        return self._answer(with_rows(self._maps, heads, rows, PRONOUN))


PAIRS = [example(number, right) for number in range(10) for right in (0, 1)]
