"""One pass over a split that captures the pronoun's rows of every layer and head, and the model's answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from anaphora.analysis.maps.answers import Answers, correctness
from anaphora.analysis.maps.record import AttentionRecord
from anaphora.base.batch import Batch, EncoderInput
from anaphora.base.errors import UserError
from anaphora.base.locale.translation import N_
from anaphora.data.batches.batching import encode_plain_text, evaluation_batches, single_batch
from anaphora.data.batches.encoded import EncodedSplit
from anaphora.data.batches.text_queries import EncodedChunks
from anaphora.data.example import Example
from anaphora.data.tokens.tokenizer import TokenizedText, Tokenizer
from anaphora.model.prediction import EncoderOutput, group_mean
from anaphora.model.pronoun_model import PronounModel
from anaphora.runs.directory import Run
from anaphora.settings.batching import Batching
from anaphora.settings.model.prediction import Label, NoPrediction, Prediction, slots_of


@dataclass(frozen=True, eq=False)
class Capture:
    """The attention rows and the answers of a model on a split.

    Attributes:
        records: N rows of attention, in the order of the split.
        answers: to the N items; None if the model has no prediction head, or one of labels.
    """

    records: list[AttentionRecord]
    answers: Answers | None

    @property
    def correct(self) -> NDArray[np.float64]:
        """Return (N,) 1 if the answer is right, else 0 (`Answers.correct`); NaN without an answer."""
        return correctness(self.answers, len(self.records))


def capture_run(run: Run, examples: Sequence[Example]) -> Capture:
    """Return the attention rows and the answers of a stored run on some examples."""
    return capture(run.model, EncodedSplit(examples, run.tokenizer), run.config.batching, run.config.task.prediction)


def capture(model: PronounModel, data: EncodedSplit, batching: Batching, prediction: Prediction) -> Capture:
    """Capture the rows and answers of every item, in the split's order."""
    records: list[AttentionRecord | None] = [None] * len(data)
    answers: list[tuple[NDArray[np.int64], Answers]] = []
    for batch in captured_batches(model, data, batching, prediction):
        for item, record in zip(batch.items.tolist(), batch.records, strict=True):
            records[item] = record
        if batch.answers is not None:
            answers.append((batch.items, batch.answers))
    return Capture([record for record in records if record is not None], Answers.in_order(answers) if answers else None)


class CapturedBatch(NamedTuple):
    """The rows and answers of the n items of one batch.

    Attributes:
        items: (n,) their numbers in the split.
        records: their n rows.
        answers: to the n items; None if the model answers nothing about pronouns.
    """

    items: NDArray[np.int64]
    records: list[AttentionRecord]
    answers: Answers | None


def captured_batches(
    model: PronounModel, data: EncodedSplit, batching: Batching, prediction: Prediction
) -> Iterator[CapturedBatch]:
    """Capture one batch at a time, sorted by length; the caller decides what to keep."""
    for batch in evaluation_batches(data, batching, slots_of(prediction)):
        rows, scores = _capture_batch(model, batch.to(model.device), prediction)
        starts = (batch.item_starts % batch.ids.shape[1]).tolist()
        records = []
        for place, item in enumerate(batch.items.tolist()):
            tokens, example = data.tokens[item], data.examples[item]
            row = rows[place, :, :, starts[place] : starts[place] + len(tokens.ids)]
            records.append(AttentionRecord.of(example, tokens, row))
        answers = None if scores is None else Answers.from_scores([record.example for record in records], scores)
        yield CapturedBatch(batch.items.numpy(), records, answers)


def captured_words(
    model: PronounModel, data: EncodedChunks, batching: Batching
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Yield the rows of the Q attending words of each chunk of text: its number and (Q, L, H, T), shortest first.

    Raises:
        UserError: the model reads a pronoun as a second sequence.
    """
    model.check_without_query()
    for batch in evaluation_batches(data, replace(batching, kind="buckets"), 0):
        items, length = batch.items.numpy(), batch.ids.shape[1]
        counts = data.word_counts[items]
        ends = counts.cumsum()
        words, owners, _ = data.query_words.take(items)
        with torch.inference_mode():
            batch = batch.to(model.device)
            tokens = EncoderInput(batch.inputs, batch.positions, batch.segments)
            queries = (batch.query_positions // length, batch.query_positions % length)
            _, rows = model.encoder.forward_with_rows(tokens, queries, batch.masked_positions)  # none is masked
            word_of = torch.from_numpy(words + (ends - counts)[owners]).to(model.device)
            by_word = group_mean(rows.transpose(0, 1), word_of, int(ends[-1])).float().cpu().numpy()
        for item, count, end in zip(items.tolist(), counts.tolist(), ends.tolist(), strict=True):
            yield item, by_word[end - count : end, ..., : len(data.tokens[item].ids)]


def predict_answers(
    model: PronounModel, data: EncodedSplit, batching: Batching, prediction: Prediction
) -> Answers | None:
    """Return the answers of a model to all items; None without a prediction head. The model needs no attention."""
    if not answers_pronouns(prediction):
        return None
    answers = []
    for batch in evaluation_batches(data, batching, slots_of(prediction)):
        with torch.inference_mode():
            on_device = batch.to(model.device)
            scores = _answer_scores(model, model(on_device), on_device)
        items = batch.items.numpy()
        answers.append((items, Answers.from_scores([data.examples[item] for item in items], scores)))
    return Answers.in_order(answers)


def answers_pronouns(prediction: Prediction) -> bool:
    """Check whether this prediction head predicts a candidate."""
    return not isinstance(prediction, NoPrediction | Label)


def no_pronoun_answers(run: Run) -> UserError:
    """Return the error for a run whose prediction head does not predict candidates."""
    message = N_("{run}: this run answers no pronoun question (task.prediction={prediction})")
    return UserError(message, run=run.name, prediction=run.config.task.prediction.kind)


def log_probabilities(
    model: PronounModel, data: EncodedSplit, batching: Batching, prediction: Prediction
) -> NDArray[np.float64]:
    """Return the log-probability of each answer, (N, M + 1), "none of them" last.

    M is the most candidates of an item; absent candidates, and "none of them" if not allowed, are at -inf.
    """
    shares = np.full((len(data), max(len(example.candidates) for example in data.examples) + 1), -np.inf)
    for batch in evaluation_batches(data, batching, slots_of(prediction)):
        with torch.inference_mode():
            on_device = batch.to(model.device)
            scores = model.prediction_head.scores(model(on_device), on_device)
            logs = scores.float().log_softmax(dim=1).cpu().numpy()
        items = batch.items.numpy()
        shares[items, : logs.shape[1] - 1] = logs[:, :-1]
        shares[items, -1] = logs[:, -1]
    return shares


def task_correctness(
    model: PronounModel, data: EncodedSplit, batching: Batching, prediction: Prediction
) -> NDArray[np.float64]:
    """Return `Answers.correct` of each item, (N,), with attention maps or without; NaN without a prediction head."""
    return correctness(predict_answers(model, data, batching, prediction), len(data))


def _capture_batch(
    model: PronounModel, batch: Batch, prediction: Prediction
) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
    """Return the rows of a batch, (N, L, H, T), and the scores of its answers, (N, M + 1), None without any."""
    with torch.inference_mode():
        output = model.forward_with_rows(batch)
        assert output.rows is not None
        rows = group_mean(output.rows.transpose(0, 1), batch.query_items, len(batch.items))  # (N, L, H, T)
        scores = _answer_scores(model, output, batch) if answers_pronouns(prediction) else None
        return rows.float().cpu().numpy(), scores


def _answer_scores(model: PronounModel, output: EncoderOutput, batch: Batch) -> NDArray[np.float32]:
    scores: NDArray[np.float32] = model.prediction_head.scores(output, batch).float().cpu().numpy()
    return scores


def whole_maps(
    model: PronounModel, tokenizer: Tokenizer, example: Example, prediction: Prediction
) -> tuple[TokenizedText, NDArray[np.float32]]:
    """Return every attention map of one sentence: its T tokens and (L, H, T, T)."""
    return next(iter(maps_of_each(model, tokenizer, [example], prediction)))


def maps_of_each(
    model: PronounModel, tokenizer: Tokenizer, examples: list[Example], prediction: Prediction
) -> Iterator[tuple[TokenizedText, NDArray[np.float32]]]:
    """Yield the maps of one sentence after the other."""
    for example in examples:
        batch, tokens = single_batch(example, tokenizer, slots_of(prediction))
        with torch.inference_mode():
            yield tokens, _first_maps(model, model.encoder_input(batch.to(model.device)))


def text_maps(model: PronounModel, tokenizer: Tokenizer, text: str) -> tuple[TokenizedText, NDArray[np.float32]]:
    """Return every attention map of a text without a pronoun question: its T tokens and (L, H, T, T)."""
    model.check_without_query()
    encoder_input, tokens = encode_plain_text(text, tokenizer)
    with torch.inference_mode():
        return tokens, _first_maps(model, encoder_input.to(model.device))


def _first_maps(model: PronounModel, encoder_input: EncoderInput) -> NDArray[np.float32]:
    """Return the maps of the first row of a batch: (L, H, T, T)."""
    layers = model.encoder.maps(encoder_input)
    maps: NDArray[np.float32] = torch.stack([layer[0] for layer in layers]).float().cpu().numpy()
    return maps
