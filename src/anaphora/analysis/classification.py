"""What a run makes of texts: their labels, beside a bag of words on the same split, or the words hidden in them.

N texts, F features.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from anaphora.analysis.statistics import cluster_interval
from anaphora.checkpoint import Run
from anaphora.data.batch import evaluation_batches, hidden_alike
from anaphora.data.contamination import words_of
from anaphora.data.encoded_texts import EncodedTexts
from anaphora.data.text import Text
from anaphora.model.settings import Label, check_length

Answers = NDArray[np.int64]

STRENGTHS = (0.1, 1.0, 10.0)
"""Inverse strengths of the bag's penalty; the one that is best on the development split is taken."""


def labels_of(run: Run) -> list[str]:
    """The labels that a run tells apart."""
    assert isinstance(run.config.task.readout, Label)
    return run.config.task.readout.labels


def label_answers(run: Run, texts: Sequence[Text]) -> Answers:
    """The label that a run gives each text: (N,), numbers in `labels_of`."""
    data = _encoded(run, texts, labels_of(run))
    answers = np.zeros(len(data), dtype=np.int64)
    device = run.resolver.device
    for batch in evaluation_batches(data, run.config.batching, slots=0):
        with torch.inference_mode():
            there = batch.to(device)
            scores = run.resolver.readout.scores(run.resolver.see(there), there)
        answers[batch.items.numpy()] = scores.argmax(dim=1).cpu().numpy()
    return answers


def bag_of_words(train: Sequence[Text], development: Sequence[Text], texts: Sequence[Text]) -> list[str]:
    """The label that a linear model of words and pairs of neighbours gives each text.

    A logistic regression on which of them a text holds (Wang and Manning 2012 call it a strong baseline), fitted on the
    training split; its penalty is chosen on the development split. Of Chinese, characters are the words.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    counter = CountVectorizer(analyzer=_features, binary=True, min_df=2 if len(train) > 1000 else 1, dtype=np.float32)
    known = counter.fit_transform(one.text for one in train)
    held_out, asked = (counter.transform(one.text for one in each) for each in (development, texts))
    return _fitted((known, held_out, asked), train, development)


def bag_of_tokens(run: Run, train: Sequence[Text], development: Sequence[Text], texts: Sequence[Text]) -> list[str]:
    """The label that a linear model gives each text that sees what a run's encoder sees, without order.

    The same logistic regression on which of the run's own tokens a text holds, cut off where the run cuts it off.
    """
    from scipy import sparse

    def held(each: Sequence[Text]) -> Any:
        data = _encoded(run, each, labels_of(run))
        rows = np.repeat(np.arange(len(data)), data.ids.lengths)
        ones = np.ones(len(rows), dtype=np.float32)
        counts = sparse.csr_matrix((ones, (rows, data.ids.flat)), shape=(len(data), data.vocabulary))
        counts.data[:] = 1
        return counts

    return _fitted((held(train), held(development), held(texts)), train, development)


def _fitted(features: tuple[Any, Any, Any], train: Sequence[Text], development: Sequence[Text]) -> list[str]:
    """The labels of the last of three matrices by a logistic regression on the first, chosen on the second."""
    from sklearn.linear_model import LogisticRegression

    known, held_out, asked = features
    gold = np.array([one.label for one in development])
    best, found = -1.0, []
    for strength in STRENGTHS:
        model = LogisticRegression(C=strength, max_iter=200, tol=1e-3)
        model.fit(known, [one.label for one in train])
        share = float(np.mean(model.predict(held_out) == gold))
        if share > best:
            best, found = share, [str(label) for label in model.predict(asked)]
    return found


def label_table(texts: Sequence[Text], answers: Mapping[str, Sequence[Sequence[str]]]) -> list[dict[str, Any]]:
    """A row for each policy: how often its labels are right, and how much more often the first policy's are.

    Args:
        texts: N texts with their labels.
        answers: by policy the labels that it gives all texts, one list for each run.

    Returns:
        "policy", "texts", "accuracy" with "low" and "high", over several runs "lowest" and "highest" of them, and
        "first_minus" with its ends. Intervals of 95 % draw texts; the runs stay as they are.
    """
    gold = np.array([one.label for one in texts])
    right = {
        name: np.array([np.array(one) == gold for one in each], dtype=np.float64) for name, each in answers.items()
    }
    first = next(iter(right.values())).mean(axis=0)
    rows = []
    for name, each in right.items():
        several = len(each) > 1
        row: dict[str, Any] = {"policy": name, "texts": len(texts)}
        row |= _ends("accuracy", each.mean(axis=0), ("low", "high"))
        row["lowest"] = float(each.mean(axis=1).min()) if several else None
        row["highest"] = float(each.mean(axis=1).max()) if several else None
        rows.append(row | _ends("first_minus", first - each.mean(axis=0), ("first_minus_low", "first_minus_high")))
    return rows


def _ends(name: str, values: NDArray[np.float64], ends: tuple[str, str]) -> dict[str, Any]:
    low, high = cluster_interval(values, range(len(values))) or (None, None)
    return {name: float(values.mean()), ends[0]: low, ends[1]: high}


def label_rows(texts: Sequence[Text], answers: Sequence[str], bag: Sequence[str]) -> list[dict[str, Any]]:
    """Accuracy of a run and of the bag of words, over all texts and by label, with 95 % bootstrap intervals over texts.

    `more` is the run's accuracy minus the bag's, text by text.
    """
    gold = np.array([one.label for one in texts])
    right, bag_right = (np.array(each) == gold for each in (answers, bag))
    rows = []
    for label in ("", *sorted(set(gold.tolist()))):
        places = np.flatnonzero((gold == label) | (label == ""))
        row: dict[str, Any] = {"label": label or "all", "texts": len(places)}
        values = {"accuracy": right[places], "bag": bag_right[places]}
        values["more"] = right[places].astype(np.float64) - bag_right[places]
        for name, each in values.items():
            low, high = cluster_interval(each, range(len(places))) or (None, None)
            row |= {name: float(each.mean()), f"{name}_low": low, f"{name}_high": high}
        rows.append(row)
    return rows


def perplexity(run: Run, texts: Sequence[Text]) -> tuple[float, int]:
    """The perplexity of hidden words, exp of their mean cross-entropy, and how many tokens they have.

    As many words are hidden as in training, the same ones every time.
    """
    data = _encoded(run, texts, ())
    total, hidden = 0.0, 0
    device = run.resolver.device
    batches = evaluation_batches(data, run.config.batching, slots=0)
    for batch in hidden_alike(batches, run.config.task.hidden_words, data.vocabulary):
        with torch.inference_mode():
            there = batch.to(device)
            logits = run.resolver.output(run.resolver.see(there).hidden[there.masked_positions])
            total += float(
                functional.cross_entropy(logits, there.ids.flatten()[there.masked_positions], reduction="sum")
            )
        hidden += len(batch.masked_positions)
    return math.exp(total / max(1, hidden)), hidden


def _encoded(run: Run, texts: Sequence[Text], labels: Sequence[str]) -> EncodedTexts:
    data = EncodedTexts(texts, run.tokenizer, run.config.batching.row_tokens, labels)
    check_length(run.config.model, data.longest())
    return data


def _features(text: str) -> Iterator[str]:
    words = words_of(text)
    yield from words
    yield from (f"{first} {second}" for first, second in pairwise(words))
