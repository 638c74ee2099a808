"""Attention row of a mention in one head, and functions that look up words, mentions and heads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from anaphora.analysis.maps.words import word_columns, word_labels, word_roles, word_spans
from anaphora.analysis.results.scores import Head, existing_head
from anaphora.api.html import weight_table
from anaphora.base.checks import at_least, one_of, whole_number
from anaphora.base.errors import UserError
from anaphora.base.language import cuts_word
from anaphora.base.translation import _, pgettext
from anaphora.data.example import Example, overlapping
from anaphora.data.tokens.tokenizer import TokenizedText

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from anaphora.report.figures.sheet import CandidateWords


UNITS = ("word", "token")
"""Units of the rows and columns of attention maps."""


@dataclass(frozen=True, eq=False)
class Row:
    """Attention row of a word, or of a mention of several words, in one head; `np.asarray` returns its weights, (W,).

    Attributes:
        text: the text.
        words: the W words, or tokens, of the text.
        spans: (start, end) character offsets of each word in the text, end excluded; (0, 0) for a special token.
        positions: indices in `words` of the query words (the words that attend), from 0.
        weights: (W,), weight on each word; for several query words, the mean over the rows of these words. The sum is
            1, or less after `SentenceAttention.between`, `window` and `without_special`.
        head: layer and head.
        example: the pronoun and its candidates; None if no pronoun was given or found.
    """

    text: str
    words: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    positions: tuple[int, ...]
    weights: NDArray[np.float32]
    head: Head
    example: Example | None = None

    @property
    def word(self) -> str:
        """Return the query word or words (the words that attend) as in the text."""
        first, last = self.positions[0], self.positions[-1]
        return self.words[first] if first == last else self.text[self.spans[first][0] : self.spans[last][1]]

    def to(self, mention: str | int) -> float:
        """Return the weight on a word, or the sum of the weights on a mention of several words.

        Args:
            mention: the word or mention, as in `SentenceAttention.row`.

        Raises:
            UserError: the mention is not in the text.
        """
        return float(self.weights[positions_of(mention, self.text, self.words, self.spans)].sum())

    def top(self, count: int = 3) -> list[tuple[str, float]]:
        """Return the words with the most weight, largest first; ties keep the order of the text.

        Args:
            count: maximum number of words to return.

        Raises:
            UserError: `count` is negative or not a whole number.
        """
        return strongest(self.words, self.weights, count)

    def plot(self) -> Figure:
        """Return a figure of the text with a bar for the weight on each word.

        In the pronoun's row, the candidates are marked.
        """
        from anaphora.report.figures.maps import pronoun_row_figure
        from anaphora.report.titles import attention_title

        right, others, attending = marked_words(self.positions, self.example, self.spans)
        title = attention_title(self.words, self.weights, self.positions, right, others, self.head)
        return pronoun_row_figure(self.words, self.weights, self.positions, right, others, title, attending)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.weights, dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        heaviest = pgettext("list", ", ").join(f"{word} {weight:.2f}" for word, weight in self.top())
        text = _("<{word!r} attends to: {words} (layer {layer}, head {head})>")
        return text.format(word=self.word, words=heaviest, layer=self.head.layer, head=self.head.head)

    def _repr_html_(self) -> str:
        title = f"{self.word}: layer {self.head.layer}, head {self.head.head}"
        return weight_table(self.words, self.weights[None], title, (self.word,))


def positions_of(mention: str | int, text: str, words: Sequence[str], spans: Sequence[tuple[int, int]]) -> list[int]:
    """Return the indices of a mention's words, in text order; `mention` is as in `SentenceAttention.row`.

    Raises:
        UserError: the mention is not in the text, covers no word, or is neither a string nor the index of a word.
    """
    if isinstance(mention, bool) or not isinstance(mention, str | int | np.integer):
        raise UserError(f"word ({mention!r}) must be a word of the text, its characters as '0:4', or its position")
    if isinstance(mention, int | np.integer):
        if not 0 <= mention < len(words):
            raise UserError(f"word ({mention}) must be a position from 0 to {len(words) - 1}")
        return [int(mention)]
    for position, (word, span) in enumerate(zip(words, spans, strict=True)):
        if word == mention and not cuts_word(text, span):
            return [position]
    from anaphora.data.own_sentence import find_span

    positions = overlapping(spans, find_span(text, mention, "word"))
    if not positions:
        raise UserError(f"word ({mention}) covers no word of the text {text!r}")
    return positions


def check_apart(attending: str | int, attended: str | int, shared: Sequence[str], text: str) -> None:
    """Raise UserError if two mentions without a common character share a word of the map, such as one long token.

    `shared` lists the words that belong to both mentions.
    """
    from anaphora.data.own_sentence import find_span

    if not shared or attending == attended or not (isinstance(attending, str) and isinstance(attended, str)):
        return
    spans = [find_span(text, mention, "word") for mention in (attending, attended)]
    if not overlapping(spans[:1], spans[1]):
        first, second = (text[slice(*span)] for span in spans)
        raise UserError(
            f"{first!r} and {second!r} are parts of {shared[0]!r}, which is one word of these maps, so no weight from "
            "one to the other can be read; a model with another tokenizer may separate them"
        )


def marked_words(
    attending: Sequence[int] | None, example: Example | None, spans: Sequence[tuple[int, int]]
) -> tuple[CandidateWords, CandidateWords, str]:
    """Return the words to mark in a figure as antecedents and as other candidates, and the role of the query words.

    If the query words (`attending`) include the pronoun's first word, the role is "pronoun"; otherwise it is "attending
    word", and no words are marked.
    """
    if example is not None and attending is not None:
        pronoun, antecedents, others = word_roles(example, spans)
        if pronoun[0] in attending:
            return antecedents, others, "pronoun"
    return [], [], "attending word"


def text_units(
    text: str, tokens: TokenizedText, by: str
) -> tuple[tuple[str, ...], tuple[tuple[int, int], ...], NDArray[np.int64]]:
    """Return the words (or tokens, depending on `by`) of a text, their spans, and each token's word index, (T,).

    Each special token is a word of its own.

    Raises:
        UserError: `by` is neither "word" nor "token".
    """
    one_of("by", by, UNITS)
    numbers, spans = list(range(len(tokens.ids))), list(tokens.spans)
    if by == "word":
        numbers = word_columns(tokens.words)
        spans = word_spans(tokens.spans, numbers)
    return word_labels(text, spans, tokens.special), tuple(spans), np.array(numbers, dtype=np.int64)


def strongest(words: Sequence[str], values: NDArray[np.float32], count: int) -> list[tuple[str, float]]:
    """Return the `count` words with the largest values, largest first; ties keep the order of the text.

    Raises:
        UserError: `count` is negative or not a whole number.
    """
    at_least("count", whole_number("count", count), 0)
    return [(words[index], float(values[index])) for index in np.argsort(-values, kind="stable")[:count]]


def requested_head(
    layer: int | None, head: int | None, chosen: Head | None, layers: Sequence[int], heads: int, model: str
) -> Head:
    """Return the requested head after checking that it exists; a missing index is taken from the chosen head.

    `layers` are the indices of the layers with attention, `heads` is the number of heads in each layer.

    Raises:
        UserError: the head does not exist, its layer has no attention, or an index is missing and no head was chosen.
    """
    if chosen is None and (layer is None or head is None):
        raise UserError(
            f"{model}: no head has been chosen on a development split; give layer= and head= (rank() orders heads by "
            "their weight on an edge, anaphora score chooses the head of a run)"
        )
    requested = Head(
        chosen.layer if layer is None and chosen is not None else whole_number("layer", layer),
        chosen.head if head is None and chosen is not None else whole_number("head", head),
    )
    return existing_head(requested, layers, heads)
