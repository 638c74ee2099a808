"""Record of the pronoun's attention rows in one sentence, from any model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anaphora.base.checks import plain_list, whole_number
from anaphora.base.errors import UserError, one_line
from anaphora.data.example import Example, Span, from_record, overlapping
from anaphora.data.tokens.words import word_numbers

if TYPE_CHECKING:
    from anaphora.data.tokens.tokenizer import TokenizedText

ROW_TOLERANCE = 1e-3
"""Maximum distance of a row's sum from 1, which allows for half precision."""


@dataclass(frozen=True, eq=False)
class AttentionRecord:
    """Attention rows of the pronoun in one sentence, from any model.

    Attributes:
        spans: character spans of the T tokens without padding; (0, 0) marks a special token.
        words: word indices of the T tokens, in non-decreasing order; -1 marks a special token.
        weights: attention rows averaged over the pronoun's tokens, (L, H, T). Each row sums to 1, or is all 0 for an
            ablated head and for a layer without attention.
        special: names of the special tokens, such as [CLS], in the order of the tokens; () if unknown.
        tolerance: maximum distance of a row's sum from 1.

    Raises:
        UserError: fields are invalid or do not match each other; the message states what was expected.
    """

    example: Example
    spans: tuple[Span, ...]
    words: tuple[int, ...]
    weights: NDArray[np.float32]
    special: tuple[str, ...] = ()
    tolerance: float = ROW_TOLERANCE

    @classmethod
    def of(
        cls, example: Example, tokens: TokenizedText, weights: NDArray[np.float32], tolerance: float = ROW_TOLERANCE
    ) -> AttentionRecord:
        """Return a record with the spans, words and special tokens of a tokenized text."""
        return cls(example, tokens.spans, tokens.words, weights, tokens.special, tolerance)

    def __post_init__(self) -> None:
        count, length = len(self.spans), len(self.example.text)
        if self.weights.ndim != 3 or self.weights.shape[2] != count or 0 in self.weights.shape:
            raise UserError(
                f"weights: the shape is {self.weights.shape}; expected (layers, heads, {count}), "
                f"one weight for each of the {count} spans"
            )
        if self.weights.dtype.kind != "f":
            raise UserError(f"weights: the type is {self.weights.dtype}; expected floating-point numbers")
        if len(self.words) != count:
            raise UserError(f"words: there are {len(self.words)}; expected {count}, one for each span")
        last = -1
        for position, ((start, end), word) in enumerate(zip(self.spans, self.words, strict=True)):
            if not 0 <= start <= end <= length:
                raise UserError(
                    f"spans[{position}]: {[start, end]} must be [start, end] with 0 <= start <= end <= {length}, "
                    "the text's length"
                )
            if (word < 0) != (start == end):
                raise UserError(
                    f"words[{position}]: {word} at span {[start, end]}; expected -1 where the span is empty "
                    "(a special token) and 0 or more elsewhere"
                )
            if word >= 0:
                if word < last:
                    raise UserError(
                        f"words[{position}]: {word} comes after {last}; expected numbers that never decrease"
                    )
                last = word
        sums = self.weights.sum(axis=2, dtype=np.float64)
        with np.errstate(invalid="ignore"):
            good = (np.abs(sums - 1) <= self.tolerance) | (sums == 0)
        if not good.all() or self.weights.min() < 0:
            raise UserError(_weights_error(self.weights, self.tolerance))


def _weights_error(weights: NDArray[np.float32], tolerance: float) -> str:
    wrong = np.argwhere(~np.isfinite(weights) | (weights < 0))
    if len(wrong):
        layer, head, token = wrong[0]
        value = weights[layer, head, token]
        return f"weights: layer {layer} head {head} token {token} is {value}; expected finite numbers, 0 or more"
    sums = weights.sum(axis=2, dtype=np.float64)
    layer, head = np.argwhere((np.abs(sums - 1) > tolerance) & (sums != 0))[0]
    return (
        f"weights: the row of layer {layer} head {head} sums to {sums[layer, head]:.4g}; "
        f"expected 1 within {tolerance}, or a row of zeros"
    )


def from_arrays(
    text: str,
    spans: Sequence[Sequence[int]],
    weights: ArrayLike,
    pronoun: Sequence[int],
    candidates: Sequence[Sequence[int]] | Sequence[Sequence[Sequence[int]]],
    antecedents: Sequence[int],
    *,
    language: str,
    words: Sequence[int] | None = None,
    group: str = "",
    minimal_pair: str = "",
    factors: Mapping[str, str] | None = None,
) -> AttentionRecord:
    """Return a record from the attention maps of any library.

    Args:
        text: the sentence.
        spans: character spans of the T tokens, as most tokenizers return them; (0, 0) marks a special token such as
            [CLS]. Spaces at either end of a token are cut off, and a token of spaces alone counts as special.
        weights: attention maps (L, H, queries, keys), which are averaged over the pronoun's tokens, or the pronoun's
            rows (L, H, T); without padding.
        pronoun: character span of the pronoun.
        candidates: span of each candidate, or a list of the spans of its mentions.
        antecedents: indices of the candidates to which the pronoun refers.
        language: "en" or "zh".
        words: word indices of the T tokens, -1 for special tokens; by default from `word_numbers`.
        group: name shared by items that belong together, such as variants of one sentence; "" for a single item.
        minimal_pair: name shared by items that differ only in the cue, the words that decide which candidate is meant.
        factors: further properties of the item by name (`Example.factors`), such as type or template.

    Raises:
        UserError: an argument is invalid or does not match the others; the message states what was expected.
    """
    example = from_record(
        {
            "text": text,
            "language": language,
            "pronoun": plain_list("pronoun", pronoun),
            "candidates": plain_list("candidates", candidates),
            "antecedents": plain_list("antecedents", antecedents),
            "group": group,
            "minimal_pair": minimal_pair,
            "factors": factors,
        }
    )
    trimmed = tuple(_trim_span(position, span, text) for position, span in enumerate(plain_list("spans", spans)))
    values = _floating_array(weights)
    if values.ndim == 4:
        values = _pronoun_rows(values, trimmed, example.pronoun)
    if words is None:
        words = word_numbers(text, trimmed)
    else:
        listed = [whole_number(f"words[{position}]", word) for position, word in enumerate(plain_list("words", words))]
        numbers = zip(listed, trimmed, strict=False)
        words = (*(word if start < end else -1 for word, (start, end) in numbers), *listed[len(trimmed) :])
    with np.errstate(over="ignore"):  # values too large for float32 become infinite, which the record rejects
        kept = values.astype(np.float32)
    return AttentionRecord(example, trimmed, tuple(words), kept)


def _floating_array(weights: Any) -> NDArray[Any]:
    """Convert arrays, lists or tensors of any library to an array of floating-point numbers.

    Raises:
        UserError: the weights are not floating-point numbers, or differ in shape.
    """
    try:
        values = np.asarray(_without_torch(weights))
    except (TypeError, ValueError, RuntimeError) as error:
        raise UserError(f"weights: they are no array of one shape ({one_line(error)})") from None
    if values.dtype.kind != "f":
        raise UserError(f"weights: the type is {values.dtype}; expected floating-point numbers")
    return values


def _without_torch(weights: Any) -> Any:
    """Convert torch tensors to arrays, from any device and with or without gradients.

    Half precision becomes float32. In a list or tuple, each entry is converted. Other weights are returned unchanged.
    """
    if isinstance(weights, list | tuple):
        return [_without_torch(one) for one in weights]
    if not hasattr(weights, "detach"):
        return weights
    plain = weights.detach().cpu()
    return (plain.float() if plain.is_floating_point() and plain.itemsize < 4 else plain).numpy()


def _trim_span(position: int, span: Any, text: str) -> Span:
    is_pair = isinstance(span, list) and len(span) == 2 and all(type(end) is int for end in span)
    if not is_pair or not 0 <= span[0] <= span[1] <= len(text):
        raise UserError(
            f"spans[{position}]: {span} must be [start, end] with 0 <= start <= end <= {len(text)}, the text's length"
        )
    start, end = span
    covered = text[start:end]
    if not covered.strip():
        return (0, 0)
    return (start + len(covered) - len(covered.lstrip()), end - len(covered) + len(covered.rstrip()))


def _pronoun_rows(maps: NDArray[np.float32], spans: Sequence[Span], pronoun: Span) -> NDArray[np.float32]:
    count = len(spans)
    if maps.shape[2:] != (count, count):
        raise UserError(
            f"weights: the shape is {maps.shape}; expected (layers, heads, {count}, {count}) for {count} spans"
        )
    own = overlapping(spans, pronoun)
    if not own:
        raise UserError(f"pronoun: no token overlaps {list(pronoun)}; expected at least one span that does")
    return np.asarray(maps[:, :, own].mean(axis=2, dtype=np.float64))
