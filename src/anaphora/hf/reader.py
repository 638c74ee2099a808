"""A model of `transformers` as a reader of texts: its tokens, its attention maps, the rows of pronouns.

Families of `interface.FAMILIES` are read where they compute their attention, beside fused kernels; the others in eager
mode, if that gives weights. L layers, H heads, T tokens, Q queries.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from anaphora.analysis.causal.interventions import Intervention
from anaphora.analysis.maps.of_torch import evaluation_mode
from anaphora.analysis.maps.record import AttentionRecord
from anaphora.base.errors import UserError
from anaphora.base.hub import import_transformers
from anaphora.base.locale.translation import N_
from anaphora.data.example import Example
from anaphora.data.tokens.tokenizer import TokenizedText
from anaphora.hf import interface
from anaphora.hf.limits import Limits
from anaphora.hf.loading import has_output_layer, load_named, quiet
from anaphora.hf.parts import text_part
from anaphora.hf.tokens import TextReader
from anaphora.model.mixer import Edit
from anaphora.model.prediction import group_mean

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_ITEMS_AT_ONCE = 32
"""About so many items' texts are read in one pass."""
NOT_EDITED = N_("{model}: models of the family {family} are read in eager mode and cannot be edited")
"""The error about models whose attention weights can be read and not changed."""


@dataclass(frozen=True, eq=False)
class TransformersModel:
    """An encoder or decoder of `transformers`; it is read in evaluation mode, whatever its own mode is.

    Attributes:
        name: as the user wrote it.
        model: without its output layer.
        tokenizer: a fast one, which knows the characters of its tokens.
        family: `model_type` of its configuration.
        layers, heads: of the part that is read; of an encoder-decoder the encoder.
        is_decoder: whether a token sees only what stands before it.
        through_interface: whether attention is read where it is computed; else in eager mode.
        language_model: the same with its trained output layer over the vocabulary; None where it has none.
    """

    name: str
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    family: str
    layers: int
    heads: int
    is_decoder: bool
    through_interface: bool
    language_model: PreTrainedModel | None = None

    @property
    def most_tokens(self) -> int | None:
        """How many tokens a text may have; None where the model sets no limit."""
        return self._limits.tokens

    def tokenize(self, text: str) -> TokenizedText:
        """A text as the model reads it, its own special tokens around it; [MASK] is the model's mask, if it has one.

        Raises:
            UserError: it is empty, or longer than the model can hold.
        """
        tokens = self._texts.read(text)
        self._limits.check(text, tokens)
        return tokens

    @cached_property
    def _texts(self) -> TextReader:
        return TextReader(self.tokenizer)

    @cached_property
    def _limits(self) -> Limits:
        return Limits.measured(self.model, self.tokenizer, self.name)

    def maps(self, text: str) -> tuple[TokenizedText, NDArray[np.float32]]:
        """Every attention map of a text: its T tokens and (L, H, T, T), attending token first."""
        tokens = self.tokenize(text)
        return tokens, self.token_maps(tokens)

    def token_maps(self, tokens: TokenizedText, interventions: Sequence[Intervention] = ()) -> NDArray[np.float32]:
        """Every attention map of T tokens, (L, H, T, T), while interventions act.

        Raises:
            UserError: the model gives no weights, or cannot be edited.
        """
        edits: dict[int, list[Edit]] = {}
        for intervention in interventions:
            for layer, edit in intervention.items():
                edits.setdefault(layer, []).append(edit)
        layers = self.run([tokens], interface.AttentionTap(edits=edits))
        return torch.stack([layer[0] for layer in layers]).float().cpu().numpy()

    def records(self, examples: Sequence[Example]) -> Iterator[AttentionRecord]:
        """The pronoun's rows of each example, in the order given; read in batches of like length.

        Raises:
            UserError: a text does not fit the model, or a pronoun has no token of its own.
        """
        records = dict(self.numbered_records(examples))
        return iter([records[item] for item in range(len(examples))])

    def numbered_records(
        self, examples: Sequence[Example], progress: Callable[[int], object] = lambda _: None
    ) -> Iterator[tuple[int, AttentionRecord]]:
        """The number of each example and its pronoun's rows, in batches of texts of like length; a text is read once.

        Args:
            examples: in any order; those that share a text come from one pass over it.
            progress: is called with the number of texts of each pass.

        Raises:
            UserError: a text does not fit the model, or a pronoun has no token of its own.
        """
        items_of: dict[str, list[int]] = {}
        for item, example in enumerate(examples):
            items_of.setdefault(example.text, []).append(item)
        tokens = {text: self.tokenize(text) for text in items_of}
        for texts in _by_size(sorted(items_of, key=lambda text: len(tokens[text].ids)), items_of, _ITEMS_AT_ONCE):
            items = [(item, row) for row, text in enumerate(texts) for item in items_of[text]]
            read = [tokens[text] for text in texts]
            rows = self._rows([examples[item] for item, _ in items], [row for _, row in items], read)
            for (item, row), weights in zip(items, rows, strict=True):
                yield item, AttentionRecord.of(examples[item], read[row], weights)
            progress(len(texts))

    def _rows(
        self, examples: Sequence[Example], text_of: Sequence[int], tokens: Sequence[TokenizedText]
    ) -> Iterator[NDArray[np.float32]]:
        """The pronouns' rows of one batch, (L, H, T) each; `text_of` says whose tokens are each example's."""
        mention, row, token = [], [], []
        for number, (example, text) in enumerate(zip(examples, text_of, strict=True)):
            covering = tokens[text].covering(example.pronoun)
            if not covering:
                raise UserError(f"pronoun: {list(example.pronoun)} covers no token of {example.text!r}")
            mention += [number] * len(covering)
            row += [text] * len(covering)
            token += covering
        device = self.model.device
        queries = (torch.tensor(row, device=device), torch.tensor(token, device=device))
        weights = torch.stack(self.run(tokens, interface.AttentionTap(queries)), dim=1)  # (Q, L, H, T)
        owner = torch.tensor(mention, device=device)
        rows = group_mean(weights.float(), owner, len(examples)).cpu().numpy()
        for number, text in enumerate(text_of):
            yield rows[number, ..., : len(tokens[text].ids)]

    def run(self, tokens: Sequence[TokenizedText], tap: interface.AttentionTap) -> list[Tensor]:
        """One forward pass over texts, padded at their ends: what a tap keeps of every layer.

        Raises:
            UserError: the model gives no weights, or the tap edits a model that is read in eager mode.
        """
        inputs = self.padded(tokens)
        with torch.inference_mode(), evaluation_mode(self.model):
            if self.through_interface:
                with self._attention_by(interface.NAME), interface.tapped(tap):
                    self.model(**inputs)
                return tap.weights
            if tap.edits:
                raise UserError(NOT_EDITED, model=self.name, family=self.family)
            with self._attention_by("eager"):
                maps = self.model(**inputs, output_attentions=True).attentions
            if not maps or any(one is None or one.dim() != 4 for one in maps):
                message = N_("{model}: models of the family {family} give no attention weights")
                raise UserError(message, model=self.name, family=self.family)
            if tap.queries is None:
                return list(maps)
            return [one[tap.queries[0], :, tap.queries[1]] for one in maps]

    def logits(self, tokens: Sequence[TokenizedText], tap: interface.AttentionTap) -> Tensor:
        """What the output layer gives the vocabulary at each token of texts that are padded at their ends: (B, T, V).

        Raises:
            UserError: the model has no output layer, or is read in eager mode.
        """
        if self.language_model is None or not self.through_interface:
            raise UserError(f"{self.name}: it has no output layer over the vocabulary that could be read")
        read = self.language_model
        with torch.inference_mode(), evaluation_mode(read), self._attention_by(interface.NAME), interface.tapped(tap):
            logits: Tensor = read(**self.padded(tokens)).logits
        return logits

    def untrained(self, seed: int) -> TransformersModel:
        """The same at the random start of a seed, without an output layer; the caller's generator is left as it was."""
        with torch.random.fork_rng(devices=[]), quiet():
            torch.manual_seed(seed)
            model: Any = type(self.model)(copy.deepcopy(self.model.config))
        return replace(self, model=model.eval(), language_model=None).on(self.model.device)

    def on(self, device: torch.device) -> TransformersModel:
        """The same, which computes on a device from now on."""
        nn.Module.to(self.language_model or self.model, device)
        return self

    def weights_digest(self) -> str:
        """The first 16 hexadecimal digits of the SHA-256 of all weights and their names."""
        digest = hashlib.sha256()
        for name, weights in sorted((self.language_model or self.model).state_dict().items()):
            digest.update(name.encode())
            digest.update(weights.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
        return digest.hexdigest()[:16]

    def padded(self, tokens: Sequence[TokenizedText]) -> Mapping[str, Tensor]:
        """What the model takes: ids and mask, (B, T) each."""
        length = max(len(one.ids) for one in tokens)
        padding = self.tokenizer.pad_token_id or 0
        ids = [[*one.ids, *[padding] * (length - len(one.ids))] for one in tokens]
        mask = [[1] * len(one.ids) + [0] * (length - len(one.ids)) for one in tokens]
        device = self.model.device
        return {"input_ids": torch.tensor(ids, device=device), "attention_mask": torch.tensor(mask, device=device)}

    @contextlib.contextmanager
    def _attention_by(self, name: str) -> Iterator[None]:
        """Let the model compute its attention by a named function, and afterwards by its own again."""
        before = self.model.config._attn_implementation
        if before == name:
            yield
            return
        with quiet():
            self.model.set_attn_implementation(name)
        try:
            yield
        finally:
            with quiet():
                self.model.set_attn_implementation(before)


def open_model(
    model: str | Path | PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None = None
) -> TransformersModel:
    """A model of `transformers` to read.

    Args:
        model: a folder, a name on the hub as "hf://owner/name", or a model that is loaded already.
        tokenizer: of a loaded model; the others bring their own.

    Raises:
        UserError: there is no such folder or model, its weights are pickles, its tokenizer is slow, or it is of no kind
            that can be read.
    """
    transformers = import_transformers()
    if isinstance(model, str | Path):
        name, loaded, own = load_named(transformers, str(model))
        tokenizer = tokenizer or own
    else:
        name, loaded = type(model).__name__, model
        if hasattr(model, "merge_and_unload"):
            raise UserError(f"model ({name}) is a model with an adapter of peft; merge it: model.merge_and_unload()")
        if not isinstance(model, transformers.PreTrainedModel):
            raise UserError(
                f"model ({name}) must be a folder, hf://owner/name, a run, or a model of transformers; maps of other "
                "torch modules: anaphora.analysis.maps.of_torch"
            )
    if tokenizer is None:
        raise UserError(f"{name}: a loaded model needs its tokenizer: tokenizer=AutoTokenizer.from_pretrained(...)")
    if not getattr(tokenizer, "is_fast", False):
        raise UserError(
            f"{name}: its tokenizer ({type(tokenizer).__name__}) does not say which characters its tokens cover; use "
            "a fast one (AutoTokenizer.from_pretrained(..., use_fast=True), or tokenizer.json in the folder)"
        )
    config, whole = loaded.config, loaded
    loaded = text_part(loaded, name)
    text = config.get_text_config()
    family = str(config.model_type)
    interface.register()
    layers, heads = getattr(text, "num_hidden_layers", None), getattr(text, "num_attention_heads", None)
    if not layers or not heads:
        raise UserError(
            f"{name}: models of the family {family} have no layers of attention heads; "
            "docs/any_model.md lists what can be read"
        )
    return TransformersModel(
        name=name,
        model=loaded,
        tokenizer=tokenizer,
        family=family,
        layers=int(layers),
        heads=int(heads),
        is_decoder=_sees_backwards_only(loaded),
        through_interface=family in interface.FAMILIES,
        language_model=whole if has_output_layer(whole) else None,
    )


def _sees_backwards_only(model: PreTrainedModel) -> bool:
    """Whether a later token changes nothing of what an earlier one becomes."""
    ids = torch.tensor([[1, 2, 3, 4], [1, 2, 3, 5]], device=model.device)
    with torch.inference_mode(), evaluation_mode(model):
        states = model(input_ids=ids).last_hidden_state
    return bool(torch.allclose(states[0, :3], states[1, :3], atol=1e-5))


def _by_size(texts: Sequence[str], items_of: Mapping[str, Sequence[int]], most: int) -> Iterator[list[str]]:
    """Texts in batches of at most so many items, each of at least one text."""
    batch: list[str] = []
    items = 0
    for text in texts:
        if batch and items + len(items_of[text]) > most:
            yield batch
            batch, items = [], 0
        batch.append(text)
        items += len(items_of[text])
    if batch:
        yield batch
