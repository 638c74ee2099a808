"""Pre-training on hidden words of plain text: forward, backward and the optimizer's step, in real tokens a second.

Everyone gets the same pieces of text with the same words hidden, output weights tied to the embedding, 32-bit numbers
and no dropout; each repeat goes once through all pieces. Batches are made beforehand: only the steps are measured.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import torch
from torch import nn

from anaphora.benchmark import layouts
from anaphora.benchmark.layouts import Layout
from anaphora.benchmark.models import BERT, BERT_MASKED, BertForHiddenWords, BertMasked, resolver
from anaphora.benchmark.settings import Size
from anaphora.benchmark.stopwatch import OURS, Way
from anaphora.benchmark.training import HIDDEN_WORDS, our_loss, way
from anaphora.data import store, vocabulary
from anaphora.data.batch import Batch, Encoded, Ragged, hide_words
from anaphora.data.encoded_texts import EncodedTexts
from anaphora.data.settings import Batching, Data, Texts, WordPiece
from anaphora.data.text import Text
from anaphora.model.settings import Learned, Position, Rotary
from anaphora.training.optimizer import build
from anaphora.training.settings import Optimizer

_READ = 2_000  # texts of which the vocabulary is learned, at least


class HiddenPieces:
    """Pieces of text in whose batches the same words are hidden, whoever shares a batch with whom."""

    def __init__(self, data: Encoded, seed: int) -> None:
        self.data = data
        every = data.batch([list(range(len(data)))])
        hidden = hide_words(every, HIDDEN_WORDS, data.vocabulary, np.random.default_rng(seed))
        asked = np.zeros(hidden.ids.numel(), dtype=np.bool_)
        asked[hidden.masked_positions.numpy()] = True
        self._inputs = Ragged.joined(hidden.inputs.flatten().numpy(), data.ids.lengths)
        self._asked = Ragged.joined(asked, data.ids.lengths)

    def batch(self, rows: list[list[int]]) -> Batch:
        """Some pieces as a batch, their words hidden."""
        batch = self.data.batch(rows)
        items = batch.items.numpy()
        real = (batch.segments.flatten() >= 0).nonzero().squeeze(1)
        inputs = batch.ids.flatten().clone()
        inputs[real] = torch.from_numpy(self._inputs.take(items)[0])
        asked = real[torch.from_numpy(self._asked.take(items)[0])]
        return replace(batch, inputs=inputs.view_as(batch.ids), masked_positions=asked)


def pieces(source: Data, kind: str, count: int, seed: int) -> EncodedTexts:
    """So many pieces of a corpus's training texts, drawn, under a WordPiece vocabulary of these and further ones.

    Args:
        source: the corpus; of one that asks about pronouns the texts alone count.
        kind: "documents" for whole texts in pieces of a packed row's length, as training reads them, or "paragraphs"
            for each paragraph by itself, cut where it is longer than a row.
        count: how many pieces at most.
        seed: of the draw.

    Raises:
        UserError: the corpus cannot be read.
    """
    corpus = store.load(source)
    if isinstance(source, Texts):
        texts = corpus.texts("train")
    else:
        texts = [Text(text=one.text, language=one.language) for one in corpus.examples("train")]
    if kind == "paragraphs":
        texts = [
            Text(text=line, language=one.language) for one in texts for line in one.text.split("\n") if line.strip()
        ]
    draw = np.random.default_rng(seed)
    drawn = [texts[number] for number in draw.permutation(len(texts))[: max(count, _READ)]]
    tokenizer = vocabulary.build(WordPiece(), [one.text for one in drawn])
    encoded = EncodedTexts(drawn[:count], tokenizer, Batching().row_tokens)
    encoded.keep(count)
    return encoded


def ways(size: Size, data: Encoded, batch_sentences: int, device: torch.device) -> list[Way]:
    """What is compared; each way has a model of its own. "Lean" is BertModel with logits at the hidden words alone."""
    lengths, places, known = data.ids.lengths, data.longest(), data.vocabulary
    arrival = layouts.in_arrival_order(lengths, batch_sentences)
    packed, buckets = (layouts.planned(kind, lengths, batch_sentences) for kind in ("packed", "buckets"))
    hidden = HiddenPieces(data, seed=0)

    def batches(layout: Layout) -> list[Batch]:
        return [hidden.batch(rows).to(device) for rows in layout]

    def ours(name: str, layout: Layout, position: Position, optimizer: Optimizer | None = None) -> Way:
        model = resolver(size, position, known, tied_output=True).to(device)
        chosen = build(model, optimizer) if optimizer is not None else None
        return way(OURS, name, model, partial(our_loss, model), batches(layout), chosen)

    def theirs(maker: str, name: str, model: nn.Module, layout: Layout) -> Way:
        return way(maker, name, model.to(device), model, batches(layout))

    def as_it_comes() -> nn.Module:
        return BertMasked(size, places, known)

    def lean() -> nn.Module:
        return BertForHiddenWords(size, places, known, tied_output=True)

    return [
        ours("packed", packed, Learned(max_length=places)),
        ours("packed, rotary, Muon", packed, Rotary(), Optimizer(matrices="muon")),
        ours("buckets", buckets, Learned(max_length=places)),
        theirs(BERT_MASKED, "arrival order", as_it_comes(), arrival),
        theirs(BERT_MASKED, "our buckets", as_it_comes(), buckets),
        theirs(BERT, "lean, arrival order", lean(), arrival),
        theirs(BERT, "lean, our buckets", lean(), buckets),
    ]
