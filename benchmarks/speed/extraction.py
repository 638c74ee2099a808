"""Speed of extracting the pronoun's attention rows in all layers and heads, in sentences per second.

All variants return one checked record for each sentence, and the time includes batching.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import nn

from anaphora.analysis.maps.capture import capture
from anaphora.analysis.maps.record import AttentionRecord
from anaphora.data.batches.batching import evaluation_batches
from anaphora.data.batches.encoded import EncodedSplit
from anaphora.model.pronoun_model import PronounModel
from anaphora.settings.model.position import Learned
from anaphora.settings.training import Batching
from benchmarks.speed import layouts
from benchmarks.speed.layouts import BatchLayout
from benchmarks.speed.models import BERT, attention_mask, bert_model, our_model
from benchmarks.speed.settings import EncoderSize
from benchmarks.speed.stopwatch import OURS, Variant


def variants(size: EncoderSize, data: EncodedSplit, batch_sentences: int, device: torch.device) -> list[Variant]:
    """Return the variants to compare, with randomly initialised weights, which are as fast as trained ones."""
    positions = data.max_tokens()
    model = our_model(size, Learned(max_length=positions)).eval().to(device)
    peer = bert_model(size, "eager", positions).eval().to(device)
    # Few long texts a batch for all variants, and never more tokens than by default.
    row_tokens = Batching().row_tokens
    tokens = max(row_tokens, min(Batching().tokens, positions * batch_sentences))
    lengths = data.ids.lengths

    def ours(name: str, batching: Batching) -> Variant:
        share = layouts.non_padding_share(list(evaluation_batches(data, batching, 0)))
        return Variant(
            OURS, name, [partial(_extract_ours, model, data, batching)], _parameter_count(model.encoder), share
        )

    def theirs(name: str, layout: BatchLayout) -> Variant:
        share = layouts.non_padding_share([data.batch(rows) for rows in layout])
        parts = [partial(_extract_peer, peer, data, rows) for rows in layout]
        return Variant(BERT, name, parts, _parameter_count(peer), share)

    return [
        ours("rows, packed", Batching(tokens=tokens)),
        ours("rows, buckets", Batching(kind="buckets", tokens=tokens)),
        theirs("arrival order", layouts.in_arrival_order(lengths, batch_sentences)),
        theirs("sorted", layouts.sorted_by_length(lengths, batch_sentences)),
    ]


def _extract_ours(model: PronounModel, data: EncodedSplit, batching: Batching) -> int:
    return len(capture(model, data, batching).records)


def _extract_peer(model: nn.Module, data: EncodedSplit, rows: list[list[int]]) -> int:
    return len(peer_records(model, data, rows))


def peer_records(model: nn.Module, data: EncodedSplit, rows: list[list[int]]) -> list[AttentionRecord]:
    """Extract the pronoun's attention rows from BertModel's maps, for batches with one sentence per batch row."""
    batch = data.batch(rows).to(next(model.parameters()).device)
    with torch.inference_mode():
        maps = model(input_ids=batch.inputs, attention_mask=attention_mask(batch), output_attentions=True).attentions
        positions = batch.query_positions % batch.ids.shape[1]
        rows_by_layer = [layer[batch.query_items, :, positions] for layer in maps]
        weights = torch.stack(rows_by_layer, dim=1).cpu().numpy()  # (N, L, H, T)
    records = []
    for item, row in zip(batch.items.tolist(), weights, strict=True):
        tokens = data.tokens[item]
        records.append(AttentionRecord.of(data.examples[item], tokens, row[..., : len(tokens.ids)]))
    return records


def _parameter_count(model: nn.Module) -> int:
    return sum(weight.numel() for weight in model.parameters())
