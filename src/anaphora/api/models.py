"""The attention of any model in any text, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anaphora.api.maps import Attention, labelled_attention
from anaphora.api.runs import OpenRun
from anaphora.base.device import Device, torch_device
from anaphora.base.errors import UserError, shortened
from anaphora.data.own_sentence import example_from_query
from anaphora.runs.directory import load as load_run
from anaphora.runs.warm_start import holds_run

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from anaphora.hf.reader import TransformersModel


def attention(
    model: str | Path | OpenRun | PreTrainedModel,
    text: str,
    pronoun: str | None = None,
    candidates: Sequence[str] = (),
    antecedent: str | None = None,
    by: str = "word",
    tokenizer: PreTrainedTokenizerBase | None = None,
) -> Attention:
    """The attention of every layer and head of a model in one text.

    Args:
        model: a run directory, a folder of a model of `transformers`, a name on the hub as "hf://owner/name", an open
            run, or a loaded model of `transformers`. What a name opens is kept for the next call.
        text: English or Chinese.
        pronoun: a word of the text, the second one as "it:2", or its characters as "start:end".
        candidates: what it may refer to, named in the same way; pictures and pages mark them.
        antecedent: one of the candidates, if it is known.
        by: "word" merges the subwords of split words (summed to, averaged from), "token" does not.
        tokenizer: of a loaded model of `transformers`.

    Raises:
        UserError: there is no such model, a word is not in the text, or the text does not fit the model.
    """
    if not isinstance(text, str):
        raise UserError(f"text ({shortened(repr(text))}) must be a string: one text at a time")
    if pronoun is None and (candidates or antecedent):
        raise UserError("candidates need a pronoun")
    if antecedent is not None and antecedent not in candidates:
        raise UserError(f"antecedent ({antecedent!r}) must be one of candidates ({list(candidates)})")
    opened = open_any(model, tokenizer)
    if isinstance(opened, OpenRun):
        return opened.attention(text, pronoun, candidates, by, antecedent)
    example = None if pronoun is None else example_from_query(text, pronoun, candidates, antecedent)
    tokens, maps = opened.maps(text)
    return labelled_attention(
        text, tokens, maps, by=by, model=opened.name, is_decoder=opened.is_decoder, example=example
    )


def open_any(
    model: Any, tokenizer: PreTrainedTokenizerBase | None = None, device: Device | None = None
) -> OpenRun | TransformersModel:
    """A run or a model of `transformers`, by its name or as it is; one that a name opens computes on the device.

    Raises:
        UserError: there is no such model, or it is of no kind that can be read.
    """
    if isinstance(model, OpenRun):
        return model
    if isinstance(model, str | Path):
        return _open_named(str(model), device.device if device else "cpu")
    from anaphora.hf.reader import open_model

    return open_model(model, tokenizer)


def untrained_model(model: OpenRun | TransformersModel, seed: int) -> OpenRun | TransformersModel:
    """A model of the same shape at the random start of a seed."""
    if isinstance(model, OpenRun):
        return OpenRun(replace(model.run, model=model.run.untrained_model(seed)))
    return model.untrained(seed)


@lru_cache(maxsize=4)
def _open_named(name: str, device: str) -> OpenRun | TransformersModel:
    if holds_run(name):
        return OpenRun(load_run(name, Device(device=device)))
    from anaphora.hf.reader import open_model

    return open_model(name).on(torch_device(device))
