"""Computation of a run's measures by language and group of items; results are stored in the run's directory.

"The chosen head" is the attention head chosen on the development split.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.evidence.headline import Headline, measure_headline
from anaphora.analysis.evidence.storage import HEADS_TABLE, metrics_path, write_evidence
from anaphora.analysis.maps.capture import task_correctness
from anaphora.analysis.scores.cells import cells, rounded
from anaphora.analysis.scores.heads import is_main, reason_to_drop
from anaphora.analysis.scores.measures.roles import head_roles
from anaphora.analysis.tasks.antecedent_selection import form_of
from anaphora.analysis.tasks.labels import label_names, predict_labels
from anaphora.base.errors import UserError
from anaphora.data.batches.encoded import EncodedSplit
from anaphora.data.example import Example, sample_quads
from anaphora.data.grouping import indices_by
from anaphora.data.text import Text, evenly_sampled
from anaphora.runs.directory import Run, claimed, training_record
from anaphora.runs.items import OWN_DATA, analysis_code_digest, corpus_of, examples_digest, weights_digest
from anaphora.settings.model.prediction import Label
from anaphora.settings.run import Config
from anaphora.studies.intervention_measures import (
    accuracy_by_route,
    accuracy_with_attention_knockout,
    accuracy_with_permuted_projections,
    chance_of,
    one_head_measures,
)
from anaphora.studies.plan import DISTANCE_BINS, HEADLINE_MEASURES, LEVEL_MEASURES, RUN_MEASURES
from anaphora.studies.records import GroupMeasures, Query, group_means, measure_once, merge, settings_digest
from anaphora.studies.settings_measures import scaling, step_time, symmetry

ANTECEDENT_MARGIN = 0.1
"""Minimum of candidate accuracy minus chance for a head that counts as an antecedent head."""


@dataclass(frozen=True, eq=False)
class SplitEvaluation:
    """Predictions of a run on N items of a split, and scores of the attention heads on the same items.

    Attributes:
        correct: correctness of the predictions, (N,): 1 for right and 0 for wrong; in a tie for the highest score, the
            share of tied candidates that are right. NaN if the model predicts no antecedents.
        headline: scores of the attention heads; None for a model without attention.
    """

    examples: Sequence[Example]
    correct: NDArray[np.float64]
    headline: Headline | None


def measure_run(run: Run, query: Query) -> None:
    """Measure a finished run and store the results in its directory, unless they are already stored.

    A run is measured again if its weights, the items or the code have changed. The scores of the attention heads are
    also written to the run's directory (`write_evidence`).

    Raises:
        UserError: a measure does not apply to the run, the evaluated split has no items, or scores with other settings
            would be replaced.
    """
    about_pronouns = any(name in RUN_MEASURES and name != "labels" for name in query.measures)
    examples = _evaluated_examples(run, query) if about_pronouns else {}
    texts = _evaluated_texts(run, query) if "labels" in query.measures else []
    data = examples_digest((*chain.from_iterable(examples.values()), *texts))
    key = {**query.key, "weights": weights_digest(run), "data": data, "code": _code_digest()}

    def measured() -> dict[str, Any]:
        evaluation = _evaluate_split(run, query, examples) if examples else SplitEvaluation([], np.zeros(0), None)
        groups: GroupMeasures = {}
        for name in query.measures:
            merge(groups, label_accuracy(run, texts) if name == "labels" else _measure(name, run, evaluation))
        head = evaluation.headline.head if evaluation.headline else None
        return {
            "head": [head.layer, head.head] if head else None,
            "train_seconds": training_record(run.files.directory).get("train_seconds"),
            "groups": groups,
        }

    measure_once(run.directory, key, measured)


def measure_settings(config: Config, directory: Path, query: Query) -> None:
    """Compute the measures that need only a run's settings, and store them in `directory` if they are not yet stored.

    Raises:
        UserError: the model cannot encode the longest sentence to be timed (`SENTENCE_LENGTHS`), or the device does not
            exist.
    """

    def measured() -> dict[str, Any]:
        groups: GroupMeasures = {}
        for name in query.measures:
            merge(groups, _OF_SETTINGS[name](config, config.seed))
        return {"head": None, "train_seconds": None, "groups": groups}

    measure_once(directory, {**query.key, "settings": settings_digest(config), "code": _code_digest()}, measured)


def _code_digest() -> str:
    return analysis_code_digest("anaphora.studies.measures")


def _measure(name: str, run: Run, evaluation: SplitEvaluation) -> GroupMeasures:
    """Return the values of one measure of a run.

    Args:
        name: a measure in `SETTINGS_MEASURES` or `RUN_MEASURES`, except "labels".
        run: the run.
        evaluation: predictions of the run and scores of its heads.

    Raises:
        UserError: the measure needs attention weights, and the model has none.
    """
    if name == "permuted":
        return accuracy_with_permuted_projections(run, evaluation.examples)
    if name in _OF_ITEMS:
        return _OF_ITEMS[name](evaluation)
    if name in _OF_SETTINGS:
        return _OF_SETTINGS[name](run.config, run.config.seed)
    if evaluation.headline is None:
        raise UserError(f"measures ({name!r}) needs attention maps, which a recurrent network does not have")
    return _OF_HEADS[name](evaluation.headline)


def headline_scores(evaluation: SplitEvaluation) -> GroupMeasures:
    """Return the task accuracy and, for models with attention, the scores of the head chosen on the development split.

    The scores are given for each language and cue category ("set" or "role"), and for all items of a language.
    """
    if evaluation.headline is None:
        return _group_means(evaluation, cells(evaluation.examples))
    languages = evaluation.headline.evidence().scores
    return {
        language: {group: {name: getattr(cell, name) for name in HEADLINE_MEASURES} for group, cell in groups.items()}
        for language, groups in languages.items()
    }


def scores_by_mention_form(evaluation: SplitEvaluation) -> GroupMeasures:
    """Return the task accuracy and the scores of the chosen head by the form of the mention to be resolved.

    The form is "pronoun", "proper" (proper noun), "nominal" or "unknown" (`form_of`). Only main items
    (`Example.is_main`) are used.
    """
    examples = evaluation.examples
    items = indices_by((example.language, form_of(example)) if example.is_main else None for example in examples)
    return _group_means(evaluation, [(*group, np.array(of_group)) for group, of_group in items.items()])


def scores_by_distance(evaluation: SplitEvaluation) -> GroupMeasures:
    """Return the task accuracy and the scores of the chosen head by the distance from antecedent to pronoun, in words.

    The group "distance 8" contains distances from 8 to 15 words (`DISTANCE_BINS`). Only main items (`Example.is_main`)
    are used.

    Raises:
        UserError: no item has a known distance.
    """
    if all(example.distance is None for example in evaluation.examples):
        raise UserError("measures ('distance') needs items with the factor distance, which these data do not have")
    items = indices_by(
        (example.language, DISTANCE_BINS[int(np.searchsorted(DISTANCE_BINS, example.distance, side="right")) - 1])
        if example.is_main and example.distance is not None
        else None
        for example in evaluation.examples
    )
    groups = [(language, f"distance {begin}", np.array(items[language, begin])) for language, begin in sorted(items)]
    return _group_means(evaluation, groups)


def count_relation_heads(headline: Headline) -> GroupMeasures:
    """Count the heads in which the pronoun attends to the antecedent, to the cue or to a token at a fixed offset.

    The cue is the word that determines the antecedent. `antecedent_heads` counts heads with a candidate accuracy at
    least `ANTECEDENT_MARGIN` above chance; `predicate_heads` and `neighbour_heads` count heads to which `head_roles`
    assigns the roles "cue" and "positional". `relations` is the number of positive counts among these three.
    """
    groups: GroupMeasures = {}
    whole = headline.measured
    languages, main = np.array([example.language for example in whole.examples]), is_main(whole.examples)
    for language in dict.fromkeys(languages[main]):
        items = whole.select((languages == language) & main)
        roles = [entry.roles for entry in head_roles(items, headline.capture.records, {})]
        least = float(items.chance.mean()) + ANTECEDENT_MARGIN
        counts: dict[str, float | None] = {
            "antecedent_heads": float((items.candidate_accuracy.mean(axis=0, dtype=np.float64) >= least).sum()),
            "predicate_heads": float(sum("cue" in of_head for of_head in roles)),
            "neighbour_heads": float(sum("positional" in of_head for of_head in roles)),
        }
        groups[str(language)] = {"all": {**counts, "relations": sum(map(bool, counts.values()))}}
    return groups


def scores_by_level(headline: Headline) -> GroupMeasures:
    """Return the task accuracy and the scores of the chosen head for each level of the cue type `composition`.

    The level of an item is the number of voices (active, passive) in which training combines its predicate with its
    state (the phrase that describes the pronoun's referent, such as "was tired"): both (L0), one (L1) or none (L2).

    Raises:
        UserError: the data have no items of the cue type `composition`.
    """
    evidence = headline.evidence()
    if not evidence.levels:
        raise UserError("measures ('levels') needs data with compositions, for instance data=compositions")
    return {
        language: {
            name: {measure: getattr(level, measure) for measure in LEVEL_MEASURES} for name, level in levels.items()
        }
        for language, levels in evidence.levels.items()
    }


_OF_ITEMS = {"scores": headline_scores, "forms": scores_by_mention_form, "distance": scores_by_distance}
"""Measures that need no attention maps, by name."""
_OF_HEADS: dict[str, Callable[[Headline], GroupMeasures]] = {
    "roles": count_relation_heads,
    "levels": scores_by_level,
    "one_head": one_head_measures,
    "routes": accuracy_by_route,
    "knockout": accuracy_with_attention_knockout,
}
"""Measures that need attention maps, by name."""
_OF_SETTINGS = {"scaling": scaling, "symmetry": symmetry, "time": step_time}
"""Measures of settings, by name: functions of the settings and a seed."""


def label_accuracy(run: Run, texts: Sequence[Text]) -> GroupMeasures:
    """Return the accuracy of predicted labels by language; chance is that of always predicting the commonest label."""
    names = label_names(run)
    right = np.array([names[number] for number in predict_labels(run, texts)]) == [text.label for text in texts]
    groups: GroupMeasures = {}
    for language in dict.fromkeys(text.language for text in texts):
        items = [number for number, text in enumerate(texts) if text.language == language]
        commonest = max(Counter(texts[item].label for item in items).values())
        means = {"task_accuracy": rounded(right[items].mean()), "chance": rounded(commonest / len(items))}
        groups[language] = {"all": {**means, "items": float(len(items))}}
    return groups


def _evaluated_texts(run: Run, query: Query) -> list[Text]:
    """Return the labelled texts of the evaluated split, sampled at even intervals if their number is limited.

    Raises:
        UserError: the run does not predict labels.
    """
    if not isinstance(run.config.task.prediction, Label):
        raise UserError(f"measures ('labels') needs task.prediction=label, not {run.config.task.prediction.kind}")
    return evenly_sampled(corpus_of(run).texts(query.split), query.items or run.config.trainer.limit_items)


def _evaluated_examples(run: Run, query: Query) -> dict[str, list[Example]]:
    """Return the items of the development split and of the evaluated split, sampled if their number is limited.

    Raises:
        UserError: the evaluated split has no items.
    """
    corpus = corpus_of(run)
    limit = query.items or run.config.trainer.limit_items
    splits = {name: corpus.examples(name) for name in ("dev", query.split)}
    if not splits[query.split]:
        raise UserError(f"split ({query.split}) holds no items")
    return {name: sample_quads(examples, limit) for name, examples in splits.items()}


def _evaluate_split(run: Run, query: Query, splits: Mapping[str, list[Example]]) -> SplitEvaluation:
    examples = splits[query.split]
    if not run.model.encoder.has_maps:
        examples = [example for example in examples if reason_to_drop(example) is None]  # as in the scores of heads
        data = EncodedSplit(examples, run.tokenizer)
        correct = task_correctness(run.model, data, run.config.batching)
        return SplitEvaluation(examples, correct, None)
    about = {"data": OWN_DATA, "items": query.items}
    # The same record as that of `anaphora score`.
    scores = {metrics_path(Path(), query.split).name: about | {"layer": None, "head": None, "untrained": 0}}
    settings = SimpleNamespace(output=None, overwrite=query.overwrite)
    with claimed(run.directory, scores | {HEADS_TABLE: about}, settings, "set overwrite=true"):
        headline = measure_headline(run, None, splits["dev"], examples, query.split, 0)
        write_evidence(headline, run.directory)
    return SplitEvaluation(headline.measured.examples, headline.task_correct, headline)


def _group_means(evaluation: SplitEvaluation, groups: Iterable[tuple[str, str, NDArray[Any]]]) -> GroupMeasures:
    """Return the mean task accuracy and chance of each group of items.

    If the model has attention, also return the mean candidate accuracy and antecedent mass of the chosen head.
    """
    values = {"task_accuracy": evaluation.correct}
    if evaluation.headline is not None:
        head = evaluation.headline.head
        for name in ("candidate_accuracy", "antecedent_mass"):
            values[name] = getattr(evaluation.headline.measured, name)[:, head.layer, head.head].astype(np.float64)
    return group_means(values | {"chance": chance_of(evaluation.examples)}, groups)
