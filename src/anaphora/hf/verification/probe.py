"""Choice of a method to read a model's attention maps, by a test on a short text, not by a list of model families.

A method is accepted only if its maps equal, block by block, the weights that the model actually applies to its values
(`observation`). In shapes, H is the number of heads and T of tokens.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from anaphora.base.errors import UserError
from anaphora.base.translation import N_
from anaphora.hf import interface
from anaphora.hf.editing import EditPoint, maps_at_points
from anaphora.hf.parts import states_in, takes_types
from anaphora.hf.tokens import gives_types, padding_id
from anaphora.hf.verification.edits import edit_points
from anaphora.hf.verification.forward import Inputs, eager_maps, reading_mode, run_model, whole_texts
from anaphora.hf.verification.observation import Mixing, Observation, observed
from anaphora.hf.verification.reading import MapReading

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

EAGER = "eager"
_FLEX = "flex_attention"
"""Attention implementation whose kernel does not run while operations are observed."""
NOT_EDITED = N_("{model}: models of the family {family} can be read but not edited: {reason}")
"""Error message for models whose attention cannot be edited, or cannot be verified to be edited."""
_LENGTHS = (11, 13, 17, 19, 23, 29, 31, 37)
"""Possible numbers of tokens in a probe; the first that differs from all dimensions of the parameters is used, else the
last."""
_PADDING = 4
"""Number of padding or masked tokens at the end of each text of the batch."""
_AGREEMENT = {torch.float16: (5e-2, 5e-3), torch.bfloat16: (2e-1, 3e-2)}
"""Relative and absolute tolerance between the maps of two implementations, which round differently."""
_AGREEMENT_OF_FLOATS = (2e-3, 1e-6)
_STEP = {torch.float16: 2**-10, torch.bfloat16: 2**-7}
"""Relative distance between neighbouring values of data types to which weights may have been rounded."""
_NO_INFLUENCE = (1e-5, 1e-8)
"""Relative and absolute tolerance between maps that should be computed from the same values."""
_NO_INFLUENCE_OF_OTHERS = (1e-4, 1e-7)
"""Same tolerances between maps of one text beside different texts: a mixture of experts rounds differently."""
_NOTHING = 1e-6
"""Largest weight on a later token in a model that still counts as causal."""


class ProbeText:
    """Short trial text on which methods of reading the attention maps of a `transformers` model are tested.

    Its tokens are ordinary ones, spread over the vocabulary. The model reads it alone, in a batch with two kinds of
    padding (padding tokens, and ordinary tokens that the attention mask excludes), and in a batch with another text.
    `name` is the model's name in messages.
    """

    def __init__(self, model: PreTrainedModel, name: str, tokenizer: PreTrainedTokenizerBase) -> None:
        self.model, self.name, self.family = model, name, str(model.config.model_type)
        special = {*tokenizer.all_special_ids, getattr(model.config, "pad_token_id", None)}
        known = min(len(tokenizer), getattr(model.config.get_text_config(), "vocab_size", None) or len(tokenizer))
        ids = [number for number in range(0, known, max(1, known // 100)) if number not in special] or [0]
        sizes = {size for weight in model.parameters() for size in weight.shape}
        self.tokens = next((length for length in _LENGTHS if length not in sizes), _LENGTHS[-1])
        places = range(self.tokens + _PADDING)
        text, other = (
            torch.tensor([[ids[(place * 7 + first) % len(ids)] for place in places]], device=model.device)
            for first in (0, 3)
        )
        self.has_types = gives_types(tokenizer) and takes_types(model)
        self.alone = whole_texts(text[:, : self.tokens], self.has_types)
        real = torch.ones_like(text)
        real[:, self.tokens :] = 0
        padded = torch.where(real.bool(), text, padding_id(tokenizer, model))
        self.batch = whole_texts(torch.cat((padded, text)), self.has_types)
        self.batch["attention_mask"] = torch.cat((real, real))
        self.beside_another = {**self.batch, "input_ids": torch.cat((padded, other))}
        self._alteration: str | None = None  # attribute of the model that a forward pass changed
        # Rotary angles that depend on the longest text of a batch are written to a buffer in every pass, for instance.
        self._writes_weights = False
        self._has_masks_of_heads = False

    def reading(self) -> MapReading:
        """Return the first method whose maps equal the attention weights applied to the values.

        If no attention implementation returns them, weights are recorded where the model multiplies them by the values.

        Raises:
            UserError: no method passes the test, the model cannot process the trial text, or a forward pass changes
                parameters of the model; the message names the family and the reason.
        """
        own = self._own_mixings()
        if not own:
            raise UserError(
                f"{self.name}: models of the family {self.family} have no layers of attention heads whose weights can "
                "be observed; docs/any_model.md lists what can be read"
            )
        reasons: dict[str | None, str] = {EAGER: f"a text changes the model itself ({self._alteration})"}
        for implementation in (interface.NAME, EAGER, None) if self._alteration is None else ():
            try:
                return self._reading(implementation, own)
            except UserError as reason:
                reasons[implementation] = str(reason)
        try:
            return self._reading_at_products(own)
        except UserError:
            raise self._refusal(reasons[EAGER]) from None

    def check_whole(self, whole: PreTrainedModel) -> None:
        """Check that a model passes the unchanged text to its text encoder, whose maps are read.

        A class outside `transformers`, or a hook, may change the text. Models that need other inputs are not checked.

        Raises:
            UserError: in a pass of the whole model, the encoder's hidden states differ from those of the encoder alone,
                or the encoder does not run.
        """
        path = next((path for path, module in whole.named_modules() if module is self.model), "")
        inside = set(self.model.modules())
        outside = [module for module in whole.modules() if module not in inside]
        is_known = type(whole).__module__.startswith("transformers.models.")
        if not path or (is_known and not any(one._forward_pre_hooks or one._forward_hooks for one in outside)):
            return
        outputs: list[Any] = []
        with torch.no_grad(), reading_mode(whole, None):
            self.model.register_forward_hook(lambda *call: outputs.append(call[-1]))  # removed with the reading mode
            try:
                run_model(whole, self.alone)
            except UserError:
                return
        if len(outputs) == 1:
            ids, kind = self.alone["input_ids"], type(self.model).__name__
            given, states = states_in(outputs[0], ids, kind), self._states()
            relative, absolute = _agreement(states)
            if torch.allclose(given, states, relative, absolute * float(states.abs().max())):
                return
        raise UserError(
            f"{self.name}: it does not run its {type(self.model).__name__} on the text as it is, so the maps would not "
            f"be those in use; to read this part alone, give model.{path}"
        )

    def edit_points(self, reading: MapReading) -> Sequence[EditPoint]:
        """Return, for each block, the verified operations (softmax and product) at which attention can be edited.

        Raises:
            UserError: the model's attention cannot be edited; the message names the family and the reason.
        """
        try:
            return reading.points or edit_points(self.model, reading, self._two_texts())
        except UserError as reason:
            raise UserError(NOT_EDITED, model=self.name, family=self.family, reason=str(reason)) from None

    def _texts_interact(self, read: Callable[[Inputs], list[Tensor]]) -> bool:
        """Return whether texts of a batch may affect each other; `read` returns the maps of given inputs.

        They may if rotary angles depend on the longest text, a mixture of experts has a limited capacity, activations
        are quantised by a scale of the whole batch, or masks differ between heads.
        """
        has_capacity = getattr(self.model.config, "expert_capacity", None) is not None
        if self._writes_weights or self._has_masks_of_heads or has_capacity:
            return True
        kinds = [getattr(module, "rope_type", None) for module in self.model.modules()]
        if any("longrope" in (kind.values() if isinstance(kind, dict) else (kind,)) for kind in kinds):
            return True  # in older versions of transformers, only a pass over a long text writes the angles
        both = [[one[:1] for one in read(inputs)] for inputs in (self.batch, self.beside_another)]
        step = _STEP.get(both[0][0].dtype)
        return not _all_close(both[0], both[1], _NO_INFLUENCE_OF_OTHERS if step is None else (4 * step, 0.0))

    def _two_texts(self) -> Tensor:
        ids = self.alone["input_ids"]
        return torch.cat((ids, ids.flip(1)))

    def _refusal(self, reason: str) -> UserError:
        return UserError(f"{self.name}: the maps of models of the family {self.family} cannot be read: {reason}")

    def _own_mixings(self) -> list[Mixing]:
        """Return the attention weights that are observed in a pass with the model's own attention implementation.

        If a fused kernel hides these weights, those of a pass with another implementation are returned. The list
        is empty if neither can be observed, or if the two implementations give different hidden states.
        """
        own, other = self.model.config._attn_implementation, "sdpa"
        try:
            if own == _FLEX:
                states, other = self._states(), EAGER
            else:
                observation, states = self._observe(None, self.alone)
                if observation.mixings or own in (EAGER, other):
                    return observation.mixings
            in_steps, other_states = self._observe(other, self.alone)
        except UserError as error:
            raise self._refusal(str(error)) from None
        relative, absolute = _agreement(states)
        scale = float(states.abs().max())
        return in_steps.mixings if torch.allclose(states, other_states, relative, absolute * scale) else []

    def _states(self) -> Tensor:
        """Return the last hidden states of the text, computed with the model's own attention implementation."""
        with torch.no_grad(), reading_mode(self.model, None), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a kernel is slow if it is not compiled
            return states_in(run_model(self.model, self.alone), self.alone["input_ids"], type(self.model).__name__)

    def _observe(self, implementation: str | None, inputs: Inputs) -> tuple[Observation, Tensor]:
        """Observe a forward pass over one text; return the observation and the last hidden states."""
        with reading_mode(self.model, implementation) as before:
            with observed(self.model, self.tokens) as observation:
                output = run_model(self.model, inputs)
            self._alteration = self._alteration or before.alteration()
        self._writes_weights = self._writes_weights or observation.writes_weights
        if observation.changes_weights:
            raise UserError("a text changes the model itself (its weights)")
        return observation, states_in(output, inputs["input_ids"], type(self.model).__name__)

    def _reading(self, implementation: str | None, own: Sequence[Mixing]) -> MapReading:
        maps = self._maps(self.alone, implementation)
        self._compare(maps, own)
        reading = self._described(implementation, maps, own)
        read = partial(self._maps, implementation=implementation)
        is_same = self._same_when_padded(maps, read)
        if not is_same and implementation == interface.NAME:
            raise UserError("padding changes the maps of a text")
        return replace(reading, alone=not is_same or self._texts_interact(read))

    def _reading_at_products(self, own: Sequence[Mixing]) -> MapReading:
        """Return the method that records attention weights where the model multiplies its values by them."""
        ids = self._two_texts()
        second, _ = self._observe(None, whole_texts(ids[1:], self.has_types))
        if second.attends_elsewhere:
            raise UserError("a block attends to something else than the tokens of the text")
        texts = [self._maps_of_mixings(own), self._maps_of_mixings(second.mixings)]
        if len(texts[0]) != len(texts[1]):
            raise UserError("other blocks attend in another text")
        reading = replace(self._described(None, texts[0], own), points=())
        points = edit_points(self.model, reading, ids, [torch.cat(one) for one in zip(*texts, strict=True)])
        read = partial(self._maps_at_points, points=points, heads=reading.heads)
        alone = not self._same_when_padded(texts[0], read) or self._texts_interact(read)
        return replace(reading, points=points, alone=alone)

    def _maps_at_points(self, inputs: Inputs, points: Sequence[EditPoint], heads: int) -> list[Tensor]:
        with torch.no_grad(), reading_mode(self.model, None):
            return maps_at_points(self.model, points, inputs, heads)

    def _maps_of_mixings(self, mixings: Sequence[Mixing]) -> list[Tensor]:
        """Return observed weights of one text as attention maps, (1, H, T, T); each head must have its own matrix."""
        if not all(one.is_by_head for one in mixings):
            raise UserError("the order of the rows of its products is not known")
        return [one.rows.view(1, -1, self.tokens, self.tokens) for one in mixings]

    def _described(self, implementation: str | None, maps: Sequence[Tensor], own: Sequence[Mixing]) -> MapReading:
        """Describe the layout of the attention maps that an attention implementation gives for one text.

        The number of heads, and whether attention is causal, follow from the maps. The layer indices, and whether there
        is an attention sink, follow from the observed weights `own`.
        """
        heads = {one.shape[1] for one in maps}
        if len(heads) > 1:
            raise UserError(f"its layers have different numbers of heads ({', '.join(map(str, sorted(heads)))})")
        later = max(float(one.float().triu(1).max()) for one in maps)
        return MapReading(
            implementation=implementation,
            layers=self._layers(own),
            heads=heads.pop(),
            is_decoder=later <= _NOTHING,
            has_sink=any(mixing.has_sink for mixing in own),
            alone=False,
            has_types=self.has_types,
        )

    def _maps(self, inputs: Inputs, implementation: str | None) -> list[Tensor]:
        """Return the attention maps of the inputs with an attention implementation.

        For the text without padding, UserError is raised if the maps that `transformers` returns are not the weights by
        which the values are multiplied in the same forward pass.
        """
        with torch.no_grad(), reading_mode(self.model, implementation):
            if implementation == interface.NAME:
                tap = interface.AttentionTap()
                with interface.tapped(tap):
                    run_model(self.model, inputs)
                self._has_masks_of_heads |= tap.has_masks_of_heads
                return tap.weights
            if inputs is not self.alone:
                return eager_maps(run_model(self.model, inputs, output_attentions=True))
            with observed(self.model, self.tokens) as observation:
                maps = eager_maps(run_model(self.model, inputs, output_attentions=True))
        self._compare(maps, observation.mixings, exactly=True)
        return maps

    def _compare(self, maps: Sequence[Tensor], mixings: Sequence[Mixing], exactly: bool = False) -> None:
        """Check that each map equals the observed weights of the block at the same index."""
        if not maps:
            raise UserError("they give no attention weights")
        for place, one in enumerate(maps):
            if one.dim() != 4 or one.shape[0] != 1 or one.shape[2:] != (self.tokens, self.tokens):
                raise UserError(
                    f"map {place} of a text of {self.tokens} tokens has the shape {tuple(one.shape)}; expected "
                    f"(1, heads, {self.tokens}, {self.tokens})"
                )
        if len(maps) != len(mixings):
            raise UserError(f"{len(mixings)} blocks attend, but {len(maps)} maps are given")
        for one, mixing in zip(maps, mixings, strict=True):
            tolerance = (_STEP.get(one.dtype, 0.0), 0.0) if exactly else _agreement(one)
            if not mixing.equals(one[0], *tolerance):
                what = "the weights by which it mixes values" if exactly else "that of its own implementation"
                raise UserError(f"the map of {mixing.module} is not {what}{_row_sum_note(one)}")

    def _same_when_padded(self, maps: Sequence[Tensor], read: Callable[[Inputs], list[Tensor]]) -> bool:
        """Return whether the maps of a text, as `read` gives them, stay the same under padding with any token."""
        dtype = maps[0].dtype
        exact = (4 * _STEP[dtype], 0.0) if dtype in _STEP else _NO_INFLUENCE
        batch = [one[..., : self.tokens, : self.tokens] for one in read(self.batch)]
        padded, masked = [one[:1] for one in batch], [one[1:] for one in batch]
        if _all_close(maps, padded, _agreement(maps[0])) and _all_close(padded, masked, exact):
            return True
        if not _all_close(maps, read(self.alone), exact):
            raise UserError("two readings of one text give different maps")
        return False

    def _layers(self, mixings: Sequence[Mixing]) -> tuple[int, ...]:
        """Return the layer index of each block with attention: the first number in its path, as in "layer.3.attention".

        If the paths contain no ascending numbers, the blocks are numbered from 0.

        Raises:
            UserError: the paths contain no ascending numbers, and the configuration does not have one layer per block.
        """
        numbers = [next((int(part) for part in mixing.module.split(".") if part.isdigit()), -1) for mixing in mixings]
        if numbers[0] >= 0 and all(first < second for first, second in pairwise(numbers)):
            return tuple(numbers)
        layers = getattr(self.model.config.get_text_config(), "num_hidden_layers", None)
        if layers != len(mixings):
            raise UserError(f"{len(mixings)} blocks attend, but the configuration names {layers} layers")
        return tuple(range(len(mixings)))


def _agreement(values: Tensor) -> tuple[float, float]:
    return _AGREEMENT.get(values.dtype, _AGREEMENT_OF_FLOATS)


def _all_close(maps: Sequence[Tensor], others: Sequence[Tensor], tolerance: tuple[float, float]) -> bool:
    return len(maps) == len(others) and all(
        one.shape == other.shape and torch.allclose(one.float(), other.float(), *tolerance)
        for one, other in zip(maps, others, strict=True)
    )


def _row_sum_note(maps: Tensor) -> str:
    """Return a note on the attention row whose sum is farthest from 1; empty if all rows sum to 1."""
    sums = maps.float().sum(dim=-1)
    head = int((sums - 1).abs().amax(dim=(0, 2)).argmax())
    value = float(sums[0, head].flatten()[(sums[0, head] - 1).abs().argmax()])
    return "" if abs(value - 1) < 1e-3 else f" (a row of head {head} sums to {value:.3g})"
