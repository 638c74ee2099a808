"""Capture of the pronoun's attention rows and the model's answers in one pass over a split.

Axes are N (items), L (layers), H (heads), T (tokens) and M (largest number of candidates of an item). Functions that
return attention weights raise `UserError` if the model has no attention maps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anaphora.analysis.maps.answers import Answers, correctness
from anaphora.analysis.maps.record import AttentionRecord
from anaphora.base.batch import EncoderInput
from anaphora.base.errors import UserError
from anaphora.base.translation import N_
from anaphora.data.batches.batching import encode_plain_text, evaluation_batches, single_batch
from anaphora.data.batches.encoded import EncodedSplit
from anaphora.data.batches.texts import EncodedChunks
from anaphora.data.example import Example
from anaphora.data.tokens.tokenizer import TokenizedText, Tokenizer
from anaphora.model.prediction import group_mean
from anaphora.model.pronoun_model import PronounModel
from anaphora.runs.directory import Run
from anaphora.settings.model.prediction import Label, NoPrediction, Prediction, slots_of
from anaphora.settings.training import Batching


@dataclass(frozen=True, eq=False)
class Capture:
    """Attention rows and answers of a model on a split."""

    records: list[AttentionRecord]  # the N items' attention rows, in the order of the split
    answers: Answers | None  # answers to the N items; None if the model has no prediction head or predicts labels

    @property
    def correct(self) -> NDArray[np.float64]:
        """Return the correctness of the answers, (N,); NaN for all items if there are no answers."""
        return correctness(self.answers, len(self.records))


def capture_run(run: Run, examples: Sequence[Example]) -> Capture:
    """Record the pronoun's attention rows and the answers of a trained run on the given examples.

    Raises:
        UserError: the model has no attention maps.
    """
    return capture(run.model, EncodedSplit(examples, run.tokenizer), run.config.batching)


def capture(model: PronounModel, data: EncodedSplit, batching: Batching) -> Capture:
    """Record the pronoun's attention rows and the model's answers for all items, in the order of the split.

    Raises:
        UserError: the model has no attention maps.
    """
    records: dict[int, AttentionRecord] = {}
    answers: list[tuple[NDArray[np.int64], Answers]] = []
    for batch in captured_batches(model, data, batching):
        records.update(zip(batch.items.tolist(), batch.records, strict=True))
        if batch.answers is not None:
            answers.append((batch.items, batch.answers))
    return Capture([records[item] for item in range(len(data))], Answers.in_order(answers) if answers else None)


class CapturedBatch(NamedTuple):
    """Attention rows and answers of the n items of one batch."""

    items: NDArray[np.int64]  # indices of the items in the split, (n,)
    records: list[AttentionRecord]
    answers: Answers | None


def captured_batches(model: PronounModel, data: EncodedSplit, batching: Batching) -> Iterator[CapturedBatch]:
    """Yield the pronoun's attention rows and the model's answers for the items of each batch.

    Raises:
        UserError: the model has no attention maps.
    """
    for batch in evaluation_batches(data, batching, slots_of(model.prediction)):
        on_device = batch.to(model.device)
        with torch.inference_mode():
            output = model.forward_with_rows(on_device)
            assert output.rows is not None
            by_item = group_mean(output.rows.transpose(0, 1), on_device.query_items, len(batch.items))  # (n, L, H, T)
            rows, scores = by_item.float().cpu().numpy(), None
            if answers_pronouns(model.prediction):
                scores = model.prediction_head.scores(output, on_device).float().cpu().numpy()
        _, starts = batch.row_and_token(batch.item_starts)
        records = []
        for row, item, start in zip(rows, batch.items.tolist(), starts.tolist(), strict=True):
            tokens = data.tokens[item]
            own = row[:, :, start : start + len(tokens.ids)]
            records.append(AttentionRecord.of(data.examples[item], tokens, own))
        answers = None if scores is None else Answers.from_scores([record.example for record in records], scores)
        yield CapturedBatch(batch.items.numpy(), records, answers)


def captured_words(
    model: PronounModel, data: EncodedChunks, batching: Batching
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Yield, for each chunk of running text, its index and the attention rows of its Q query words, (Q, L, H, T).

    Chunks come in the order of the batches. A query word's row is the mean over its tokens.

    Raises:
        UserError: the model needs the pronoun as a second input sequence (`model.second_sequence`), or has no attention
            maps.
    """
    model.check_without_query()
    for batch in evaluation_batches(data, replace(batching, kind="buckets"), 0):
        items = batch.items.numpy()
        counts = data.word_counts[items]
        ends = counts.cumsum()
        words, owners, _ = data.query_words.take(items)
        with torch.inference_mode():
            batch = batch.to(model.device)
            tokens = EncoderInput(batch.inputs, batch.positions, batch.segments)
            queries = batch.row_and_token(batch.query_positions)
            _, rows = model.encoder.forward_with_rows(tokens, queries, batch.masked_positions)  # none is masked
            word_of = torch.from_numpy(words + (ends - counts)[owners]).to(model.device)
            by_word = group_mean(rows.transpose(0, 1), word_of, int(ends[-1])).float().cpu().numpy()
        for item, count, end in zip(items.tolist(), counts.tolist(), ends.tolist(), strict=True):
            yield item, by_word[end - count : end, ..., : len(data.tokens[item].ids)]


def predict_answers(model: PronounModel, data: EncodedSplit, batching: Batching) -> Answers | None:
    """Return a model's answers to all items; None if it does not predict antecedents. Attention maps are not needed."""
    if not answers_pronouns(model.prediction):
        return None
    return Answers.in_order(
        (items, Answers.from_scores([data.examples[item] for item in items], scores.cpu().numpy()))
        for items, scores in batch_scores(model, data, batching)
    )


def answers_pronouns(prediction: Prediction) -> bool:
    """Return whether a prediction head with these settings predicts which candidate is the antecedent."""
    return not isinstance(prediction, NoPrediction | Label)


def no_pronoun_answers(run: Run) -> UserError:
    """Return the error for a run that does not predict antecedents."""
    if run.is_encoder_alone:
        message = N_("{model}: it has no output layer over the vocabulary that could be read, so it gives no answers")
        return UserError(message, model=run.name)
    message = N_("{run}: this run answers no pronoun question (task.prediction={prediction})")
    return UserError(message, run=run.name, prediction=run.config.task.prediction.kind)


def log_probabilities(model: PronounModel, data: EncodedSplit, batching: Batching) -> NDArray[np.float64]:
    """Return the log-probability of each answer, "none of them" last: (N, M + 1).

    It is -inf in columns beyond the candidates of an item, and for "none of them" if the model cannot give this answer.

    Raises:
        UserError: the model does not predict antecedents.
    """
    logs = np.empty((len(data), data.max_candidates + 1))
    for items, scores in batch_scores(model, data, batching):
        logs[items] = scores.log_softmax(dim=1).cpu().numpy()
    return logs


def batch_scores(
    model: PronounModel, data: EncodedSplit, batching: Batching
) -> Iterator[tuple[NDArray[np.int64], Tensor]]:
    """Yield the item indices of each batch, (n,), and the scores of all answers, "none of them" last: (n, M + 1)."""
    for batch in evaluation_batches(data, batching, slots_of(model.prediction)):
        with torch.inference_mode():
            on_device = batch.to(model.device)
            scores = model.prediction_head.scores(model(on_device), on_device).float()
        yield batch.items.numpy(), scores


def task_correctness(model: PronounModel, data: EncodedSplit, batching: Batching) -> NDArray[np.float64]:
    """Return the correctness of a model's answers to all items, (N,); NaN if the model does not predict antecedents."""
    return correctness(predict_answers(model, data, batching), len(data))


def whole_maps(
    model: PronounModel, tokenizer: Tokenizer, example: Example
) -> tuple[TokenizedText, NDArray[np.float32]]:
    """Return the tokens of one sentence and its attention maps, (L, H, queries, keys)."""
    return next(iter(maps_of_each(model, tokenizer, [example])))


def maps_of_each(
    model: PronounModel, tokenizer: Tokenizer, examples: list[Example]
) -> Iterator[tuple[TokenizedText, NDArray[np.float32]]]:
    """Yield the tokens of each sentence and its attention maps, (L, H, queries, keys)."""
    for example in examples:
        batch, tokens = single_batch(example, tokenizer, slots_of(model.prediction))
        with torch.inference_mode():
            yield tokens, _first_maps(model, model.encoder_input(batch.to(model.device)))


def text_maps(model: PronounModel, tokenizer: Tokenizer, text: str) -> tuple[TokenizedText, NDArray[np.float32]]:
    """Tokenize a text without a marked pronoun; return its tokens and its attention maps, (L, H, queries, keys).

    Raises:
        UserError: the model needs the pronoun as a second input sequence (`model.second_sequence`), or has no attention
            maps.
    """
    model.check_without_query()
    encoder_input, tokens = encode_plain_text(text, tokenizer)
    with torch.inference_mode():
        return tokens, _first_maps(model, encoder_input.to(model.device))


def _first_maps(model: PronounModel, encoder_input: EncoderInput) -> NDArray[np.float32]:
    """Return the attention maps of the first sentence of a batch: (L, H, T, T)."""
    layers = model.encoder.maps(encoder_input)
    return np.asarray(torch.stack([layer[0] for layer in layers]).float().cpu().numpy())
