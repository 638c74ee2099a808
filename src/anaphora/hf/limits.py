"""Limits of a model of `transformers` on text length and vocabulary, measured since no field gives them reliably."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from anaphora.base.errors import UserError
from anaphora.base.locale.translation import N_
from anaphora.data.tokens.tokenizer import TokenizedText
from anaphora.hf.parts import last_states
from anaphora.hf.verification.forward import restored

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_MOST_TOKENS = 100_000
"""Limits from this number on count as no limit, since a tokenizer without a limit reports a far larger number."""
_PROBE = 4
"""Number of tokens in the text that shows which embedding lookups are lookups of positions."""


@dataclass(frozen=True)
class Limits:
    """Limits on the texts that a model can process.

    Attributes:
        model: name of the model, for messages.
        tokens: maximum number of tokens in a text; None for no limit.
        vocabulary: size of the model's vocabulary; None if unknown.
    """

    model: str
    tokens: int | None
    vocabulary: int | None

    @classmethod
    def measured(cls, part: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, name: str) -> Limits:
        """Measure the limits of the text part of a model and of its tokenizer.

        Raises:
            UserError: the part cannot run on a text alone.
        """
        vocabulary = _vocabulary(part)
        special = {*tokenizer.all_special_ids, getattr(part.config, "pad_token_id", None)}
        known = min(len(tokenizer), vocabulary or len(tokenizer))
        ordinary = [number for number in range(min(known, _MOST_TOKENS)) if number not in special]
        # Every other number, from high to low, so that tokens do not look like positions.
        probe = (ordinary[-1::-2] or [0])[:_PROBE]
        limits = [
            int(getattr(tokenizer, "model_max_length", 0) or 0),
            int(getattr(part.config, "max_position_embeddings", 0) or 0),
            *_positions(part, probe, name),
        ]
        return cls(name, min((limit for limit in limits if 0 < limit < _MOST_TOKENS), default=None), vocabulary)

    def check(self, text: str, tokens: TokenizedText) -> None:
        """Check that the model can process a tokenized text.

        Raises:
            UserError: the text is too long, or has a token outside the model's vocabulary.
        """
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
    """Return the number of tokens for which each position table has rows, from the first row that a text uses."""
    lookups = _Lookups()
    with torch.inference_mode(), restored(part), lookups:
        last_states(part, {"input_ids": torch.tensor([ids], device=part.device)}, name)
    return [table - first for rows, table in lookups.read if (first := _first_position(rows, len(ids))) is not None]


def _first_position(rows: Tensor, count: int) -> int | None:
    """Return the first row index of an embedding lookup if it is a lookup of positions, otherwise None."""
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
    """Recorder of embedding lookups, each as its row indices and the number of rows of the table."""

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
