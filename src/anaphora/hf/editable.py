"""Attention maps and outputs of a `transformers` model with edited attention, for the causal tests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from anaphora.analysis.causal.interventions import Intervention
from anaphora.base.errors import UserError
from anaphora.base.translation import N_
from anaphora.data.tokens.tokenizer import TokenizedText
from anaphora.hf import interface
from anaphora.hf.editing import EditPoint, edited_attention
from anaphora.hf.loading import CAUSAL, MASKED, MULTIMODAL, predicts_by
from anaphora.hf.verification.forward import reading_mode, run_model
from anaphora.model.mixer import Edit

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from anaphora.hf.reader import TransformersModel

_CAUSAL = N_("{model}: it predicts masked words, but its attention is causal, so it gives no answers")
_NOT_CAUSAL = N_("{model}: it does not predict masked words, and its attention is not causal, so it gives no answers")


@dataclass(frozen=True, eq=False)
class EditableModel:
    """Model whose attention scores, attention weights and attention outputs can be edited in every layer."""

    model: TransformersModel
    points: Sequence[EditPoint]

    @property
    def alone(self) -> bool:
        """Return whether each text must run in a batch of one.

        Padding or other texts may change the maps of some models. This is assumed of all models that cannot use the
        attention function of `interface`, since their attention may be sparse and may select other tokens.
        """
        return self.model.reading.alone or self.model.reading.implementation != interface.NAME

    def read(
        self,
        tokens: Sequence[TokenizedText],
        interventions: Sequence[Intervention],
        whole: PreTrainedModel | None = None,
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Return the attention maps of all layers with attention, and the model's output, under interventions.

        Args:
            tokens: B tokenized texts, or one text if `alone` is true; edits receive tensors for texts padded on the
                right to T tokens.
            interventions: edits for each layer, keyed by the model's own layer index; those for layers without
                attention are ignored.
            whole: the same model with an output layer; None runs the model without it.

        Returns:
            The attention maps of each layer, (B, heads, T, T); and, for each text, the last hidden states, (T, width),
            or, if `whole` is given, the logits, (T, vocabulary size). T includes padding.

        Raises:
            UserError: the model cannot process a text, or does not compute attention by the operations that a trial
                forward pass has located.
            ValueError: `alone` is true, and there are several texts.
        """
        if self.alone and len(tokens) > 1:
            raise ValueError(f"tokens: {len(tokens)} texts; this model is edited with one text at a time")
        part, reading, edits = self.model.model, self.model.reading, self._edits_by_block(interventions)
        inputs = self.model.padded(tokens)
        sizes = (len(tokens), reading.heads, inputs["input_ids"].shape[1])
        with (
            reading_mode(whole or part, reading.implementation),
            edited_attention(part, self.points, edits, sizes) as attention,
        ):
            output = run_model(whole or part, inputs, **reading.options)
        maps = [one for _, one in sorted(attention.weights.items())]
        return maps, list(output[0] if whole is None else _logits(output))

    def _edits_by_block(self, interventions: Sequence[Intervention]) -> dict[int, list[Edit]]:
        layers = self.model.attending_layers
        edits: dict[int, list[Edit]] = defaultdict(list)
        for intervention in interventions:
            for layer, edit in intervention.items():
                if layer in layers:
                    edits[layers.index(layer)].append(edit)
        return edits


def _logits(output: Any) -> Tensor:
    """Return the logits over the vocabulary, which are not always the first field of the output."""
    logits: Tensor = output.logits if hasattr(output, "logits") else output.prediction_logits
    return logits


class TransformersLanguageModel:
    """Model of `transformers` with the methods of the protocol `LanguageModel`, which the causal tests use.

    Raises:
        UserError: the model cannot score the candidates of a pronoun (see `why_no_answer`).
    """

    def __init__(self, model: TransformersModel) -> None:
        if reason := why_no_answer(model):
            raise reason
        self.model, self.name = model, model.name
        self.shape, self.is_decoder = (model.layers, model.heads), model.is_decoder
        self.alone = model.editable.alone
        self.mask = -1 if model.is_decoder else int(model.tokenizer.mask_token_id)

    @property
    def device(self) -> torch.device:
        device: torch.device = self.model.model.device
        return device

    def tokenize(self, text: str) -> TokenizedText:
        return self.model.tokenize(text)

    def maps(self, tokens: Sequence[TokenizedText]) -> list[Tensor]:
        attending = dict(zip(self.model.attending_layers, self.model.run(tokens), strict=True))
        nothing = torch.zeros_like(attending[self.model.layers - 1])
        return [attending.get(layer, nothing) for layer in range(self.model.layers)]

    def read(self, tokens: Sequence[TokenizedText], intervention: Intervention) -> None:
        self.model.editable.read(tokens, [intervention])

    def logits(self, tokens: Sequence[TokenizedText], intervention: Intervention) -> Sequence[Tensor]:
        return self.model.logits(tokens, intervention)


def why_no_answer(model: TransformersModel) -> UserError | None:
    """Return the error for a model that cannot predict which candidate a pronoun refers to; None for other models."""
    if model.language_model is None:
        message = N_("{model}: it has no output layer over the vocabulary that could be read, so it gives no answers")
        return UserError(message, model=model.name)
    fitting = (CAUSAL, MULTIMODAL) if model.is_decoder else (MASKED,)
    if not any(predicts_by(model.language_model, automatic) for automatic in fitting):
        message = _CAUSAL if model.is_decoder else _NOT_CAUSAL
        return UserError(message, model=model.name)
    if not model.is_decoder and model.tokenizer.mask_token_id is None:
        return UserError(N_("{model}: its tokenizer has no mask, so it gives no answers"), model=model.name)
    try:
        model.editable  # noqa: B018 - its error is the answer
    except UserError as error:
        return error
    return None
