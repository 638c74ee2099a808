"""What a study measures of one run: numbers by language and group of items, stored beside the run and re-used.

A group is "all", a kind of cue, or what a measure adds: "pronoun", "distance 8", "value permuted".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.causal.permutation import PROJECTIONS, permuted_projections
from anaphora.analysis.causal.subjects import Edges, PackedSubject
from anaphora.analysis.evidence.headline import Headline, measure_headline
from anaphora.analysis.evidence.storage import write_evidence
from anaphora.analysis.maps.answers import Answers
from anaphora.analysis.maps.capture import task_correctness
from anaphora.analysis.scores.cells import cells, rounded
from anaphora.analysis.scores.heads import is_main, reason_to_drop
from anaphora.analysis.scores.roles import head_roles
from anaphora.analysis.tasks.antecedent_selection import form_of
from anaphora.analysis.tasks.labels import label_names, predict_labels
from anaphora.base.errors import UserError
from anaphora.base.files import write_json
from anaphora.data.batches.encoded import EncodedSplit
from anaphora.data.example import Example, sample_quads
from anaphora.data.text import Text, evenly_sampled
from anaphora.runs.digests import analysis_code_digest, examples_digest, weights_digest
from anaphora.runs.directory import Run, training_record
from anaphora.runs.items import corpus_of
from anaphora.settings.commands.study import RUN_MEASURES
from anaphora.settings.model.prediction import Label
from anaphora.settings.run import Config
from anaphora.studies import laboratory
from anaphora.studies.levels import scores_by_level
from anaphora.studies.one_head import one_head_measures
from anaphora.studies.records import MEASURED_FILE, GroupMeasures, Query, discard_measures, is_measured, settings_digest
from anaphora.studies.routes import accuracy_by_route

DISTANCE_BINS = (0, 4, 8, 16, 32, 64)
"""Where the groups of distances begin, in words between antecedent and pronoun; the last has no end."""
ANTECEDENT_MARGIN = 0.1
"""Candidate accuracy above chance from which on a head is counted as one that follows antecedents."""
_HEADLINE_MEASURES = ("task_accuracy", "candidate_accuracy", "antecedent_mass", "quad_accuracy", "chance", "items")


@dataclass(frozen=True, eq=False)
class SplitEvaluation:
    """A run's predictions on the items of a split.

    Attributes:
        examples: N items.
        correct: (N,) whether the model's answer is right.
        headline: the scores of its heads; None for a model without attention.
    """

    examples: Sequence[Example]
    correct: NDArray[np.float64]
    headline: Headline | None


def measure_run(run: Run, query: Query) -> None:
    """Measure a finished run, unless it is measured already, and write the numbers into the run's directory.

    A run that was measured on other items is measured anew: runs of a cell are compared on the same ones.
    """
    about_pronouns = any(name in RUN_MEASURES and name != "labels" for name in query.measures)
    examples = _evaluated_examples(run, query) if about_pronouns else {}
    texts = _evaluated_texts(run, query) if "labels" in query.measures else []
    key = {
        **query.to_dict(),
        "weights": weights_digest(run),
        "data": examples_digest((*chain.from_iterable(examples.values()), *texts)),
        "code": analysis_code_digest("anaphora.studies.measures"),
    }
    if is_measured(run.directory, key):
        return
    discard_measures(run.directory)
    groups: GroupMeasures = {}
    evaluation = _evaluate_split(run, query.split, examples) if examples else SplitEvaluation([], np.zeros(0), None)
    for name in query.measures:
        match name:
            case "labels":
                measured = label_accuracy(run, texts)
            case "scores":
                measured = headline_scores(evaluation)
            case "forms":
                measured = scores_by_mention_form(evaluation)
            case "distance":
                measured = scores_by_distance(evaluation)
            case "roles":
                measured = count_relation_heads(evaluation)
            case "permuted":
                measured = accuracy_with_permuted_projections(run, evaluation)
            case "levels":
                measured = scores_by_level(_headline_for(name, evaluation).evidence())
            case "one_head":
                measured = one_head_measures(_headline_for(name, evaluation))
            case "routes":
                measured = accuracy_by_route(_headline_for(name, evaluation))
            case "knockout":
                measured = accuracy_with_attention_knockout(run, evaluation)
            case _:
                measured = _settings_measure(name, run.config)
        _merge(groups, measured)
    head = [evaluation.headline.head.layer, evaluation.headline.head.head] if evaluation.headline else None
    seconds = training_record(run.files.directory).get("train_seconds")
    write_json(run.directory / MEASURED_FILE, {"query": key, "head": head, "train_seconds": seconds, "groups": groups})


def measure_settings(config: Config, directory: Path, query: Query) -> None:
    """Measure what needs no training, unless it is measured already, and write the numbers into a directory."""
    key = {
        **query.to_dict(),
        "settings": settings_digest(config),
        "code": analysis_code_digest("anaphora.studies.measures"),
    }
    if is_measured(directory, key):
        return
    discard_measures(directory)
    groups: GroupMeasures = {}
    for name in query.measures:
        _merge(groups, _settings_measure(name, config))
    write_json(directory / MEASURED_FILE, {"query": key, "head": None, "train_seconds": None, "groups": groups})


def headline_scores(evaluation: SplitEvaluation) -> GroupMeasures:
    """Task accuracy, and where there is attention the alignment of the head that the development split chose."""
    if evaluation.headline is None:
        return _group_means(
            evaluation,
            [(language, group, np.flatnonzero(items)) for language, group, items in cells(evaluation.examples)],
        )
    languages = evaluation.headline.evidence().scores
    return {
        language: {group: {name: getattr(cell, name) for name in _HEADLINE_MEASURES} for group, cell in groups.items()}
        for language, groups in languages.items()
    }


def scores_by_mention_form(evaluation: SplitEvaluation) -> GroupMeasures:
    """Task accuracy and alignment by the form of the query mention: one of `FORMS`."""
    items_by_group: dict[tuple[str, str], list[int]] = {}
    for item in np.flatnonzero(is_main(evaluation.examples)).tolist():
        example = evaluation.examples[item]
        items_by_group.setdefault((example.language, form_of(example)), []).append(item)
    return _group_means(evaluation, [(*key, np.array(items)) for key, items in items_by_group.items()])


def scores_by_distance(evaluation: SplitEvaluation) -> GroupMeasures:
    """Task and candidate accuracy by the number of words between antecedent and pronoun: "distance 8" is 8 to 15."""
    items_by_group: dict[tuple[str, str], list[int]] = {}
    for item in np.flatnonzero(is_main(evaluation.examples)).tolist():
        distance = evaluation.examples[item].distance
        if distance is not None:
            begin = DISTANCE_BINS[int(np.searchsorted(DISTANCE_BINS, distance, side="right")) - 1]
            items_by_group.setdefault((evaluation.examples[item].language, f"distance {begin}"), []).append(item)
    ordered = sorted(items_by_group, key=lambda key: (key[0], int(key[1].split()[1])))
    return _group_means(evaluation, [(*key, np.array(items_by_group[key])) for key in ordered])


def _headline_for(measure: str, evaluation: SplitEvaluation) -> Headline:
    """The scores of a run's heads.

    Raises:
        UserError: the run has no attention, which the measure needs.
    """
    if evaluation.headline is None:
        raise UserError(f"measures ({measure!r}) needs attention maps, which a recurrent network does not have")
    return evaluation.headline


def count_relation_heads(evaluation: SplitEvaluation) -> GroupMeasures:
    """How many heads follow each relation, by the pronoun's rows: antecedent, cue, a fixed neighbour.

    `head_roles` decides when a head follows the cue or a neighbour; it follows antecedents where its candidate accuracy
    is at least ten points above chance.
    """
    headline = _headline_for("roles", evaluation)
    groups: GroupMeasures = {}
    whole = headline.measured
    languages = np.array([example.language for example in whole.examples])
    for language in dict.fromkeys(languages):
        items = whole.select(np.flatnonzero((languages == language) & is_main(whole.examples)))
        roles = [entry.roles for entry in head_roles(items, headline.capture.records, {})]
        chance = float(items.chance.mean())
        follows_antecedents = items.candidate_accuracy.mean(axis=0, dtype=np.float64) >= chance + ANTECEDENT_MARGIN
        counts = {
            "antecedent_heads": int(follows_antecedents.sum()),
            "predicate_heads": sum("cue" in of_head for of_head in roles),
            "neighbour_heads": sum("positional" in of_head for of_head in roles),
        }
        followed = sum(count > 0 for count in counts.values())
        groups[str(language)] = {
            "all": {**{name: float(count) for name, count in counts.items()}, "relations": followed}
        }
    return groups


def accuracy_with_permuted_projections(run: Run, evaluation: SplitEvaluation) -> GroupMeasures:
    """Task accuracy when queries, keys or values are permuted between the tokens of a sentence: "query permuted"."""
    groups: GroupMeasures = {}
    data = EncodedSplit(evaluation.examples, run.tokenizer)
    for part in PROJECTIONS:
        with permuted_projections(run.model.encoder, part, run.config.seed):
            correct = task_correctness(run.model, data, run.config.batching, run.config.task.prediction)
        _merge(groups, _intervention_accuracy(evaluation.examples, correct, f"{part} permuted"))
    return groups


def accuracy_with_attention_knockout(run: Run, evaluation: SplitEvaluation) -> GroupMeasures:
    """Task accuracy where, in every layer and head, some words cannot attend to others.

    With "candidates knocked out" the pronoun attends to no candidate, with "all knocked out" to no other word at all,
    and with "pronoun knocked out" no candidate attends to the pronoun. The weight of an edge that is knocked out goes
    to the rest of its row.

    Raises:
        UserError: the run has no attention.
    """
    _headline_for("knockout", evaluation)
    data = EncodedSplit(evaluation.examples, run.tokenizer)
    subject = PackedSubject(run.model, data, run.config.batching, run.config.task.prediction)
    groups: GroupMeasures = {}
    for name, edges in _knockout_edges(data, *subject.shape).items():
        scores = subject.knocked_out(edges)
        correct = Answers.from_scores(evaluation.examples, scores).correct
        _merge(groups, _intervention_accuracy(evaluation.examples, correct, name))
    return groups


def _knockout_edges(data: EncodedSplit, layers: int, heads: int) -> dict[str, Edges]:
    pairs: dict[str, list[tuple[int, int, int]]] = {
        "candidates knocked out": [],
        "all knocked out": [],
        "pronoun knocked out": [],
    }
    for item, (example, tokens) in enumerate(zip(data.examples, data.tokens, strict=True)):
        pronoun = tokens.covering(example.pronoun)
        candidates = {token for spans in example.candidates for span in spans for token in tokens.covering(span)}
        others = [token for token in range(len(tokens.ids)) if token not in pronoun]
        pairs["candidates knocked out"] += [(item, query, key) for query in pronoun for key in sorted(candidates)]
        pairs["all knocked out"] += [(item, query, key) for query in pronoun for key in others]
        pairs["pronoun knocked out"] += [(item, query, key) for query in sorted(candidates) for key in pronoun]
    everywhere = np.indices((layers, heads)).reshape(2, -1)
    edges = {}
    for name, token_pairs in pairs.items():
        item, query, key = np.repeat(np.array(token_pairs, dtype=np.int64).T, layers * heads, axis=1)
        layer, head = np.tile(everywhere, len(token_pairs))
        edges[name] = Edges(item, layer, head, query, key)
    return edges


def _intervention_accuracy(examples: Sequence[Example], correct: NDArray[np.float64], name: str) -> GroupMeasures:
    """Task accuracy of a model under an intervention, in groups that name it: `name`, and "name, set"."""
    return _group_means(
        SplitEvaluation(examples, correct, None),
        [
            (language, name if group == "all" else f"{name}, {group}", np.flatnonzero(items))
            for language, group, items in cells(examples)
        ],
    )


def label_accuracy(run: Run, texts: Sequence[Text]) -> GroupMeasures:
    """How many of some texts get their label: task accuracy, and as chance the share of the commonest label."""
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
    """The texts whose labels are measured.

    Raises:
        UserError: the run predicts no labels.
    """
    if not isinstance(run.config.task.prediction, Label):
        raise UserError(f"measures ('labels') needs task.prediction=label, not {run.config.task.prediction.kind}")
    return evenly_sampled(corpus_of(run).texts(query.split), query.items or run.config.trainer.limit_items)


def _evaluated_examples(run: Run, query: Query) -> dict[str, list[Example]]:
    """The items of the development split, on which the head is chosen, and of the one that is measured.

    Raises:
        UserError: there are none to measure.
    """
    corpus = corpus_of(run)
    limit = query.items or run.config.trainer.limit_items
    splits = {name: corpus.examples(name) for name in ("dev", query.split)}
    if not splits[query.split]:
        raise UserError(f"split ({query.split}) holds no items")
    return {name: sample_quads(examples, limit) if limit else examples for name, examples in splits.items()}


def _evaluate_split(run: Run, split: str, splits: Mapping[str, list[Example]]) -> SplitEvaluation:
    examples = splits[split]
    if not run.model.encoder.has_maps:
        examples = [example for example in examples if reason_to_drop(example) is None]  # as where heads are scored
        data = EncodedSplit(examples, run.tokenizer)
        correct = task_correctness(run.model, data, run.config.batching, run.config.task.prediction)
        return SplitEvaluation(examples, correct, None)
    headline = measure_headline(run, None, splits["dev"], examples, split, 0)
    write_evidence(headline, run.directory)
    return SplitEvaluation(headline.measured.examples, headline.task_correct, headline)


def _settings_measure(name: str, config: Config) -> GroupMeasures:
    match name:
        case "scaling":
            return laboratory.scaling(config, config.seed)
        case "symmetry":
            return laboratory.symmetry(config, config.seed)
        case "time":
            return laboratory.step_time(config, config.seed)
    raise UserError(f"measures ({name!r}) is none that a study can take")


def _group_means(evaluation: SplitEvaluation, groups: Sequence[tuple[str, str, NDArray[np.int64]]]) -> GroupMeasures:
    """The means over some items each: task accuracy, and the chosen head's alignment where there is one."""
    values = {"task_accuracy": evaluation.correct}
    if evaluation.headline is not None:
        head = evaluation.headline.head
        for name in ("candidate_accuracy", "antecedent_mass"):
            values[name] = getattr(evaluation.headline.measured, name)[:, head.layer, head.head].astype(np.float64)
    chance = [len(example.antecedents) / max(len(example.candidates), 1) for example in evaluation.examples]
    values["chance"] = np.array(chance, dtype=np.float64)
    measured: GroupMeasures = {}
    for language, group, items in groups:
        means: dict[str, float | None] = {name: rounded(of_items[items].mean()) for name, of_items in values.items()}
        measured.setdefault(language, {})[group] = {**means, "items": float(len(items))}
    return measured


def _merge(groups: GroupMeasures, measured: Mapping[str, Mapping[str, Mapping[str, float | None]]]) -> None:
    for language, of_language in measured.items():
        for group, values in of_language.items():
            groups.setdefault(language, {}).setdefault(group, {}).update(values)
