"""Measures of a trained model under interventions.

The interventions permute queries, keys or values, knock out edges (attention from a query token to a key token), or
change one head. Arguments named `headline` hold a run, its evaluated items, the scores of its heads, and the head
chosen on the development split. In shapes, N is the number of items, L of layers, E of edges.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.causal.causal_tests import one_head_tests_of_run
from anaphora.analysis.causal.interventions import PROJECTIONS, permuted_projections
from anaphora.analysis.causal.subjects import Edges, PackedSubject
from anaphora.analysis.evidence.headline import Headline
from anaphora.analysis.evidence.measurement import sampled_main_items
from anaphora.analysis.maps.answers import Answers
from anaphora.analysis.maps.capture import maps_of_each, task_correctness
from anaphora.analysis.results.scores import Head
from anaphora.analysis.scores.cells import Cells, cells
from anaphora.analysis.scores.heads import is_main
from anaphora.analysis.scores.measures.levels import COMPOSITION_LEVELS, level_cells
from anaphora.analysis.scores.measures.specificity import pronoun_specificity
from anaphora.data.batches.encoded import EncodedSplit
from anaphora.data.example import Example
from anaphora.data.grouping import indices_by
from anaphora.runs.directory import Run
from anaphora.studies.records import GroupMeasures, group_means, merge

SAMPLED_ITEMS = 800
"""Approximate number of items for one-head tests (about ten forward passes each); items of a quad are kept together."""
_ONE_HEAD_MEASURES = ("antecedent_points", "other_edges_points", "patch_flips", "exchange_flips")


def accuracy_with_permuted_projections(run: Run, examples: Sequence[Example]) -> GroupMeasures:
    """Return the task accuracy with queries, keys or values permuted among the tokens of each sentence.

    The measures of all items are in a group named after the intervention, such as "query permuted". The measures of
    each cue category ("set" or "role") are in a group such as "query permuted, set".
    """
    data = EncodedSplit(examples, run.tokenizer)

    def correct(part: str) -> NDArray[np.float64]:
        with permuted_projections(run.model.encoder, part, run.config.seed):
            return task_correctness(run.model, data, run.config.batching)

    return _accuracies(examples, {f"{part} permuted": correct(part) for part in PROJECTIONS})


def accuracy_with_attention_knockout(headline: Headline) -> GroupMeasures:
    """Return the task accuracy after edges are knocked out in all layers and heads.

    Three sets of edges are knocked out in turn. In the group "candidates knocked out", the pronoun cannot attend to the
    candidates. In "all knocked out", the pronoun can attend only to itself. In "pronoun knocked out", the candidates
    cannot attend to the pronoun. The attention weights of each query token are renormalised over the other key tokens.
    """
    cuts: _Cuts = {
        "candidates knocked out": ("pronoun to candidates", None),
        "all knocked out": ("pronoun to all others", None),
        "pronoun knocked out": ("candidates to pronoun", None),
    }
    examples = headline.measured.examples
    return _accuracies(examples, _correct_after_knockout(headline.run, examples, cuts))


def accuracy_by_route(headline: Headline) -> GroupMeasures:
    """Return the task accuracy when some routes of information from the candidates to the pronoun are blocked.

    Information may reach the pronoun directly, if the pronoun attends to the candidates in some layer, or indirectly,
    through other tokens that attend to the candidates. Only main items (`Example.is_main`) are used, grouped by
    language and cue type (such as causality). The measures are:

    - `without_layer_<l>_accuracy`: task accuracy if the pronoun cannot attend to the candidates in layer l.
    - `without_relay_accuracy`: task accuracy if, in all layers, only the pronoun and the candidates themselves can
      attend to the candidates.
    - `layer_<l>_candidate_accuracy`: candidate accuracy of the head of layer l that is best on the development split.
    - `task_accuracy` and `chance`: task accuracy without an intervention, and accuracy of a random choice among the
      candidates.
    """
    main = np.flatnonzero(is_main(headline.measured.examples))
    examples = [headline.measured.examples[item] for item in main]
    layers = headline.measured.candidate_accuracy.shape[1]
    cuts: _Cuts = {f"without_layer_{layer}_accuracy": ("pronoun to candidates", [layer]) for layer in range(layers)}
    cuts["without_relay_accuracy"] = ("others to candidates", None)
    values = {"task_accuracy": headline.task_correct[main], **_correct_after_knockout(headline.run, examples, cuts)}
    developed = headline.development
    best = developed.candidate_accuracy[is_main(developed.examples)].mean(axis=0).argmax(axis=1)  # (L,)
    for layer, head in enumerate(best):
        values[f"layer_{layer}_candidate_accuracy"] = headline.measured.candidate_accuracy[main, layer, head]
    values["chance"] = headline.measured.chance[main]
    items = indices_by((example.language, example.factors.get("type") or "all") for example in examples)
    return group_means(values, [(*group, np.array(items[group])) for group in sorted(items)])


_Cuts = dict[str, tuple[str, Sequence[int] | None]]
"""Edges to knock out, as (key of `token_edges`, layer indices or None for all layers), keyed by name of the measure."""


def _correct_after_knockout(run: Run, examples: Sequence[Example], cuts: _Cuts) -> dict[str, NDArray[np.float64]]:
    """Return the correctness of the prediction for each item, (N,), after knocking out the edges in each of `cuts`."""
    data = EncodedSplit(examples, run.tokenizer)
    subject = PackedSubject(run.model, data, run.config.batching)
    edges, (layers, heads) = token_edges(data), subject.shape
    knocked_out = {
        name: subject.knocked_out(in_layers(edges[of], range(layers) if only is None else only, heads))
        for name, (of, only) in cuts.items()
    }
    return {name: Answers.from_scores(examples, scores).correct for name, scores in knocked_out.items()}


def token_edges(data: EncodedSplit) -> dict[str, NDArray[np.int64]]:
    """Return the edges between the pronoun, the candidates and the other tokens of each item.

    The keys are "pronoun to candidates", "pronoun to all others", "candidates to pronoun" and "others to candidates".
    The values, (E, 3), are the indices of item, query token and key token.
    """
    edges: dict[str, list[tuple[int, int, int]]] = {}
    for item, (example, tokens) in enumerate(zip(data.examples, data.tokens, strict=True)):
        pronoun, everything = list(tokens.covering(example.pronoun)), range(len(tokens.ids))
        candidates = sorted({token for span in example.spans[1:] for token in tokens.covering(span)})
        others = [token for token in everything if token not in pronoun]
        relays = [token for token in others if token not in candidates]
        for name, queries, keys in (
            ("pronoun to candidates", pronoun, candidates),
            ("pronoun to all others", pronoun, others),
            ("candidates to pronoun", candidates, pronoun),
            ("others to candidates", relays, candidates),
        ):
            edges.setdefault(name, []).extend((item, query, key) for query in queries for key in keys)
    return {name: np.array(triples, dtype=np.int64).reshape(-1, 3) for name, triples in edges.items()}


def in_layers(edges: NDArray[np.int64], layers: Iterable[int], heads: int) -> Edges:
    """Return edges given as (item, query token, key token), (E, 3), repeated for every head of the given layers."""
    pairs = np.array([(layer, head) for layer in layers for head in range(heads)])
    item, query, key = np.repeat(edges, len(pairs), axis=0).T
    layer, head = np.tile(pairs, (len(edges), 1)).T
    return Edges(item, layer, head, query, key)


def _accuracies(examples: Sequence[Example], correct: Mapping[str, NDArray[np.float64]]) -> GroupMeasures:
    """Return the task accuracy under each intervention for all items and for the items of each cue category.

    Args:
        examples: the N items.
        correct: correctness of the predictions, (N,), keyed by name of the intervention.

    Returns:
        Measures by language and group. The group of all items has the name of the intervention; the groups of the cue
        categories are named "<intervention>, set" and "<intervention>, role".
    """
    groups: GroupMeasures = {}
    chance = chance_of(examples)
    for name, of_items in correct.items():
        named = [
            (language, name if group == "all" else f"{name}, {group}", items)
            for language, group, items in cells(examples)
        ]
        merge(groups, group_means({"task_accuracy": of_items, "chance": chance}, named))
    return groups


def chance_of(examples: Sequence[Example]) -> NDArray[np.float64]:
    """Return the accuracy of a random choice among the candidates, (N,): the share of right candidates of each item."""
    return np.array([len(one.antecedents) / max(len(one.candidates), 1) for one in examples], dtype=np.float64)


def one_head_measures(headline: Headline) -> GroupMeasures:
    """Return the effects of interventions on the chosen head, and its specificity, by language and group of items.

    A group is "all", a cue category ("set" or "role"), or a level of the cue type `composition` (`scores_by_level`).
    The group of a level contains all its items; the others contain a sample of about `SAMPLED_ITEMS` main items
    (`Example.is_main`). The measures are:

    - `antecedent_points`: decrease of the task accuracy, in percentage points, if the value vectors of the antecedent
      are set to zero for the pronoun as query, in this head.
    - `other_edges_points`: the same decrease if the value vectors of all other tokens are set to zero.
    - `patch_flips`: share of items whose prediction becomes that of the other sentence of the minimal pair if the
      pronoun's attention weights are replaced by those in that sentence, aligned token by token. Only pairs with two
      right and different predictions are used.
    - `exchange_flips`: share of items whose prediction becomes the strongest distractor if the attention weights on
      this distractor and on the antecedent are exchanged. Only items with a distractor and a correct prediction are
      used.
    - `pronoun_specificity`: mean attention weight from the pronoun to the antecedent, divided by the mean of the
      largest attention weight from any other word to the antecedent.

    Raises:
        UserError: the model predicts no antecedents, or no item can be tested.
    """
    run, head, examples = headline.run, headline.head, headline.measured.examples
    groups = _of_one_head(run, sampled_main_items(examples, SAMPLED_ITEMS), head, cells)
    of_levels = {number for _, _, items in _levels(examples) for number in np.flatnonzero(items).tolist()}
    if of_levels:
        merge(groups, _of_one_head(run, [examples[number] for number in sorted(of_levels)], head, _levels))
    return groups


def _levels(examples: Sequence[Example]) -> Iterator[tuple[str, str, NDArray[np.bool_]]]:
    return (cell for cell in level_cells(examples) if cell[1] in COMPOSITION_LEVELS)


def _of_one_head(run: Run, examples: Sequence[Example], head: Head, by: Cells) -> GroupMeasures:
    tested = one_head_tests_of_run(run, examples, head, by)
    whole = maps_of_each(run.model, run.tokenizer, list(examples))
    specificity = pronoun_specificity(examples, whole, head, by)
    return {
        language: {
            name: {
                **{measure: getattr(cell, measure) for measure in _ONE_HEAD_MEASURES},
                "pronoun_specificity": specificity[language][name].ratio,
            }
            for name, cell in named.items()
        }
        for language, named in tested.items()
    }
