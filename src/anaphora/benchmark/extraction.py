"""Attention extraction: the pronoun's rows of every layer and head of every sentence, in sentences a second.

Everyone delivers the same, one checked record a sentence, and making the batches counts for everyone.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import nn

from anaphora.analysis.capture import look
from anaphora.analysis.record import AttentionRecord
from anaphora.benchmark import layouts
from anaphora.benchmark.layouts import Layout
from anaphora.benchmark.models import BERT, attention_mask, bert, resolver
from anaphora.benchmark.settings import Size
from anaphora.benchmark.stopwatch import OURS, Way
from anaphora.data.batch import Encoded, evaluation_batches
from anaphora.data.settings import Batching
from anaphora.model.resolver import Resolver
from anaphora.model.settings import Learned, NoReadout


def ways(size: Size, data: Encoded, batch_sentences: int, device: torch.device) -> list[Way]:
    """What is compared; the weights are at their random start, which costs as much as trained ones."""
    places = data.longest()
    model = resolver(size, Learned(max_length=places)).eval().to(device)
    peer = bert(size, "eager", places).eval().to(device)
    # Few long texts a batch for everyone, and never more tokens than by default.
    row_tokens = Batching().row_tokens
    tokens = max(row_tokens, min(Batching().tokens, places * batch_sentences))
    lengths = data.ids.lengths

    def ours(name: str, batching: Batching) -> Way:
        share = layouts.real_share(list(evaluation_batches(data, batching, 0)))
        return Way(OURS, name, [partial(_look, model, data, batching)], _parameters(model.encoder), share)

    def theirs(name: str, layout: Layout) -> Way:
        share = layouts.real_share([data.batch(rows) for rows in layout])
        pieces = [partial(_records, peer, data, rows) for rows in layout]
        return Way(BERT, name, pieces, _parameters(peer), share)

    return [
        ours("rows, packed", Batching(tokens=tokens)),
        ours("rows, buckets", Batching(kind="buckets", tokens=tokens)),
        theirs("arrival order", layouts.in_arrival_order(lengths, batch_sentences)),
        theirs("sorted", layouts.sorted_by_length(lengths, batch_sentences)),
    ]


def _look(model: Resolver, data: Encoded, batching: Batching) -> int:
    return len(look(model, data, batching, NoReadout()).records)


def _records(model: nn.Module, data: Encoded, rows: list[list[int]]) -> int:
    return len(peer_records(model, data, rows))


def peer_records(model: nn.Module, data: Encoded, rows: list[list[int]]) -> list[AttentionRecord]:
    """The pronoun's rows out of the whole maps that BertModel returns, one sentence a row, one pronoun token each."""
    batch = data.batch(rows).to(next(model.parameters()).device)
    with torch.inference_mode():
        maps = model(input_ids=batch.inputs, attention_mask=attention_mask(batch), output_attentions=True).attentions
        places = batch.query_positions % batch.ids.shape[1]
        found = [layer[batch.query_items, :, places] for layer in maps]
        weights = torch.stack(found, dim=1).cpu().numpy()  # (N, L, H, T)
    records = []
    for item, row in zip(batch.items.tolist(), weights, strict=True):
        tokens = data.tokens[item]
        records.append(AttentionRecord(data.examples[item], tokens.spans, tokens.words, row[..., : len(tokens.ids)]))
    return records


def _parameters(model: nn.Module) -> int:
    return sum(weight.numel() for weight in model.parameters())
