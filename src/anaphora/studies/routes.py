"""By which route an answer reaches the pronoun, for each type of cue: which edges to the candidates it needs.

An answer may rest on the pronoun's own edges to the candidates, in one layer or another, or on other words that attend
to the candidates and to which the pronoun attends. N items, L layers, H heads.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.causal.subjects import Edges, PackedSubject
from anaphora.analysis.evidence.headline import Headline
from anaphora.analysis.maps.answers import Answers
from anaphora.analysis.scores.cells import rounded
from anaphora.analysis.scores.heads import is_main
from anaphora.data.batches.encoded import EncodedSplit
from anaphora.studies.records import GroupMeasures


def accuracy_by_route(headline: Headline) -> GroupMeasures:
    """{language: {type of cue: {measure: value}}} of the main items.

    `without_layer_0_accuracy` is the task accuracy where the pronoun attends to no candidate in layer 0, and
    `without_relay_accuracy` where no other word attends to a candidate in any layer, while the pronoun still does.
    `layer_0_candidate_accuracy` is that of the layer's head that is best on the development split.
    """
    run, main = headline.run, np.flatnonzero(is_main(headline.measured.examples))
    examples = [headline.measured.examples[item] for item in main]
    data = EncodedSplit(examples, run.tokenizer)
    subject = PackedSubject(run.model, data, run.config.batching, run.config.task.prediction)
    layers, heads = subject.shape
    of_pronoun, of_others = _edges_to_candidates(data)
    routes = {f"without_layer_{layer}": _in_layers(of_pronoun, [layer], heads) for layer in range(layers)}
    routes["without_relay"] = _in_layers(of_others, range(layers), heads)

    values = {"task_accuracy": headline.task_correct[main]}
    for name, edges in routes.items():
        values[f"{name}_accuracy"] = Answers.from_scores(examples, subject.knocked_out(edges)).correct
    developed = headline.development
    best = developed.candidate_accuracy[is_main(developed.examples)].mean(axis=0).argmax(axis=1)  # (L,)
    for layer, head in enumerate(best):
        values[f"layer_{layer}_candidate_accuracy"] = headline.measured.candidate_accuracy[main, layer, head]
    values["chance"] = headline.measured.chance[main]

    groups: GroupMeasures = {}
    types = np.array([[example.language, example.factors.get("type") or "all"] for example in examples])
    for language, name in sorted(set(map(tuple, types.tolist()))):
        items = np.flatnonzero((types == [language, name]).all(axis=1))
        means: dict[str, float | None] = {measure: rounded(of[items].mean()) for measure, of in values.items()}
        groups.setdefault(language, {})[name] = {**means, "items": float(len(items))}
    return groups


def _edges_to_candidates(data: EncodedSplit) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Item, query and key of the edges to candidates: those of the pronoun, and those of all words but candidates."""
    of_pronoun: list[tuple[int, int, int]] = []
    of_others: list[tuple[int, int, int]] = []
    for item, (example, tokens) in enumerate(zip(data.examples, data.tokens, strict=True)):
        pronoun = set(tokens.covering(example.pronoun))
        candidates = {token for spans in example.candidates for span in spans for token in tokens.covering(span)}
        for query in range(len(tokens.ids)):
            if query in pronoun:
                of_pronoun += [(item, query, key) for key in sorted(candidates)]
            elif query not in candidates:
                of_others += [(item, query, key) for key in sorted(candidates)]
    return np.array(of_pronoun).reshape(-1, 3), np.array(of_others).reshape(-1, 3)


def _in_layers(token_edges: NDArray[np.int64], layers: Iterable[int], heads: int) -> Edges:
    """Edges between tokens, (E, 3), in every head of some layers."""
    places = np.array([(layer, head) for layer in layers for head in range(heads)])
    item, query, key = np.repeat(token_edges, len(places), axis=0).T
    layer, head = np.tile(places, (len(token_edges), 1)).T
    return Edges(item, layer, head, query, key)
