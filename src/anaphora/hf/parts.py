"""Text encoder or decoder of a model of `transformers`, and its hidden states."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from anaphora.analysis.maps.of_torch import evaluation_mode
from anaphora.base.errors import UserError, one_line

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_LONGEST_ERROR = 200
"""Maximum number of characters quoted from an error of the library."""


def text_part(model: PreTrainedModel, name: str) -> PreTrainedModel:
    """Return the text encoder or decoder of a model, found by `text_module`, as a `PreTrainedModel`.

    If it has no attribute `config`, it is wrapped in a `PreTrainedModel` with the configuration of the whole model.
    """
    part: Any = text_module(model, name)
    return cast("PreTrainedModel", part if hasattr(part, "config") else _encoder_part(model, part))


def text_module(model: PreTrainedModel, name: str) -> nn.Module:
    """Return the module whose attention is read: the model without output layers, or only a text encoder.

    For an encoder-decoder, it is the encoder; for a dual encoder such as CLIP, the text encoder. In all functions of
    this file, `name` is the name of the model for error messages.

    Raises:
        UserError: an encoder-decoder does not return its encoder, or the module takes no token ids (a vision model).
    """
    part: nn.Module = model.base_model
    if model.config.is_encoder_decoder:
        with errors_in_one_line(f"{name}: its encoder cannot be read"):
            part = model.get_encoder()
    of_texts = getattr(part, "text_model", None)
    if hasattr(part, "get_text_features") and isinstance(of_texts, nn.Module):
        part = of_texts  # of a dual encoder such as CLIP
    parameters = inspect.signature(part.forward).parameters
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    children = [child for child in part.children() if "input_ids" in inspect.signature(child.forward).parameters]
    if len(children) == 1 and all(one.kind in variadic for one in parameters.values()):  # a wrapper
        part = children[0]
        parameters = inspect.signature(part.forward).parameters
    if "input_ids" not in parameters:
        first = next(iter(parameters), "nothing")
        raise UserError(f"{name}: {type(part).__name__} is no text model: it takes {first}, not input_ids")
    return part


def takes_types(part: nn.Module) -> bool:
    """Return whether the `forward` method of a text encoder or decoder takes `token_type_ids`."""
    return "token_type_ids" in inspect.signature(part.forward).parameters


def _encoder_part(whole: PreTrainedModel, encoder: nn.Module) -> PreTrainedModel:
    """Wrap an encoder that is not a `PreTrainedModel` in a `PreTrainedModel`."""
    from transformers import PreTrainedModel

    class_of_whole: Any = type(whole)

    class EncoderPart(PreTrainedModel):
        """Encoder of an encoder-decoder, with the model's configuration."""

        def __init__(self, config: Any, encoder: nn.Module | None = None) -> None:
            super().__init__(config)
            self.encoder = class_of_whole(config).get_encoder() if encoder is None else encoder

        def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, **options: Any) -> Any:
            return self.encoder(input_ids, attention_mask=attention_mask, **options)

    return EncoderPart(whole.config, encoder)


def last_states(part: PreTrainedModel, inputs: dict[str, Tensor], name: str) -> Tensor:
    """Run a text encoder or decoder in evaluation mode and return the last hidden states, (texts, tokens, width).

    Afterwards, the mode is restored. `name` is the model's name for error messages.

    Raises:
        UserError: `part` needs inputs other than text, or returns no hidden states for the tokens.
    """
    kind = type(part).__name__
    with evaluation_mode(part), uncompiled(), errors_in_one_line(f"{name}: {kind} cannot be read from a text alone"):
        output = part(**inputs)
    return states_in(output, inputs["input_ids"], f"{name}: {kind}")


def states_in(output: Any, ids: Tensor, what: str) -> Tensor:
    """Return the last hidden states, (texts, tokens, width), from the output of a text encoder or decoder.

    For a model family whose classes return no hidden states, such as Llama 4, the logits are returned. `ids` are the
    token ids of the input, (texts, tokens); `what` begins the error message.

    Raises:
        UserError: the output has neither hidden states nor logits for the tokens.
    """
    given = (getattr(output, "last_hidden_state", None), getattr(output, "logits", None), output[0])
    states = next((one for one in given if isinstance(one, Tensor)), None)
    if states is None or states.dim() != 3 or states.shape[:2] != ids.shape:
        raise UserError(f"{what} gives no states for the tokens of a text")
    return states


def read_parameters(part: PreTrainedModel, wanted: dict[str, torch.nn.Parameter], name: str) -> set[str]:
    """Return the names of the parameters in `wanted` on which the last hidden states of a short text depend."""
    if not wanted:
        return set()
    ids = torch.tensor([[4, 5, 6, 7]], device=part.device)
    with torch.enable_grad():
        states = last_states(part, {"input_ids": ids}, name)
        gradients = torch.autograd.grad(states.sum(), list(wanted.values()), allow_unused=True)
    return {key for key, gradient in zip(wanted, gradients, strict=True) if gradient is not None}


def uncompiled() -> AbstractContextManager[object]:
    """Run compiled models and layers uncompiled inside the `with` block, so that all their operations can be seen."""
    stance: AbstractContextManager[object] = torch.compiler.set_stance("force_eager")
    return stance


@contextlib.contextmanager
def errors_in_one_line(what: str) -> Iterator[None]:
    """Replace exceptions in the `with` block, except `UserError`, by a one-line `UserError` that begins with `what`."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # the library raises unrelated classes
        raise UserError(f"{what}: {one_line(error)[:_LONGEST_ERROR].rstrip('.')}") from None
