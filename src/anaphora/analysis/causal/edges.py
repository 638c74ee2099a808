"""Attention edges of one sentence, which the causal tests edit.

An edge leads from a query token to a key token, and has the attention weight of this pair in one head.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.results.scores import Head
from anaphora.data.example import Example
from anaphora.data.tokens.tokenizer import TokenizedText

MATCHED_EDGES = ("matched_query", "matched_heads", "matched_distance")
"""Control edges, with which the pronoun's edge to its antecedent is compared. They have equally many key tokens, never
special tokens or the query itself. The scope is the set of edited heads.

matched_query: in each head, the edge with the largest weight whose query is a word other than the pronoun.
matched_heads: edges from the pronoun to the words, outside candidates and cue, with the largest weights, in those heads
outside the scope in which the weight is largest. There are as many such heads as heads in the scope.
matched_distance: in the heads of the scope, the edge from the pronoun to words, outside candidates and cue, that are
about as far from the pronoun as the antecedent.
"""


class HeadEdges(NamedTuple):
    """Attention edges of one item in one head, from each of the query tokens to each of the key tokens."""

    head: Head
    queries: Sequence[int]
    keys: Sequence[int]
    mass: float  # weight on all keys, averaged over the queries


@dataclass(frozen=True, eq=False)
class SentenceEdges:
    """Token indices and attention weights of one item, from which its attention edges are selected."""

    pronoun: list[int]
    mentions: list[list[int]]  # token indices of each candidate
    antecedents: list[int]  # token indices of all antecedents
    distractors: list[list[int]]  # token indices of each distractor
    cue: list[int]  # token indices of the words that differ within the minimal pair; empty if it is the pronoun
    free: list[int]  # indices of non-special tokens, outside pronoun, candidates and cue, to which the pronoun attends
    rows: NDArray[np.float32]  # attention rows of the pronoun's tokens, (L, H, Q, T)
    attended: frozenset[int]  # indices of the tokens on which the pronoun has a weight above 0 in any head
    elsewhere: NDArray[np.int64]  # query outside the pronoun with the most weight on its K strongest keys, (L, H)
    elsewhere_keys: NDArray[np.int64]  # these K = len(antecedents) keys, (L, H, K), padded with -1
    elsewhere_mass: NDArray[np.float32]  # total weight on these keys, (L, H)

    @classmethod
    def of(
        cls, example: Example, tokens: TokenizedText, maps: NDArray[np.float32], cue: NDArray[np.bool_]
    ) -> SentenceEdges:
        """Return the edges of an item, given its attention maps, (L, H, T, T), and the mask of the cue's tokens, (T,).

        The cue is the word or words that decide which candidate is the antecedent.
        """
        pronoun = tokens.covering(example.pronoun)
        mentions = [
            sorted({token for span in spans for token in tokens.covering(span)}) for spans in example.candidates
        ]
        gold = sorted({token for index in example.antecedents for token in mentions[index]})
        words = [token for token, word in enumerate(tokens.words) if word >= 0]
        cues = np.flatnonzero(cue).tolist()
        taken = {*pronoun, *cues, *(token for mention in mentions for token in mention)}
        others = [token for token in words if token not in pronoun]
        between_words = np.zeros(maps.shape[2:], dtype=bool)
        between_words[np.ix_(others, words)] = True
        np.fill_diagonal(between_words, False)
        allowed = np.where(between_words, maps, np.float32(-1))
        keys = np.argsort(-allowed, axis=3, kind="stable")[..., : len(gold)]  # (L, H, T, K)
        weights = np.take_along_axis(allowed, keys, axis=3)
        keys = np.where(weights < 0, -1, keys)
        mass = weights.clip(min=0).sum(axis=3)
        best = mass.argmax(axis=2)
        rows = maps[:, :, pronoun].copy()
        attended = frozenset(np.flatnonzero(rows.any(axis=(0, 1, 2))).tolist())
        return cls(
            pronoun=pronoun,
            mentions=mentions,
            antecedents=gold,
            distractors=[
                [token for token in mention if token not in gold]
                for index, mention in enumerate(mentions)
                if index not in example.antecedents
            ],
            cue=cues,
            free=[token for token in words if token not in taken and token in attended],
            rows=rows,
            attended=attended,
            elsewhere=best,
            elsewhere_keys=np.take_along_axis(keys, best[..., None, None], axis=2)[:, :, 0],
            elsewhere_mass=np.take_along_axis(mass, best[..., None], axis=2)[..., 0],
        )

    def mass(self, head: Head, keys: Sequence[int]) -> float:
        """Return the pronoun's total weight on the given tokens in one head, averaged over the pronoun's tokens."""
        return float(self.rows[head.layer, head.head][:, list(keys)].sum(axis=1).mean())

    def from_pronoun(self, heads: Sequence[Head], keys: Sequence[int]) -> list[HeadEdges]:
        """Return the edges from the pronoun to the given tokens in each given head.

        Tokens on which the pronoun has no weight in any head of the model are left out.
        """
        keys = [key for key in keys if key in self.attended]
        return [HeadEdges(head, self.pronoun, keys, self.mass(head, keys)) for head in heads if keys]

    def edges(self, kind: str, heads: Sequence[Head], others: Sequence[Head]) -> list[HeadEdges]:
        """Return the edges of one kind for the given heads.

        Args:
            kind: "gold" (from the pronoun to all antecedents), "distractor" (to the wrong candidate with the largest
                weight), "cue" (to the cue), "other_keys" (to all tokens except the antecedents'), or a control edge of
                `MATCHED_EDGES`. The result is empty if there are too few tokens or heads for a control edge.
            heads: heads in which edges are selected.
            others: all heads except `heads`, used for "matched_heads".
        """
        count = len(self.antecedents)
        match kind:
            case "gold":
                return self.from_pronoun(heads, self.antecedents)
            case "distractor":
                return self.from_pronoun(
                    heads, max(self.distractors, key=lambda keys: sum(self.mass(head, keys) for head in heads))
                )
            case "cue":
                return self.from_pronoun(heads, self.cue)
            case "other_keys":
                others_of_row = [token for token in range(self.rows.shape[-1]) if token not in self.antecedents]
                return self.from_pronoun(heads, others_of_row)
            case "matched_query":
                return [self._elsewhere(head) for head in heads]
            case "matched_heads":
                if len(self.free) < count or len(others) < len(heads):
                    return []
                row = self.rows.mean(axis=2)
                cuts = []
                for head in others:
                    weights = row[head.layer, head.head]
                    keys = sorted(self.free, key=lambda token: -weights[token])[:count]
                    cuts += self.from_pronoun([head], keys)
                return sorted(cuts, key=lambda cut: -cut.mass)[: len(heads)]
            case _:  # matched_distance
                return self.from_pronoun(heads, self._as_far_as_gold()) if len(self.free) >= count else []

    def _elsewhere(self, head: Head) -> HeadEdges:
        index = (head.layer, head.head)
        keys = [key for key in self.elsewhere_keys[index].tolist() if key >= 0]
        return HeadEdges(head, [int(self.elsewhere[index])], keys, float(self.elsewhere_mass[index]))

    def _as_far_as_gold(self) -> list[int]:
        """Return, for each antecedent token, a different token (one of `free`) about as far from the pronoun."""
        middle = sum(self.pronoun) / len(self.pronoun)
        left = list(self.free)
        chosen = []
        for gold in self.antecedents:
            nearest = min(left, key=lambda token: abs(abs(token - middle) - abs(gold - middle)))
            left.remove(nearest)
            chosen.append(nearest)
        return chosen
