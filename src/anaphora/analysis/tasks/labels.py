"""Evaluation of models on N texts: accuracy of predicted labels, with a bag-of-words baseline, and perplexity."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from anaphora.analysis.maps.capture import batch_scores
from anaphora.analysis.results.typed_json import Ends
from anaphora.analysis.scores.statistics import DIFFERENCES, SHARES, cluster_interval
from anaphora.base.errors import UserError, counted
from anaphora.data.batches.batching import evaluation_batches, masked_for_evaluation
from anaphora.data.batches.texts import EncodedTexts
from anaphora.data.contamination import normalised_words
from anaphora.data.text import Text
from anaphora.runs.directory import Run
from anaphora.settings.model.encoder import check_length
from anaphora.settings.model.prediction import Label

LabelNumbers = NDArray[np.int64]

INVERSE_PENALTIES = (0.1, 1.0, 10.0)
"""Inverse penalties of the bag-of-words classifier; the one that is best on the development split is used."""


def label_names(run: Run) -> list[str]:
    """Return the names of the labels that a run predicts."""
    assert isinstance(run.config.task.prediction, Label)
    return run.config.task.prediction.labels


def predict_labels(run: Run, texts: Sequence[Text]) -> LabelNumbers:
    """Return the labels that a run predicts from the first chunk of each text, as indices into `label_names`: (N,).

    Raises:
        UserError: a chunk is too long for the model, or the gold label of a text is not among the run's labels.
    """
    data = encode_texts(run, texts, label_names(run))
    answers = np.zeros(len(data), dtype=np.int64)
    for items, scores in batch_scores(run.model, data, run.config.batching):
        answers[items] = scores.argmax(dim=1).cpu().numpy()
    return answers


def bag_of_words(train: Sequence[Text], development: Sequence[Text], texts: Sequence[Text]) -> list[str]:
    """Return the labels predicted by a logistic regression on binary unigrams and bigrams of words.

    This strong baseline (Wang and Manning 2012) is fitted on the training split, with the penalty chosen on the
    development split. If there are more than 1,000 training texts, features that occur in only one of them are dropped.
    In Chinese, each character counts as a word.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    counter = CountVectorizer(
        analyzer=_words_and_bigrams, binary=True, min_df=2 if len(train) > 1000 else 1, dtype=np.float32
    )
    known = counter.fit_transform(one.text for one in train)
    held_out, evaluated = (counter.transform(text.text for text in split) for split in (development, texts))
    return _logistic_regression_labels((known, held_out, evaluated), train, development)


def bag_of_tokens(run: Run, train: Sequence[Text], development: Sequence[Text], texts: Sequence[Text]) -> list[str]:
    """Return the labels predicted by a logistic regression on the set of tokens in the first chunk of each text.

    The tokens are those of the run's tokenizer. The penalty is chosen as in `bag_of_words`.

    Raises:
        UserError: a chunk is too long for the model, or the gold label of a text is not among the run's labels.
    """
    from scipy import sparse

    def features(split: Sequence[Text]) -> Any:
        data = encode_texts(run, split, label_names(run))
        rows = np.repeat(np.arange(len(data)), data.ids.lengths)
        ones = np.ones(len(rows), dtype=np.float32)
        counts = sparse.csr_matrix((ones, (rows, data.ids.flat)), shape=(len(data), data.vocabulary))
        counts.data[:] = 1
        return counts

    return _logistic_regression_labels((features(train), features(development), features(texts)), train, development)


def _logistic_regression_labels(
    features: tuple[Any, Any, Any], train: Sequence[Text], development: Sequence[Text]
) -> list[str]:
    """Return the labels that a logistic regression predicts with the penalty that is best on the development texts.

    `features` holds one feature matrix each for the training, development and evaluated texts.
    """
    from sklearn.linear_model import LogisticRegression

    known, held_out, evaluated = features
    gold = np.array([one.label for one in development])
    best, labels = -1.0, []
    for strength in INVERSE_PENALTIES:
        model = LogisticRegression(C=strength, max_iter=200, tol=1e-3)
        model.fit(known, [one.label for one in train])
        share = float(np.mean(model.predict(held_out) == gold))
        if share > best:
            best, labels = share, [str(label) for label in model.predict(evaluated)]
    return labels


@dataclass(frozen=True, kw_only=True)
class LabelsOfPolicy:
    """Accuracy of the labels that an encoder or a baseline, named `policy`, predicts.

    Intervals are 95 % bootstrap intervals over groups of texts.
    """

    policy: str
    texts: int
    accuracy: float
    interval: Ends
    lowest: float | None  # lowest accuracy over runs; None for a single run
    highest: float | None  # highest accuracy over runs; None for a single run
    first_minus: float  # accuracy of the first encoder or baseline in the table minus this accuracy
    first_minus_interval: Ends


@dataclass(frozen=True, kw_only=True)
class LabelAccuracy:
    """Accuracies of a run (`accuracy`) and of a bag-of-words classifier (`bag`) on the texts with one gold label.

    The label "all" stands for all texts. `more` is `accuracy` - `bag`. Intervals are bootstrapped over groups of texts.
    """

    label: str
    texts: int
    accuracy: float
    accuracy_interval: Ends
    bag: float
    bag_interval: Ends
    more: float
    more_interval: Ends


def accuracy_by_policy(texts: Sequence[Text], answers: Mapping[str, Sequence[Sequence[str]]]) -> list[LabelsOfPolicy]:
    """Return the accuracy of the labels that encoders and baselines predict for texts with gold labels.

    `answers` has the predicted labels as {name of the encoder or baseline: [N labels for each run]}.
    """
    gold = np.array([one.label for one in texts])
    right = {
        name: np.array([np.array(labels) == gold for labels in runs], dtype=np.float64)
        for name, runs in answers.items()
    }
    first = next(iter(right.values())).mean(axis=0)
    groups = _groups(texts)

    def row(name: str, runs: NDArray[np.float64]) -> LabelsOfPolicy:
        mean, of_runs = runs.mean(axis=0), runs.mean(axis=1)
        return LabelsOfPolicy(
            policy=name,
            texts=len(texts),
            accuracy=float(mean.mean()),
            interval=cluster_interval(mean, groups, bounds=SHARES),
            lowest=float(of_runs.min()) if len(runs) > 1 else None,
            highest=float(of_runs.max()) if len(runs) > 1 else None,
            first_minus=float((first - mean).mean()),
            first_minus_interval=cluster_interval(first - mean, groups, bounds=DIFFERENCES),
        )

    return [row(name, runs) for name, runs in right.items()]


def accuracy_by_label(texts: Sequence[Text], answers: Sequence[str], bag: Sequence[str]) -> list[LabelAccuracy]:
    """Return the accuracies of a run (`answers`) and a bag-of-words classifier (`bag`), overall and by gold label."""
    gold = np.array([one.label for one in texts])
    right, bag_right = ((np.array(named) == gold).astype(np.float64) for named in (answers, bag))
    rows = []
    for label in ("", *sorted(set(gold.tolist()))):
        items = np.flatnonzero((gold == label) | (label == ""))
        groups = _groups([texts[item] for item in items.tolist()])
        more = right[items] - bag_right[items]
        row = LabelAccuracy(
            label=label or "all",
            texts=len(items),
            accuracy=float(right[items].mean()),
            accuracy_interval=cluster_interval(right[items], groups, bounds=SHARES),
            bag=float(bag_right[items].mean()),
            bag_interval=cluster_interval(bag_right[items], groups, bounds=SHARES),
            more=float(more.mean()),
            more_interval=cluster_interval(more, groups, bounds=DIFFERENCES),
        )
        rows.append(row)
    return rows


def _groups(texts: Sequence[Text]) -> list[str | int]:
    return [text.group or number for number, text in enumerate(texts)]


def perplexity(run: Run, texts: Sequence[Text]) -> tuple[float, int]:
    """Return the perplexity of masked tokens, exp of their mean cross-entropy, and the number of masked tokens.

    The share of masked tokens is as in training, and every call masks the same tokens.

    Raises:
        UserError: a chunk is too long for the model, or no token is masked.
    """
    data = encode_texts(run, texts, ())
    total, masked = 0.0, 0
    batches = evaluation_batches(data, run.config.batching, slots=0)
    for batch in masked_for_evaluation(batches, run.config.task.masked_lm, data.vocabulary):
        with torch.inference_mode():
            on_device = batch.to(run.model.device)
            logits = run.model.output(run.model(on_device).hidden[on_device.masked_positions])
            gold = on_device.ids.flatten()[on_device.masked_positions]
            total += float(functional.cross_entropy(logits, gold, reduction="sum"))
        masked += len(batch.masked_positions)
    if not masked:
        share = run.config.task.masked_lm
        raise UserError(
            f"data: none of the words of {counted(len(texts), 'text')} is masked at task.masked_lm={share}; give more"
        )
    return math.exp(total / masked), masked


def encode_texts(run: Run, texts: Sequence[Text], labels: Sequence[str], cached: bool = True) -> EncodedTexts:
    """Encode texts for a run's model in chunks of at most `batching.row_tokens` tokens.

    With `labels`, only the first chunk of each text is encoded. Tokens are read from a cache file, which is written if
    it is missing; with `cached=False`, no file is used.

    Raises:
        UserError: a chunk is too long for the model, or the gold label of a text is not in `labels`.
    """
    data = EncodedTexts(texts, run.tokenizer, run.config.batching.row_tokens, labels, cached)
    check_length(run.config.model, data.max_tokens())
    return data


def _words_and_bigrams(text: str) -> Iterator[str]:
    words = normalised_words(text)
    yield from words
    yield from (f"{first} {second}" for first, second in pairwise(words))
