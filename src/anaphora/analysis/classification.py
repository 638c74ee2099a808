"""What a run makes of texts: their labels, beside a bag of words on the same split, or the words hidden in them.

N texts, F features.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
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
    device = next(run.resolver.parameters()).device
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
    from sklearn.linear_model import LogisticRegression

    counter = CountVectorizer(analyzer=_features, binary=True, min_df=2 if len(train) > 1000 else 1, dtype=np.float32)
    known = counter.fit_transform(one.text for one in train)
    held_out, asked = (counter.transform(one.text for one in each) for each in (development, texts))
    best, found = -1.0, []
    for strength in STRENGTHS:
        model = LogisticRegression(C=strength, max_iter=200, tol=1e-3)
        model.fit(known, [one.label for one in train])
        share = float(np.mean(model.predict(held_out) == np.array([one.label for one in development])))
        if share > best:
            best, found = share, [str(label) for label in model.predict(asked)]
    return found


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
    device = next(run.resolver.parameters()).device
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
