"""One pass over a split: the pronoun's rows of every layer and head, and the model's own answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from anaphora.analysis.record import AttentionRecord
from anaphora.checkpoint import Run
from anaphora.data.batch import Batch, Encoded, evaluation_batches, one, unasked
from anaphora.data.example import Example
from anaphora.data.settings import Batching
from anaphora.data.tokenizer import Tokenizer, Tokens
from anaphora.model.readout import Seen, group_mean
from anaphora.model.resolver import Resolver
from anaphora.model.settings import Label, NoReadout, Readout, slots_of


@dataclass(frozen=True, eq=False)
class Look:
    """What a model does with a split.

    A read-out of labels is none here: it answers no pronoun question.

    Attributes:
        records: N rows of attention, in the order of the split.
        answers: (N,) the candidate that the model names; -1 is "none of them", -2 no read-out.
        correct: (N,) 1 where the answer is right, NaN where there is no read-out.
    """

    records: list[AttentionRecord]
    answers: NDArray[np.int64]
    correct: NDArray[np.float64]


def seen_by(run: Run, examples: Sequence[Example]) -> Look:
    """What a stored run does with some examples."""
    return look(run.resolver, Encoded(examples, run.tokenizer), run.config.batching, run.config.task.readout)


def look(resolver: Resolver, data: Encoded, batching: Batching, readout: Readout) -> Look:
    """Capture the rows and answers of every item; sorted by length inside, in the split's order outside."""
    records: list[AttentionRecord | None] = [None] * len(data)
    answers = np.full(len(data), -2, dtype=np.int64)
    correct = np.full(len(data), np.nan)
    device = resolver.device
    for batch in evaluation_batches(data, batching, slots_of(readout)):
        rows, chosen = _look_at(resolver, batch.to(device), readout)
        starts = _starts(batch)
        for place, item in enumerate(batch.items.tolist()):
            tokens, example = data.tokens[item], data.examples[item]
            row = rows[place, :, :, starts[place] : starts[place] + len(tokens.ids)]
            records[item] = AttentionRecord(example, tokens.spans, tokens.words, row)
            if chosen is not None:
                answers[item] = chosen[place]
                correct[item] = is_right(chosen[place], example)
    return Look([record for record in records if record is not None], answers, correct)


def answers(resolver: Resolver, data: Encoded, batching: Batching, readout: Readout) -> NDArray[np.int64]:
    """The candidate that the model names for each item, (N,), with attention maps or without.

    -1 is none of them, and -2 an item that a model without a read-out has not answered.
    """
    found = np.full(len(data), -2, dtype=np.int64)
    device = resolver.device
    for batch in evaluation_batches(data, batching, slots_of(readout)):
        with torch.inference_mode():
            here = batch.to(device)
            chosen = _chosen(resolver, resolver.see(here), here, readout)
        if chosen is not None:
            found[batch.items.numpy()] = chosen
    return found


def log_shares(resolver: Resolver, data: Encoded, batching: Batching, readout: Readout) -> NDArray[np.float64]:
    """The log of the share that a read-out of candidates gives each answer, (N, M + 1), "none of them" last.

    M is the most candidates of an item; what an item does not have, and none that is not allowed, is at -inf.
    """
    found = np.full((len(data), max(len(example.candidates) for example in data.examples) + 1), -np.inf)
    device = resolver.device
    for batch in evaluation_batches(data, batching, slots_of(readout)):
        with torch.inference_mode():
            here = batch.to(device)
            shares = resolver.readout.scores(resolver.see(here), here).float().log_softmax(dim=1).cpu().numpy()
        items = batch.items.numpy()
        found[items, : shares.shape[1] - 1] = shares[:, :-1]
        found[items, -1] = shares[:, -1]
    return found


def answered(resolver: Resolver, data: Encoded, batching: Batching, readout: Readout) -> NDArray[np.float64]:
    """Whether each item is answered rightly, (N,), with attention maps or without; NaN without a read-out."""
    found = answers(resolver, data, batching, readout)
    right = [is_right(answer, example) for answer, example in zip(found, data.examples, strict=True)]
    return np.where(found == -2, np.nan, np.array(right, dtype=np.float64))


def is_right(answer: int, example: Example) -> bool:
    """Whether a candidate's number, or -1 for "none of them", answers an example rightly."""
    return answer in example.antecedents if example.antecedents else answer == -1


def _look_at(
    resolver: Resolver, batch: Batch, readout: Readout
) -> tuple[NDArray[np.float32], NDArray[np.int64] | None]:
    with torch.inference_mode():
        seen = resolver.see_with_rows(batch)
        assert seen.rows is not None
        rows = group_mean(seen.rows.transpose(0, 1), batch.query_items, len(batch.items))  # (N, L, H, T)
        return rows.float().cpu().numpy(), _chosen(resolver, seen, batch, readout)


def _chosen(resolver: Resolver, seen: Seen, batch: Batch, readout: Readout) -> NDArray[np.int64] | None:
    """The candidate that the model names for each item, -1 for none of them."""
    if isinstance(readout, NoReadout | Label):
        return None
    scores = resolver.readout.scores(seen, batch)
    chosen = scores.argmax(dim=1)
    chosen[chosen == scores.shape[1] - 1] = -1
    answers: NDArray[np.int64] = chosen.cpu().numpy()
    return answers


def _starts(batch: Batch) -> list[int]:
    """In which column of its row each item begins."""
    length = batch.ids.shape[1]
    places = batch.places.flatten()[batch.query_positions]
    starts = torch.zeros(len(batch.items), dtype=torch.long)
    starts[batch.query_items] = batch.query_positions % length - places
    return starts.tolist()


def whole_maps(
    resolver: Resolver, tokenizer: Tokenizer, example: Example, readout: Readout
) -> tuple[Tokens, NDArray[np.float32]]:
    """Every attention map of one sentence: its T tokens and (L, H, T, T)."""
    return next(iter(each_map(resolver, tokenizer, [example], readout)))


def each_map(
    resolver: Resolver, tokenizer: Tokenizer, examples: list[Example], readout: Readout
) -> Iterator[tuple[Tokens, NDArray[np.float32]]]:
    """The maps of one sentence after the other."""
    device = resolver.device
    for example in examples:
        batch, tokens = one(example, tokenizer, slots_of(readout))
        batch = batch.to(device)
        with torch.inference_mode():
            marks = resolver.readout.marks(batch.slots)
            layers = resolver.encoder.maps(batch.inputs, batch.places, batch.segments, marks, resolver.second(batch))
            yield tokens, torch.stack([layer[0] for layer in layers]).float().cpu().numpy()


def text_maps(resolver: Resolver, tokenizer: Tokenizer, text: str) -> tuple[Tokens, NDArray[np.float32]]:
    """Every attention map of a text about which nothing is asked: its T tokens and (L, H, T, T)."""
    resolver.check_unasked()
    device = resolver.device
    read, tokens = unasked(text, tokenizer)
    with torch.inference_mode():
        layers = resolver.encoder.maps(*(each.to(device) for each in read))
        return tokens, torch.stack([layer[0] for layer in layers]).float().cpu().numpy()
