"""Tokens of a model of `transformers` with their character spans, and limits on text length and vocabulary.

The limits are measured, since no field of the configuration gives them reliably.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from anaphora.base.console import say
from anaphora.base.errors import UserError, one_line
from anaphora.base.translation import N_, _
from anaphora.data.example import Span
from anaphora.data.tokens.tokenizer import (
    BETWEEN_TEXTS,
    BlankPieces,
    PieceCheck,
    TokenizedText,
    unknown_ids,
    unread_spans,
)
from anaphora.data.tokens.words import word_numbers
from anaphora.hf.parts import last_states
from anaphora.hf.verification.forward import restored
from anaphora.settings.vocabulary import MASK, SPECIAL_TOKENS

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


_MASK = SPECIAL_TOKENS[MASK]
"""Spelling of the mask token in texts for any model, even if the model's own token differs, such as <mask>."""
_MOST_TOKENS = 100_000
"""Least reported limit that counts as no limit: tokenizers without a limit report a far larger number."""
_PROBE = 4
"""Number of tokens in the text that shows which embedding lookups are lookups of positions."""


class TextReader:
    """Wrapper of a fast tokenizer that returns tokens with their character spans in the text."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self.tokenizer = tokenizer
        backend = tokenizer.backend_tokenizer
        self._blanks, self._check_pieces = BlankPieces(backend), PieceCheck(backend)
        self._unknown = {tokenizer.unk_token_id, *unknown_ids(backend)} - {None}
        self._doubled: set[str] = set()  # special tokens that a notice has named

    def read(self, text: str, second: str | None = None) -> TokenizedText:
        """Tokenize a text or a pair of texts, with special tokens.

        [MASK] in a text stands for the model's mask token, if there is one. A token without visible characters, such as
        the space that some tokenizers put before a text, counts as a special token, whatever offsets the tokenizer
        reports. With `second`, spans refer to both texts joined by `BETWEEN_TEXTS`. If a text begins or ends with a
        special token that the tokenizer adds too, both are kept, and a notice is printed.

        Raises:
            UserError: the tokenizer cannot read a text, a text is empty, a token's offsets point to other characters
                (`PieceCheck`), or the tokenizer puts no token between the texts of a pair.
        """
        mask = self.tokenizer.mask_token or _MASK
        texts = [text] if second is None else [text, second]
        encoding = self._encoded([one.replace(_MASK, mask) for one in texts])
        ids, names = encoding["input_ids"], encoding.tokens()
        owners = encoding.sequence_ids()
        self._warn_of_doubled_token(ids, names, owners)
        if second is None:
            owners = [0] * len(ids)
        text, starts = BETWEEN_TEXTS.join(texts), (0, len(text) + len(BETWEEN_TEXTS))
        places = [_offsets_before_replacing(one, mask) for one in texts]
        offsets = [
            (0, 0) if owner is None else (starts[owner] + places[owner][start], starts[owner] + places[owner][end])
            for owner, (start, end) in zip(owners, encoding["offset_mapping"], strict=True)
        ]
        self._check_pieces(text, names, offsets)
        spans = _with_marks(
            text, [self._visible_part(text, name, *span) for name, span in zip(names, offsets, strict=True)]
        )
        filled = {owner for owner, (start, end) in zip(owners, spans, strict=True) if start < end}
        if 0 not in filled:
            raise UserError(N_("text: it is empty"))
        if second is not None:
            self._check_pair(second, owners, 1 in filled)
        special = tuple(_visible_name(name) for name, (start, end) in zip(names, spans, strict=True) if start == end)
        unread = unread_spans(text, ids, spans, self._unknown)
        types = tuple(encoding.get("token_type_ids", ()))
        if second is None and not any(types):  # models assume zeros if there are no types
            types = ()
        return TokenizedText(tuple(ids), tuple(spans), word_numbers(text, spans), special, unread, types)

    def _encoded(self, texts: Sequence[str]) -> Any:
        tokenizer: Any = self.tokenizer
        try:
            return tokenizer(*texts, return_offsets_mapping=True, truncation=False, verbose=False)
        except Exception as error:  # the tokenizers library raises bare Exception
            raise UserError(
                N_("text ({beginning!r}): the tokenizer ({tokenizer}) cannot read it: {error}"),
                beginning=texts[0][:40],
                tokenizer=type(self.tokenizer).__name__,
                error=one_line(error),
            ) from None

    def _warn_of_doubled_token(self, ids: Sequence[int], names: Sequence[str], owners: Sequence[int | None]) -> None:
        """Print a notice, once per token, if a text begins or ends with a special token that the tokenizer adds too."""
        places = range(len(ids))
        for order in (places, places[::-1]):
            added = list(takewhile(lambda place: owners[place] is None, order))
            own = next((place for place in order[len(added) :] if names[place] not in self._blanks), None)
            if own is None or ids[own] not in {ids[place] for place in added} or names[own] in self._doubled:
                continue
            self._doubled.add(names[own])
            notice = _(
                "text: it contains {token}, which the tokenizer adds too, so that the model reads it "
                "twice; leave {token} out"
            )
            say(notice.format(token=names[own]))

    def _check_pair(self, second: str, owners: Sequence[int | None], has_second: bool) -> None:
        """Raise UserError if the second text of a pair has no tokens, or no special token precedes it."""
        if not has_second:
            raise UserError(N_("second: it is empty"))
        if None not in owners[owners.index(0) : owners.index(1)]:
            raise UserError(
                f"second ({second[:40]!r}): the tokenizer ({type(self.tokenizer).__name__}) puts nothing between two "
                "texts, so the model reads them as one; write both in text"
            )

    def _visible_part(self, text: str, token: str, start: int, end: int) -> tuple[int, int]:
        """Return the character span of a token without surrounding spaces; (0, 0) if nothing but spaces is left."""
        written = text[start:end]
        left, right = start + len(written) - len(written.lstrip()), start + len(written.rstrip())
        if left >= right or token in self._blanks:
            return (0, 0)
        return (left, right)


def _visible_name(token: str) -> str:
    """Return the name of a token with escapes for line breaks and tabs; if it has only spaces, "▁" replaces them."""
    shown = token.replace(" ", "▁") if token.isspace() else token
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in shown)


def _with_marks(text: str, spans: Sequence[Span]) -> list[Span]:
    """Extend each span by the combining marks and composing characters after it that are in no other span.

    Tokenizers that compose letters and accents, or drop marks, report only the letter. Marks are found by their Unicode
    category, because the combining class of many marks, such as vowel signs and variation selectors, is 0. The letters
    of a Korean syllable and half-width Japanese voicing marks have other categories; they are found by composition.
    """
    covered = {place for span in spans for place in range(*span)}
    extended = []
    for start, end in spans:
        while start < end < len(text) and end not in covered and _joins(text[start:end], text[end]):
            end += 1
        extended.append((start, end))
    return extended


def _joins(before: str, character: str) -> bool:
    if unicodedata.category(character).startswith("M"):
        return True
    if character.isascii():
        return False
    composed, alone = (unicodedata.normalize("NFKC", one) for one in (before + character, before))
    return len(composed) == len(alone)


def gives_types(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Return whether a tokenizer, such as that of XLNet, gives token types other than 0 to a single text."""
    return "token_type_ids" in tokenizer.model_input_names and any(tokenizer.backend_tokenizer.encode("").type_ids)


def padding_id(tokenizer: PreTrainedTokenizerBase, part: PreTrainedModel) -> int:
    """Return the token id for padding, which the attention mask hides.

    The id is 0 if the tokenizer has no padding token, or if the model's embedding table has no row for this token.
    """
    number, rows = int(tokenizer.pad_token_id or 0), _vocabulary(part)
    return number if rows is None or number < rows else 0


def _offsets_before_replacing(text: str, mask: str) -> Sequence[int]:
    """Map each character of a text in which `mask` has replaced every [MASK] to its offset in the original `text`.

    All characters of `mask` get the offset of [MASK]. The last element of the result is the offset of the text's end.
    """
    if mask == _MASK:  # or there is no mask token, and the tokenizer splits [MASK]
        return range(len(text) + 1)
    places: list[int] = []
    start = 0
    for number, part in enumerate(text.split(_MASK)):
        if number:
            places += [start] * len(mask)
            start += len(_MASK)
        places += range(start, start + len(part))
        start += len(part)
    return [*places, start]


@dataclass(frozen=True)
class Limits:
    """Limits on the texts that a model can process."""

    model: str  # name of the model, for messages
    tokens: int | None  # maximum number of tokens in a text; None for no limit
    vocabulary: int | None  # size of the model's vocabulary; None if unknown

    @classmethod
    def measured(cls, part: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, name: str) -> Limits:
        """Measure the limits of a text encoder or decoder and of its tokenizer.

        Raises:
            UserError: `part` needs inputs other than text.
        """
        vocabulary, config = _vocabulary(part), part.config.get_text_config()  # without the settings for images
        special = {*tokenizer.all_special_ids, getattr(config, "pad_token_id", None)}
        known = min(len(tokenizer), vocabulary or len(tokenizer))
        ordinary = [number for number in range(min(known, _MOST_TOKENS)) if number not in special]
        # Every other id, from high to low, so that token ids do not look like positions.
        probe = (ordinary[-1::-2] or [0])[:_PROBE]
        limits = [
            int(getattr(tokenizer, "model_max_length", 0) or 0),
            int(getattr(config, "max_position_embeddings", 0) or 0),
            *_positions(part, probe, name),
        ]
        return cls(name, min((limit for limit in limits if 0 < limit < _MOST_TOKENS), default=None), vocabulary)

    def check(self, text: str, tokens: TokenizedText) -> None:
        """Raise UserError if a tokenized text is too long or has a token outside the model's vocabulary."""
        if self.tokens is not None and len(tokens.ids) > self.tokens:
            raise UserError(
                N_(
                    "text ({beginning!r}...): it has {tokens} tokens, but {model} takes at most {most}; "
                    "shorten it, or read it in parts"
                ),
                beginning=text[:40],
                tokens=len(tokens.ids),
                model=self.model,
                most=self.tokens,
            )
        highest = max(tokens.ids)
        if self.vocabulary is not None and highest >= self.vocabulary:
            raise UserError(
                N_(
                    "{model}: its tokenizer numbers a token of the text {number}, but the model knows {known} tokens; "
                    "both must come from the same model"
                ),
                model=self.model,
                number=highest,
                known=self.vocabulary,
            )


def _vocabulary(part: PreTrainedModel) -> int | None:
    try:
        weight = getattr(part.get_input_embeddings(), "weight", None)
    except (NotImplementedError, AttributeError):  # some families have no table of tokens
        return None
    return len(weight) if isinstance(weight, Tensor) and weight.dim() == 2 else None


def _positions(part: PreTrainedModel, ids: list[int], name: str) -> list[int]:
    """Return the maximum text length for each position-embedding table, not counting reserved rows at its beginning."""
    lookups = _Lookups()
    with torch.inference_mode(), restored(part), lookups:
        last_states(part, {"input_ids": torch.tensor([ids], device=part.device)}, name)
    return [table - first for rows, table in lookups.read if (first := _first_position(rows, len(ids))) is not None]


def _first_position(rows: Tensor, count: int) -> int | None:
    """Return the first row that a text uses in an embedding table of positions; None for any other embedding table.

    A table of positions is recognised by `rows`: the row indices for a text of `count` tokens are consecutive.
    """
    if not rows.dim() or rows.shape[-1] < count:
        return None
    numbers = rows.reshape(-1, rows.shape[-1]).cpu()
    first = int(numbers[0, 0])
    expected = torch.arange(first, first + numbers.shape[1])
    # A longer row of consecutive indices does not depend on the text; some families pad a row with other indices.
    fits = bool((numbers[:, :count] == expected[:count]).all())
    goes_on = numbers.shape[1] > count and bool((numbers == expected).all())
    return first if fits and not goes_on else None


class _Lookups(TorchFunctionMode):
    """Recorder of embedding lookups; each is stored as row indices and the number of rows of the embedding table."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[tuple[Tensor, int]] = []

    def __torch_function__(
        self, function: Any, types: Any, arguments: tuple[Any, ...] = (), options: Mapping[str, Any] | None = None
    ) -> Any:
        if function is functional.embedding:
            rows, table, *_ = arguments
            self.read.append((rows, len(table)))
        return function(*arguments, **(options or {}))
