"""The text encoder or decoder of a model of `transformers`, and its output. B batch, T tokens, W width."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from anaphora.analysis.maps.of_torch import evaluation_mode
from anaphora.base.errors import UserError, one_line

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_LONGEST_ERROR = 200
"""Characters that are quoted of an error of the library."""


def text_part(model: PreTrainedModel, name: str) -> PreTrainedModel:
    """Return the part of a model whose attention is read: without output layers, of an encoder-decoder the encoder.

    Args:
        model: of any class of the library.
        name: of the model, for messages.

    Raises:
        UserError: it takes no token ids, such as a model of images, or other inputs besides them.
    """
    part: Any = model.base_model
    if model.config.is_encoder_decoder:
        with errors_in_one_line(f"{name}: its encoder cannot be read"):
            part = model.get_encoder()
    if not hasattr(part, "config"):
        raise UserError(f"{name}: its encoder ({type(part).__name__}) cannot be read by itself")
    parameters = inspect.signature(part.forward).parameters
    if "input_ids" not in parameters:
        first = next(iter(parameters), "nothing")
        raise UserError(f"{name}: {type(part).__name__} is no text model: it takes {first}, not input_ids")
    return cast("PreTrainedModel", part)


def last_states(part: PreTrainedModel, inputs: dict[str, Tensor], name: str) -> Tensor:
    """Return the last-layer states of a text part for token ids, (B, T, W).

    Args:
        part: from `text_part`; it computes as in evaluation and is left as it was.
        inputs: `input_ids`, (B, T), and what else its `forward` takes.
        name: of the model, for messages.

    Raises:
        UserError: it cannot be read from a text alone, or gives no states for its tokens.
    """
    kind = type(part).__name__
    with evaluation_mode(part), errors_in_one_line(f"{name}: {kind} cannot be read from a text alone"):
        output = part(**inputs)
    states = output[0] if isinstance(output, tuple) else getattr(output, "last_hidden_state", None)
    if not isinstance(states, Tensor) or states.shape[:2] != inputs["input_ids"].shape:
        raise UserError(f"{name}: {kind} gives no states for the tokens of a text")
    return states


def read_parameters(part: PreTrainedModel, wanted: dict[str, torch.nn.Parameter], name: str) -> set[str]:
    """Return the names of those parameters that the last states of a text depend on.

    Args:
        part: from `text_part`.
        wanted: parameters of the whole model, by name.
        name: of the model, for messages.

    Raises:
        UserError: the part cannot be read from a text alone.
    """
    if not wanted:
        return set()
    ids = torch.tensor([[4, 5, 6, 7]], device=part.device)
    with torch.enable_grad():
        states = last_states(part, {"input_ids": ids}, name)
        gradients = torch.autograd.grad(states.sum(), list(wanted.values()), allow_unused=True)
    return {key for key, gradient in zip(wanted, gradients, strict=True) if gradient is not None}


@contextlib.contextmanager
def errors_in_one_line(what: str) -> Iterator[None]:
    """Turn any exception of a library's code into a one-line error.

    Raises:
        UserError: anything was raised.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # the library raises unrelated classes
        raise UserError(f"{what}: {one_line(error)[:_LONGEST_ERROR].rstrip('.')}") from None
