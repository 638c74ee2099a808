"""Effect of knocking out a head's edge from the pronoun to the antecedent, compared with a matched edge.

Axes are T (tokens) and W (width).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from anaphora.analysis.causal.causal_tests import testable_items
from anaphora.analysis.causal.edges import MATCHED_EDGES
from anaphora.analysis.causal.interventions import knockout_edges
from anaphora.analysis.causal.knockout_and_ablation import CausalTests, knockout_cell
from anaphora.analysis.causal.language_models import LanguageModelSubject
from anaphora.analysis.evidence.headline import no_progress
from anaphora.analysis.results.scores import Head
from anaphora.analysis.scores.heads import ranked_heads, score_records
from anaphora.analysis.tasks.gap import INVERSE_PENALTIES
from anaphora.data.example import Example
from anaphora.data.tokens.tokenizer import TokenizedText
from anaphora.hf.editable import TransformersLanguageModel
from anaphora.hf.reader import TransformersModel
from experiments.pointing_heads.items import filled
from experiments.pointing_heads.rows import Part, listed

States = NDArray[np.float64]
"""Last hidden states of the tokens of a text, (T, W)."""


class Cuts:
    """Hidden states of a sentence: intact, without the head's edge to the antecedent, and without a matched edge.

    The matched edge is the head's strongest edge from the pronoun to a word that is not a candidate.

    Attributes:
        tokens: tokens of the sentence.
        whole, without_edge, without_matched: last hidden states, (T, W).
        weights: weights of the two edges.
    """

    def __init__(self, model: TransformersModel, head: Head, example: Example) -> None:
        self.tokens = model.tokenize(example.text)
        self.pronoun = self.tokens.covering(example.pronoun)
        antecedent = mention(self.tokens, example, example.antecedents)
        (maps, self.whole) = _read(model, self.tokens)
        row = maps[model.attending_layers.index(head.layer)][0, head.head, self.pronoun].mean(dim=0)
        matched = max(self._other_words(example), key=lambda places: float(row[places].sum()))
        self.weights = [round(float(row[places].sum()), 4) for places in (antecedent, matched)]
        self.without_edge = _read(model, self.tokens, head, self.pronoun, antecedent)[1]
        self.without_matched = _read(model, self.tokens, head, self.pronoun, matched)[1]

    def _other_words(self, example: Example) -> list[list[int]]:
        """Return the token indices of each word that belongs neither to the pronoun nor to a candidate."""
        taken = {self.tokens.words[place] for span in example.spans for place in self.tokens.covering(span)}
        of_word: dict[int, list[int]] = {}
        for place, (word, span) in enumerate(zip(self.tokens.words, self.tokens.spans, strict=True)):
            if word >= 0 and word not in taken and any(sign.isalnum() for sign in example.text[slice(*span)]):
                of_word.setdefault(word, []).append(place)
        return list(of_word.values())


def mention(tokens: TokenizedText, example: Example, candidates: Sequence[int]) -> list[int]:
    """Return the token indices of the given candidates."""
    spans = [span for number in candidates for span in example.candidates[number]]
    return sorted({place for span in spans for place in tokens.covering(span)})


def vector_part(model: TransformersModel, head: Head, examples: Sequence[Example]) -> Part:
    """Measure how far the knockout moves the sentence vector from that of a version with the antecedent (cosine).

    A version has a candidate in place of the pronoun. The margin is the cosine with the antecedent's version, minus
    that with the version of the candidate that is the antecedent in the other sentence of the minimal pair.
    """
    meant: dict[str, set[int]] = {}
    for example in examples:
        meant.setdefault(example.minimal_pair, set()).update(example.antecedents)
    fall: dict[str, list[float]] = {"edge": [], "matched": []}
    margins, weights = [], []
    for example in examples:
        cuts = Cuts(model, head, example)
        right = example.antecedents[0]
        wrong = next(iter(meant[example.minimal_pair] - set(example.antecedents)), int(right == 0))
        versions = [_read(model, model.tokenize(filled(example, number)))[1].mean(axis=0) for number in (right, wrong)]

        def margin(states: States, versions: Sequence[NDArray[np.float64]] = versions) -> float:
            return _cosine(states.mean(axis=0), versions[0]) - _cosine(states.mean(axis=0), versions[1])

        before = margin(cuts.whole)
        margins.append(before)
        weights.append(cuts.weights)
        fall["edge"].append(before - margin(cuts.without_edge))
        fall["matched"].append(before - margin(cuts.without_matched))
    return {
        **_groups(examples),
        "margin": [round(100 * value, 5) for value in margins],
        "fall": {name: [round(100 * value, 5) for value in values] for name, values in fall.items()},
        "weights": weights,
    }


def probe_part(model: TransformersModel, head: Head, fitted_on: Sequence[Example], examples: Sequence[Example]) -> Part:
    """Fit a probe on intact sentences, and measure its answers on other sentences, intact and without an edge."""
    from sklearn.linear_model import LogisticRegressionCV
    from sklearn.model_selection import GroupKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rows, labels, groups = [], [], []
    for example in fitted_on:
        tokens = model.tokenize(example.text)
        products = _products(tokens, example, _read(model, tokens)[1])
        rows += list(products)
        labels += [number in example.antecedents for number in range(len(products))]
        groups += [example.group] * len(products)
    folds = list(GroupKFold(5).split(rows, labels, groups))
    reader = LogisticRegressionCV(
        Cs=list(INVERSE_PENALTIES), cv=folds, scoring="neg_log_loss", max_iter=2000, l1_ratios=(0,),
        use_legacy_attributes=False,
    )  # fmt: skip
    probe = make_pipeline(StandardScaler(), reader).fit(np.stack(rows), labels)
    right: dict[str, list[float]] = {"whole": [], "edge": [], "matched": []}
    for example in examples:
        cuts = Cuts(model, head, example)
        for name, states in (("whole", cuts.whole), ("edge", cuts.without_edge), ("matched", cuts.without_matched)):
            likely = probe.decision_function(_products(cuts.tokens, example, states))
            right[name].append(float(int(likely.argmax()) in example.antecedents))
    return {
        **_groups(examples),
        "right": right,
        "fitted_on": len(fitted_on),
        "inverse_penalty": float(chosen_inverse_penalty(probe)),
    }


def chosen_inverse_penalty(probe: Any) -> float:
    """Return the inverse penalty of a fitted probe, chosen by cross-validation."""
    return float(np.ravel(probe[-1].C_)[0])


def likelihoods_part(model: TransformersModel, development: Sequence[Example], examples: Sequence[Example]) -> Part:
    """Knock out edges of a language model's best head, and measure the model's answers by likelihood."""
    ranked = ranked_heads(score_records(model.records(development)))
    subject = LanguageModelSubject(TransformersLanguageModel(model), testable_items(examples))
    tests = CausalTests(subject, ranked[0], ranked, no_progress)
    everything = np.ones(len(subject.examples), dtype=bool)
    knocked = {kind: tests.knocked_out(kind, [tests.head]) for kind in ("gold", *MATCHED_EDGES)}
    cell = knockout_cell(tests, {"head": knocked}, everything)["head"]
    pointing = score_records(model.records(subject.examples)).candidate_accuracy[:, ranked[0].layer, ranked[0].head]
    return {
        **_groups(subject.examples),
        "head": [ranked[0].layer, ranked[0].head],
        "pointing": listed(pointing),
        "right": listed(tests.right),
        "without": {kind: listed(done.right) for kind, done in knocked.items() if done is not None},
        "difference": cell.gold_minus_matched.value,
        "interval": cell.gold_minus_matched.interval,
    }


def _groups(examples: Sequence[Example]) -> Part:
    return {"group": [each.group for each in examples], "type": [each.factors.get("type", "") for each in examples]}


def _read(
    model: TransformersModel,
    tokens: TokenizedText,
    head: Head | None = None,
    queries: Sequence[int] = (),
    keys: Sequence[int] = (),
) -> tuple[list[torch.Tensor], States]:
    """Return a text's maps and last hidden states, with a head's edges from queries to keys knocked out."""
    cut = []
    if head is not None:
        pairs = [(query, key) for query in queries for key in keys]
        cut = [
            knockout_edges({head: (torch.tensor([one for one, _ in pairs]), torch.tensor([one for _, one in pairs]))})
        ]
    maps, outputs = model.editable.read([tokens], cut)
    return maps, outputs[0].double().numpy()


def _products(tokens: TokenizedText, example: Example, states: States) -> States:
    """Return the product of the pronoun's state and each candidate's state, (M, W)."""
    pronoun = states[tokens.covering(example.pronoun)].mean(axis=0)
    return np.stack(
        [pronoun * states[mention(tokens, example, [number])].mean(axis=0) for number in range(len(example.candidates))]
    )


def _cosine(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    return float(one @ other / np.sqrt((one @ one) * (other @ other)))
