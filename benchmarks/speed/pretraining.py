"""Speed of masked-language-model pre-training: forward, backward and optimizer, in real tokens per second.

All variants have the same chunks of text with the same masked words, output weights tied to the embedding, 32-bit
floats and no dropout. Each repeat is one epoch. Batching is not included in the time.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import torch
from torch import nn

from anaphora.base.batch import Batch
from anaphora.data import store
from anaphora.data.batches.batching import mask_words
from anaphora.data.batches.encoded import EncodedSplit, RaggedArray
from anaphora.data.batches.texts import EncodedTexts
from anaphora.data.text import Text
from anaphora.settings.data import Data, TextCorpus
from anaphora.settings.model.position import Learned, Position, Rotary
from anaphora.settings.training import Batching, Optimizer
from anaphora.settings.vocabulary import WordPiece
from anaphora.training.optimizer import build_optimizer
from benchmarks.speed import layouts
from benchmarks.speed.layouts import BatchLayout
from benchmarks.speed.models import BERT, BERT_MASKED, FullBertMaskedLM, LeanBertMaskedLM, our_model
from benchmarks.speed.settings import EncoderSize
from benchmarks.speed.stopwatch import OURS, Variant
from benchmarks.speed.training import MASKED_SHARE, our_loss, training_variant

_VOCABULARY_TEXTS = 2_000  # texts of which the vocabulary is learned, at least


class MaskedChunks:
    """Chunks of text with the same masked words in every batch layout."""

    def __init__(self, data: EncodedSplit, seed: int) -> None:
        self.data = data
        all_chunks = data.batch([list(range(len(data)))])
        masked = mask_words(all_chunks, MASKED_SHARE, data.vocabulary, np.random.default_rng(seed))
        is_masked = np.zeros(masked.ids.numel(), dtype=np.bool_)
        is_masked[masked.masked_positions.numpy()] = True
        self._inputs = RaggedArray(masked.inputs.flatten().numpy(), data.ids.lengths)
        self._masked = RaggedArray(is_masked, data.ids.lengths)

    def batch(self, rows: list[list[int]]) -> Batch:
        """Return a batch of chunks with masked words."""
        batch = self.data.batch(rows)
        items = batch.items.numpy()
        real = (batch.segments.flatten() >= 0).nonzero().squeeze(1)
        inputs = batch.ids.flatten().clone()
        inputs[real] = torch.from_numpy(self._inputs.take(items)[0])
        masked_positions = real[torch.from_numpy(self._masked.take(items)[0])]
        return replace(batch, inputs=inputs.view_as(batch.ids), masked_positions=masked_positions)


def text_chunks(source: Data, kind: str, count: int, seed: int) -> EncodedTexts:
    """Return a random sample of chunks of a corpus's training texts, encoded with a WordPiece vocabulary.

    The vocabulary is learned from these texts and further ones.

    Args:
        source: settings of the corpus; only its texts are used.
        kind: "documents" for whole texts in chunks of a packed row's length, as in training, or "paragraphs" for single
            paragraphs, which are split only if longer than a row.
        count: maximum number of chunks.
        seed: seed of the sample.

    Raises:
        UserError: the corpus cannot be read.
    """
    corpus = store.load(source)
    if isinstance(source, TextCorpus):
        texts = corpus.texts("train")
    else:
        texts = [Text(text=example.text, language=example.language) for example in corpus.examples("train")]
    if kind == "paragraphs":
        texts = [
            Text(text=line, language=text.language) for text in texts for line in text.text.split("\n") if line.strip()
        ]
    generator = np.random.default_rng(seed)
    sample = [texts[number] for number in generator.permutation(len(texts))[: max(count, _VOCABULARY_TEXTS)]]
    tokenizer = WordPiece().build([text.text for text in sample])
    encoded = EncodedTexts(sample[:count], tokenizer, Batching().row_tokens)
    encoded.subsample(count)
    return encoded


def variants(size: EncoderSize, data: EncodedSplit, batch_sentences: int, device: torch.device) -> list[Variant]:
    """Return the variants to compare, each with its own model.

    "Lean" is BertModel with logits only at masked tokens.
    """
    lengths, positions, known = data.ids.lengths, data.max_tokens(), data.vocabulary
    arrival = layouts.in_arrival_order(lengths, batch_sentences)
    packed, buckets = (layouts.planned_layout(kind, lengths, batch_sentences) for kind in ("packed", "buckets"))
    masked_chunks = MaskedChunks(data, seed=0)

    def batches(layout: BatchLayout) -> list[Batch]:
        return [masked_chunks.batch(rows).to(device) for rows in layout]

    def ours(name: str, layout: BatchLayout, position: Position, optimizer: Optimizer | None = None) -> Variant:
        model = our_model(size, position, known, tied_output=True).to(device)
        stepper = build_optimizer(model, optimizer) if optimizer is not None else None
        return training_variant(OURS, name, model, partial(our_loss, model), batches(layout), stepper)

    def theirs(implementation: str, name: str, model: nn.Module, layout: BatchLayout) -> Variant:
        return training_variant(implementation, name, model.to(device), model, batches(layout))

    def as_it_comes() -> nn.Module:
        return FullBertMaskedLM(size, positions, known)

    def lean() -> nn.Module:
        return LeanBertMaskedLM(size, positions, known, tied_output=True)

    return [
        ours("packed", packed, Learned(max_length=positions)),
        ours("packed, rotary, Muon", packed, Rotary(), Optimizer(matrices="muon")),
        ours("buckets", buckets, Learned(max_length=positions)),
        theirs(BERT_MASKED, "arrival order", as_it_comes(), arrival),
        theirs(BERT_MASKED, "our buckets", as_it_comes(), buckets),
        theirs(BERT, "lean, arrival order", lean(), arrival),
        theirs(BERT, "lean, our buckets", lean(), buckets),
    ]
