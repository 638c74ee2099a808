"""Model classes of `transformers` for exported runs, that is, for models trained and exported by this package.

Importing this module registers them with the Auto classes. Both libraries can read the same folder, since parameters
have the same names: `AutoModel.from_pretrained` reads an exported run, and `anaphora.load` a model and tokenizer stored
by `save_pretrained`. In shapes, B is the number of texts, T of tokens, H of heads, and W is the width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM, PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput, MaskedLMOutput

from anaphora.base.batch import EncoderInput
from anaphora.base.errors import UserError
from anaphora.model.pronoun_model import PronounModel
from anaphora.runs.directory import randomly_initialised
from anaphora.runs.published import MODEL_TYPE, published_settings, shape
from anaphora.settings.run import Config


class AnaphoraConfig(PreTrainedConfig):
    """Configuration (config.json) of an exported run.

    Args:
        run: all settings of the run as plain values; None for an empty configuration, as `transformers` needs it.
        vocab_size: number of tokens in the tokenizer's vocabulary.
        fields: any other fields of `PreTrainedConfig`; fields that follow from `run` are overwritten.

    Raises:
        UserError: `run` is invalid.
    """

    model_type = MODEL_TYPE

    def __init__(self, run: dict[str, Any] | None = None, vocab_size: int = 0, **fields: Any) -> None:
        super().__init__(**({**fields, **shape(published_settings(run, "run"))} if run else fields))
        self.run = run
        self.vocab_size = vocab_size

    def settings(self) -> Config:
        """Return the validated settings of the run; raise UserError if they are missing or invalid."""
        return published_settings(self.run, str(self.name_or_path or "config.json"))


class AnaphoraModel(PreTrainedModel):
    """Encoder of an exported run (a model trained by this package), with its prediction head and its output layer.

    `forward` returns hidden states and attention maps. It does not run the prediction head, which needs a
    pronoun and its candidates; for answers, load the same folder with `anaphora.load`.
    """

    config_class = AnaphoraConfig
    _tied_weights_keys = {"output.linear.weight": "encoder.tokens.weight"}  # noqa: RUF012, as the library declares it

    def __init__(self, config: AnaphoraConfig) -> None:
        super().__init__(config)
        settings = config.settings()
        parts = PronounModel(settings.model, settings.task.prediction, config.vocab_size)
        self.encoder, self.output, self.prediction_head = parts.encoder, parts.output, parts.prediction_head
        self.post_init()  # type: ignore[no-untyped-call]
        self.is_constructed = True

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        pronoun_mask: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
    ) -> BaseModelOutput | tuple[Any, ...]:
        """Return hidden states, and attention maps if requested.

        Args:
            input_ids: token ids, (B, T).
            attention_mask: mask, (B, T), 0 at padding; None means no padding.
            pronoun_mask: mask, (B, T), 1 at the pronoun's tokens; needed only by runs that read the pronoun as a
                second sequence (setting `model.second_sequence`).
            output_attentions: whether to return the attention weights of each layer, (B, H, T, T), before dropout.
            output_hidden_states: whether to return the input of each layer and the final states, (B, T, W) each.
            return_dict: whether to return a `BaseModelOutput` instead of a tuple. For this
                and the two arguments before it, None stands for the value in the configuration.

        Raises:
            UserError: `pronoun_mask` is needed and missing, a text is longer than `model.position.max_length`, or maps
                are requested from an encoder without attention.
        """
        with_maps = self._wanted(output_attentions, "output_attentions")
        with_states = self._wanted(output_hidden_states, "output_hidden_states")
        read, maps = [], []
        for layer in self.encoder.passes(self._encoder_input(input_ids, attention_mask, pronoun_mask)):
            if with_states:
                read.append(layer.hidden)
            if with_maps:
                maps.append(layer.maps())
        last: Tensor = self.encoder.norm(layer.output())
        output = BaseModelOutput(
            last_hidden_state=last,
            hidden_states=(*read, last) if with_states else None,
            attentions=tuple(maps) if with_maps else None,
        )
        return output if self._wanted(return_dict, "return_dict") else output.to_tuple()

    def get_input_embeddings(self) -> nn.Embedding:
        return self.encoder.tokens

    def set_input_embeddings(self, value: nn.Module) -> None:
        assert isinstance(value, nn.Embedding)
        self.encoder.tokens = value

    def _wanted(self, argument: bool | None, name: str) -> bool:
        return bool(getattr(self.config, name) if argument is None else argument)

    def _encoder_input(
        self, input_ids: Tensor, attention_mask: Tensor | None, pronoun_mask: Tensor | None
    ) -> EncoderInput:
        is_token = torch.ones_like(input_ids, dtype=torch.bool) if attention_mask is None else attention_mask > 0
        second = None
        if self.encoder.settings.second_sequence:
            if pronoun_mask is None:
                raise UserError(
                    "this run reads the pronoun as a second sequence (model.second_sequence): give pronoun_mask, 1 at "
                    "the pronoun's tokens"
                )
            second = pronoun_mask > 0
        positions = (is_token.long().cumsum(dim=1) - 1).clamp(min=0)
        return EncoderInput(input_ids, positions, is_token.long() - 1, second=second)

    def _init_weights(self, module: nn.Module) -> None:
        """Initialise tensors that are missing from the file, such as fixed position encodings.

        `from_pretrained` constructs the model on the meta device, so these tensors must be computed again.
        """
        if not hasattr(self, "is_constructed") or all(_is_loaded(one) for _, one in _own_tensors(module)):
            return
        name = next(name for name, each in self.named_modules() if each is module)
        settings = self.config.settings()
        fresh = randomly_initialised(settings, self.config.vocab_size, settings.seed).get_submodule(name)
        values = dict(_own_tensors(fresh))
        for part, tensor in _own_tensors(module):
            if not _is_loaded(tensor):
                tensor.copy_(values[part])


@dataclass
class AnaphoraMaskedLMOutput(MaskedLMOutput):
    """Output of a masked language model, with the final hidden states, (B, T, W), as an additional field."""

    last_hidden_state: Tensor | None = None


class AnaphoraForMaskedLM(AnaphoraModel):
    """Masked language model from an exported run trained on masked tokens.

    Raises:
        UserError: the run was not trained on masked tokens.
    """

    def __init__(self, config: AnaphoraConfig) -> None:
        if not config.settings().task.masked_lm:
            raise UserError(f"{config.name_or_path}: this run was not trained on masked tokens (task.masked_lm=0)")
        super().__init__(config)

    def forward(  # type: ignore[override]
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        pronoun_mask: Tensor | None = None,
        labels: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
    ) -> AnaphoraMaskedLMOutput | tuple[Any, ...]:
        """Return logits, (B, T, size of the vocabulary), and the outputs of `AnaphoraModel.forward`.

        The other arguments and the errors are those of `AnaphoraModel.forward`.

        Args:
            labels: token ids, (B, T), -100 at positions to ignore; if given, the output has a `loss`, the mean
                cross-entropy in nats.
        """
        encoded = super().forward(
            input_ids, attention_mask, pronoun_mask, output_attentions, output_hidden_states, return_dict=True
        )
        assert isinstance(encoded, BaseModelOutput)
        logits = self.output(encoded.last_hidden_state)
        loss = None if labels is None else functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
        output = AnaphoraMaskedLMOutput(loss=loss, logits=logits, **encoded)
        return output if self._wanted(return_dict, "return_dict") else output.to_tuple()

    def get_output_embeddings(self) -> nn.Module:
        return self.output.linear


def _own_tensors(module: nn.Module) -> list[tuple[str, Tensor]]:
    return [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]


def _is_loaded(tensor: Tensor) -> bool:
    """Return whether `from_pretrained` has loaded a tensor from a file."""
    return bool(getattr(tensor, "_is_hf_initialized", False))


AutoConfig.register(MODEL_TYPE, AnaphoraConfig)
AutoModel.register(AnaphoraConfig, AnaphoraModel)
AutoModelForMaskedLM.register(AnaphoraConfig, AnaphoraForMaskedLM)
