"""Analysis of a `transformers` model: tokens, attention maps, and the attention rows of pronouns.

A model that takes its attention function from the registry of `transformers` runs with a function that records the
weights (`interface`). Other models run in eager mode, or with their own implementation, and return the maps; if a test
shows that these are not the true weights, the weights are recorded where they are multiplied by the values. In shapes,
B is the number of texts, L of layers, H of heads, T of tokens, Q of queries, and V is the size of the vocabulary.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from anaphora.analysis.causal.interventions import Intervention
from anaphora.analysis.maps.record import ROW_TOLERANCE, AttentionRecord
from anaphora.analysis.results.scores import Head, existing_head
from anaphora.base.errors import UserError
from anaphora.base.hub import import_transformers
from anaphora.base.translation import N_
from anaphora.data.example import Example
from anaphora.data.grouping import indices_by, portions
from anaphora.data.tokens.tokenizer import TokenizedText
from anaphora.hf import interface
from anaphora.hf.editable import EditableModel
from anaphora.hf.editing import maps_at_points
from anaphora.hf.loading import check_loaded, has_output_layer, load_named, quiet
from anaphora.hf.parts import takes_types, text_part
from anaphora.hf.tokens import Limits, TextReader, padding_id
from anaphora.hf.verification.forward import eager_maps, held_in_reading_mode, joined_maps, reading_mode, run_model
from anaphora.hf.verification.probe import ProbeText
from anaphora.hf.verification.reading import (
    MapReading,
    all_layers,
    check_maps,
    row_tolerance,
    tokens_with_sink,
    with_sink,
)
from anaphora.model.attention import Queries
from anaphora.model.linear import faster_products
from anaphora.model.prediction import group_mean

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_ITEMS_AT_ONCE = 32
"""Approximate number of items per forward pass."""
_PASSES_AT_ONCE = 8
"""Number of forward passes between two restorations of the model."""


@dataclass(frozen=True, eq=False)
class TransformersModel:
    """Encoder or decoder of `transformers`, always run in evaluation mode.

    Attributes:
        name: last part of the name of the folder or of the Hugging Face model; the class name for a loaded model.
        model: model without its output layer; for an encoder-decoder, the encoder.
        tokenizer: fast tokenizer, which gives the character span of each token.
        family: `model_type` of the configuration.
        reading: method by which the attention maps are read, as found by trial forward passes.
        language_model: model with its output layer over the vocabulary; None for a model without one, and for an
            encoder-decoder.
    """

    name: str
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    family: str
    reading: MapReading
    language_model: PreTrainedModel | None = None

    @property
    def layers(self) -> int:
        """Return the number of layers, not counting layers after the last layer with attention."""
        return self.reading.layers[-1] + 1

    @property
    def attending_layers(self) -> tuple[int, ...]:
        """Return the model's own indices of the layers with attention."""
        return self.reading.layers

    @property
    def heads(self) -> int:
        """Return the number of heads per layer."""
        return self.reading.heads

    @property
    def is_decoder(self) -> bool:
        """Return whether attention is causal."""
        return self.reading.is_decoder

    @cached_property
    def editable(self) -> EditableModel:
        """Return a wrapper of this model that can edit its attention.

        Raises:
            UserError: the model's attention cannot be edited; the message gives the reason.
        """
        return EditableModel(self, ProbeText(self.model, self.name, self.tokenizer).edit_points(self.reading))

    def tokenize(self, text: str, second: str | None = None) -> TokenizedText:
        """Tokenize a text or a pair of texts; a [MASK] in a text stands for the model's mask token, if there is one.

        Raises:
            UserError: the tokenizer cannot read a text or does not separate the texts of a pair, or a text is empty, is
                too long for the model, or has a token outside the model's vocabulary.
        """
        tokens = self._texts.read(text, second)
        self._limits.check(text, tokens)
        return tokens

    @cached_property
    def _texts(self) -> TextReader:
        return TextReader(self.tokenizer)

    @cached_property
    def _limits(self) -> Limits:
        return Limits.measured(self.model, self.tokenizer, self.name)

    def maps(self, text: str, second: str | None = None) -> tuple[TokenizedText, NDArray[np.float32]]:
        """Return the tokens of a text or a pair of texts, and all attention maps: (layers, heads, queries, keys).

        If the model has an attention sink, the sink precedes the tokens, both in the maps and in the returned tokens.

        Raises:
            UserError: the model cannot process the text, or its maps are not attention weights.
        """
        tokens = self.tokenize(text, second)
        return self.labels(tokens), self.token_maps(tokens)

    def labels(self, tokens: TokenizedText) -> TokenizedText:
        """Return the labels of the maps' rows and columns: the attention sink, if there is one, and the tokens."""
        return tokens_with_sink(tokens) if self.reading.has_sink else tokens

    def token_maps(self, tokens: TokenizedText, interventions: Sequence[Intervention] = ()) -> NDArray[np.float32]:
        """Return all attention maps of a tokenized text under interventions: (layers, heads, queries, keys).

        Rows and columns are in the order of `labels`.

        Raises:
            UserError: the model cannot process the text, its maps are not attention weights, or its attention cannot be
                edited.
        """
        layers = self.editable.read([tokens], interventions)[0] if interventions else self.run([tokens])
        return all_layers(torch.stack([layer[0] for layer in layers]).float(), self.reading).cpu().numpy()

    def records(self, examples: Sequence[Example], head: Head | None = None) -> Iterator[AttentionRecord]:
        """Return the results of `numbered_records` in the order of `examples`, without the indices."""
        records = dict(self.numbered_records(examples, head=head))
        return iter([records[item] for item in range(len(examples))])

    def numbered_records(
        self, examples: Sequence[Example], progress: Callable[[int], object] = lambda _: None, head: Head | None = None
    ) -> Iterator[tuple[int, AttentionRecord]]:
        """Yield the index of each example, and the attention rows of the example's pronoun.

        Texts of similar length share a forward pass, so examples are not yielded in the given order.

        Args:
            examples: examples in any order; examples with the same text share a forward pass.
            progress: callback that receives the number of texts of each pass.
            head: only head to read; records then have the shape (1, 1, tokens), and forward passes end in the layer of
                the head if the model allows it. None reads all heads of all layers.

        Raises:
            UserError: the head does not exist, the model cannot process a text, its maps are not attention weights, or
                a pronoun covers no token.
        """
        if head is not None:
            existing_head(head, self.reading.layers, self.heads)
        items_of = indices_by(example.text for example in examples)
        tokens = {text: self.tokenize(text) for text in items_of}
        # The longest texts run first, so that all later passes fit into the memory of the first.
        order = sorted(items_of, key=lambda text: len(tokens[text].ids), reverse=True)
        passes = iter(portions((len(items_of[text]) for text in order), _ITEMS_AT_ONCE))
        while several := list(islice(passes, _PASSES_AT_ONCE)):
            records: list[tuple[int, AttentionRecord]] = []
            with held_in_reading_mode(self.model, self.reading.implementation):
                for numbers in several:
                    texts = [order[number] for number in numbers]
                    items = [(item, examples[item]) for text in texts for item in items_of[text]]
                    records += self._records_of_batch(items, [tokens[text] for text in texts], head)
                    progress(len(texts))
            yield from records

    def _records_of_batch(
        self, items: Sequence[tuple[int, Example]], tokens: Sequence[TokenizedText], head: Head | None
    ) -> Iterator[tuple[int, AttentionRecord]]:
        """Yield the index of each example of a batch and the attention rows of its pronoun.

        `tokens` has the distinct texts of the examples, in the order in which they first occur.
        """
        row_of = {text: row for row, text in enumerate(dict.fromkeys(example.text for _, example in items))}
        mention, row, token = [], [], []
        for number, (_, example) in enumerate(items):
            covering = tokens[row_of[example.text]].covering(example.pronoun)
            if not covering:
                raise UserError(f"pronoun: {list(example.pronoun)} covers no token of {example.text!r}")
            mention += [number] * len(covering)
            row += [row_of[example.text]] * len(covering)
            token += covering
        device = self.model.device
        queries = (torch.tensor(row, device=device), torch.tensor(token, device=device))
        weights = torch.stack(self.run(tokens, queries, head), dim=1)  # (Q, L, H, T)
        rows = group_mean(weights.float(), torch.tensor(mention, device=device), len(items))
        add_layers = all_layers if head is None else with_sink
        tolerance = max(ROW_TOLERANCE, row_tolerance(self.model.dtype))
        for (item, example), of_item in zip(items, rows, strict=True):
            own = tokens[row_of[example.text]]
            whole = add_layers(of_item[..., : len(own.ids)], self.reading).cpu().numpy()
            yield item, AttentionRecord.of(example, self.labels(own), whole, tolerance)

    def run(
        self, tokens: Sequence[TokenizedText], queries: Queries | None = None, head: Head | None = None
    ) -> list[Tensor]:
        """Return the attention maps of all layers with attention, from one forward pass over texts padded on the right.

        If padding may change the maps, each text runs in a batch of its own.

        Args:
            tokens: B tokenized texts.
            queries: batch row and token index, (Q,) each, of the attention rows to return; None returns whole maps.
            head: only head to read; None reads all heads.

        Returns:
            One tensor per layer with attention, (B, H, T, T) or, with `queries`, (Q, H, T); a single tensor with H = 1
            if `head` is given.

        Raises:
            UserError: the model cannot process the texts, or its maps are not attention weights.
        """
        place = len(self.reading.layers) - 1 if head is None else self.reading.layers.index(head.layer)
        if self.reading.implementation == interface.NAME and not self.reading.alone:
            tap = interface.AttentionTap(queries, place + 1, None if head is None else head.head)
            reading = reading_mode(self.model, interface.NAME)
            with torch.inference_mode(), reading, faster_products(), interface.tapped(tap):
                run_model(self.model, self.padded(tokens))
            kept = tap.weights
        else:
            kept = self._whole_maps(tokens)
            if head is not None:
                kept = [kept[place][:, head.head : head.head + 1]]
            if queries is not None:
                kept = [one[queries[0], :, queries[1]] for one in kept]
        real = self.padded(tokens)["attention_mask"].bool()
        check_maps(kept, self.reading, f"{self.name} ({self.family})", real, queries, head)
        return kept

    def _whole_maps(self, tokens: Sequence[TokenizedText]) -> list[Tensor]:
        """Return the whole attention map of each layer with attention, (B, H, T, T), from complete forward passes."""
        if not self.reading.alone:
            maps = self._maps_of_batch(tokens)
            if len(tokens) == 1 or not self._leaves_tokens_out(maps, tokens):
                return maps
        return joined_maps([self._maps_of_batch([one]) for one in tokens])

    def _leaves_tokens_out(self, maps: Sequence[Tensor], tokens: Sequence[TokenizedText]) -> bool:
        """Return whether a weight is 0 although neither padding nor the causal mask hides the token from the query.

        Sparse attention has then selected tokens, and padding may have changed this selection.
        """
        real = self.padded(tokens)["attention_mask"].bool()
        visible = real[:, None, :, None] & real[:, None, None, :]  # (B, 1, T, T)
        if self.is_decoder:
            visible = visible.tril()
        return any(bool(((layer == 0) & visible).any()) for layer in maps)

    def _maps_of_batch(self, batch: Sequence[TokenizedText]) -> list[Tensor]:
        inputs = self.padded(batch)
        with torch.no_grad(), reading_mode(self.model, self.reading.implementation):
            if self.reading.implementation == interface.NAME:
                tap = interface.AttentionTap()
                with interface.tapped(tap):
                    run_model(self.model, inputs)
                maps = tap.weights
            elif self.reading.points is not None:
                maps = maps_at_points(self.model, self.reading.points, inputs, self.heads)
            else:
                maps = eager_maps(run_model(self.model, inputs, **self.reading.options))
        count, length = inputs["input_ids"].shape
        expected = (count, self.heads, length, length)
        if len(maps) != len(self.reading.layers) or any(one.shape != expected for one in maps):
            raise UserError(
                N_(
                    "{model}: the maps of a text of {length} tokens have the shapes {shapes}; expected {layers} of "
                    "{expected}"
                ),
                model=self.name,
                length=length,
                shapes=sorted({tuple(one.shape) for one in maps}),
                layers=len(self.reading.layers),
                expected=expected,
            )
        return maps

    def logits(self, tokens: Sequence[TokenizedText], intervention: Intervention) -> list[Tensor]:
        """Return the logits of each text under an intervention, (T, V), where T may include padding.

        Raises:
            UserError: the model has no output layer, its attention cannot be edited, or it cannot process a text.
        """
        if self.language_model is None:
            raise UserError(f"{self.name}: it has no output layer over the vocabulary that could be read")
        return self.editable.read(tokens, [intervention], self.language_model)[1]

    def untrained(self, seed: int) -> TransformersModel:
        """Return a randomly initialised copy without an output layer; the global random state is unchanged."""
        with torch.random.fork_rng(devices=[]), quiet():
            torch.manual_seed(seed)
            model: Any = type(self.model)(copy.deepcopy(self.model.config))
        return replace(self, model=model.eval(), language_model=None).on(self.model.device)

    def on(self, device: torch.device) -> TransformersModel:
        """Move the model to a device and return it."""
        nn.Module.to(self.language_model or self.model, device)
        return self

    def digest(self) -> str:
        """Return a 16-digit hash of all weights, the configuration, the tokenizer and transformers' version."""
        whole = self.language_model or self.model
        config = {**whole.config.to_dict(), "_name_or_path": None}
        tokenizer = json.loads(self.tokenizer.backend_tokenizer.to_str())
        tokenizer |= {"padding": None, "truncation": None}  # which change with every call
        named = self.tokenizer.special_tokens_map
        digest = hashlib.sha256(json.dumps([config, tokenizer, named], sort_keys=True, default=str).encode())
        for name, weights in sorted(whole.state_dict().items()):
            digest.update(name.encode())
            digest.update(weights.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
        return digest.hexdigest()[:16]

    def padded(self, tokens: Sequence[TokenizedText]) -> Mapping[str, Tensor]:
        """Return the model's inputs, (B, T) each: ids, attention mask, and token types if model and texts have them."""

        def as_tensor(rows: Iterable[Sequence[int]], padding: int = 0) -> Tensor:
            tensors = [torch.tensor(row, dtype=torch.long) for row in rows]  # by default, an empty row is float
            return pad_sequence(tensors, batch_first=True, padding_value=padding).to(self.model.device)

        ids = as_tensor((one.ids for one in tokens), padding_id(self.tokenizer, self.model))
        inputs = {"input_ids": ids, "attention_mask": as_tensor([1] * len(one.ids) for one in tokens)}
        if any(one.types for one in tokens) and takes_types(self.model):
            inputs["token_type_ids"] = as_tensor(one.types or [0] * len(one.ids) for one in tokens)
        return inputs


def open_model(
    model: str | Path | PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None = None
) -> TransformersModel:
    """Open a model of `transformers` for analysis.

    Args:
        model: path of a folder, name on the Hugging Face Hub as "hf://owner/name", or a loaded model.
        tokenizer: required for a loaded model; by default, the tokenizer of the folder or of the model on the Hub.

    Raises:
        UserError: `transformers` is missing or too old; the folder or model does not exist or cannot be loaded
            (`load_named`); the model is not a text model of `transformers`, has a peft adapter, has no encoder that
            runs by itself, or changes the text before its encoder; the tokenizer is missing or is not a fast tokenizer;
            or the attention maps cannot be read.
    """
    transformers = import_transformers()
    if isinstance(model, str | Path):
        with torch.inference_mode(False):  # gradients show which weights may be missing
            name, loaded, tokenizer = load_named(transformers, str(model), tokenizer)
    else:
        name, loaded = type(model).__name__, model
        check_loaded(transformers, model)
    if tokenizer is None:
        raise UserError(f"{name}: a loaded model needs its tokenizer: tokenizer=AutoTokenizer.from_pretrained(...)")
    if not getattr(tokenizer, "is_fast", False):
        raise UserError(
            f"{name}: its tokenizer ({type(tokenizer).__name__}) does not say which characters its tokens cover; use "
            "a fast one (AutoTokenizer.from_pretrained(..., use_fast=True), or tokenizer.json in the folder)"
        )
    config, whole = loaded.config, loaded
    loaded = text_part(loaded, name)
    family = str(config.model_type)
    if not isinstance(loaded, transformers.PreTrainedModel):
        raise UserError(f"{name}: models of the family {family} have no encoder that could be read by itself")
    interface.register()
    probe = ProbeText(loaded, name, tokenizer)
    reading = probe.reading()
    probe.check_whole(whole)
    return TransformersModel(name, loaded, tokenizer, family, reading, whole if has_output_layer(whole) else None)
