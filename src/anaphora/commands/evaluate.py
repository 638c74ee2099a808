"""Evaluate the answers of one run, or compare several runs with shortcut baselines and linear classifiers.

The runs of a comparison must differ only in seed and fold. They are evaluated on `data`, by default on their own data.
Text classifiers are compared only on their own data.

Example: anaphora evaluate run=outputs/demo split=dev
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anaphora.analysis.results.typed_json import table_row
from anaphora.base.checks import at_least, one_of
from anaphora.base.errors import UserError
from anaphora.base.files import write_csv, write_json
from anaphora.base.translation import N_, _
from anaphora.commands.parts.settings import RunHead
from anaphora.data.grouping import indices_by
from anaphora.data.text import evenly_sampled
from anaphora.settings.data import SPLITS, LabelledText, TextCorpus
from anaphora.settings.model.prediction import Label, NoPrediction

if TYPE_CHECKING:
    from anaphora.data.batches.encoded import EncodedSplit
    from anaphora.data.example import Example
    from anaphora.runs.directory import Run

_OF_A_HEAD = ("candidate_accuracy", "antecedent_mass")
"""Columns of the template table that depend on a head, left out if no head is named or chosen."""


@dataclass(kw_only=True)
class Evaluation(RunHead):
    """Settings of `anaphora evaluate`."""

    # Several runs of one recipe instead of `run`, such as `outputs/dpr_*`, evaluated on `data` (by default their own).
    runs: list[str] = field(default_factory=list)
    # With several runs, factors by which the table is broken down; `type+stereotype` combines two factors.
    by: list[str] = field(default_factory=list)
    # With several runs, a factor with two values, such as `stereotype`: the table shows the accuracy for the
    # alphabetically first value minus that for the other.
    contrast: str | None = None
    # With several runs, number of folds, by group, into which the items are divided to fit shortcuts; by default 5.
    folds: int | None = None
    # Split on which the probabilities of a run's answers are calibrated, `train`, `dev` or `test`: a temperature per
    # language goes to `calibration.json` in the run directory; the error on `split`, before and after, is printed.
    calibrate: str | None = None
    output: str | None = None  # folder for the files, by default in the run directory; with several runs a CSV file

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("folds", self.folds, 2)
        if self.calibrate is not None:
            one_of("calibrate", self.calibrate, SPLITS)
        if self.calibrate == self.split:
            raise ValueError(
                f"calibrate ({self.calibrate!r}) must be another split than the one measured ({self.split})"
            )
        one, several = ("layer", "head", "items", "calibrate"), ("by", "contrast", "folds")
        for name in one if self.runs else several:
            if getattr(self, name) not in (None, []):
                which = "run=... (one run)" if self.runs else "runs=[...] (several runs)"
                raise ValueError(f"{name} ({getattr(self, name)}) is for {which}")


def evaluate(settings: Evaluation) -> None:
    """Predict the antecedents in a split, or the labels of its texts; print and write predictions and accuracies.

    For texts and a run without a prediction head, only the perplexity is printed. With `runs`, runs are compared.

    Raises:
        UserError: results on other data would be written among those on the run's own data, `calibrate` or `layer` is
            set for texts, or `output` for a perplexity. Also the errors of `evaluate_runs`, `evaluate_texts` and
            `evaluate_examples`.
    """
    from anaphora.commands.parts import shared
    from anaphora.runs.directory import load

    if settings.runs:
        evaluate_runs(settings)
        return
    run = load(settings.run, settings.trainer)
    of_texts = isinstance(settings.data or run.config.data, TextCorpus)
    only_printed = of_texts and isinstance(run.config.task.prediction, NoPrediction)  # only perplexity
    folder = shared.output_folder(settings.output, run.directory / "evaluation")
    about = shared.result_settings(folder, run, settings)
    results = {} if only_printed else {f"{settings.results_name}_answers.json": about}
    if not only_printed:
        shared.check_place_of_like_data(run, settings)
    elif settings.output is not None:
        raise UserError(f"output ({settings.output}) is for runs with a prediction head; a perplexity is only printed")
    for name in ("calibrate", "layer") if of_texts else ():
        if (value := getattr(settings, name)) is not None:
            raise UserError(f"{name} ({value}) needs pronoun questions, and these data are texts")
    with shared.held_output(folder, run, settings, results), shared.held_calibration(folder, run, settings):
        (evaluate_texts if of_texts else evaluate_examples)(run, settings, folder)


def evaluate_runs(settings: Evaluation) -> list[dict[str, Any]]:
    """Print and return the accuracies of several runs and of baselines; write them as CSV if `output` is set.

    Raises:
        UserError: a run cannot be loaded; the runs differ in more than name, folder, fold and seed; or the CSV cannot
            be written. Also the errors of `compare_answers` or, for text classifiers, `compare_labels`.
    """
    from anaphora.analysis.tasks.cross_validation import require_same_recipe
    from anaphora.commands.parts.shared import check_table, load_runs, write_table

    check_table(settings)
    runs = load_runs(settings.runs, settings.trainer)
    require_same_recipe(runs)
    of_labels = isinstance(runs[0].config.task.prediction, Label)
    rows = (compare_labels if of_labels else compare_answers)(runs, settings)
    write_table(settings, rows)
    return rows


def evaluate_examples(run: Run, settings: Evaluation, folder: Path) -> None:
    """Predict the antecedents in a split, and print the accuracy for each row of `accuracy_rows`.

    Predictions are written to `<name>_answers.json`, where <name> is `settings.results_name`; they are null if the run
    predicts no antecedents. If the model has attention maps, accuracy and the scores of one head for each template
    (sentence pattern) are written to `<name>_templates.csv`.

    Raises:
        UserError: the head in the settings does not exist, the data have no pronouns with candidates, the split is
            empty, or a text is too long for the model; also the errors of `calibrate_answers`.
    """
    from anaphora.analysis.evidence.headline import score_split
    from anaphora.analysis.evidence.storage import answer_temperatures, chosen_head, stored_head
    from anaphora.analysis.maps.answers import correctness
    from anaphora.analysis.maps.capture import predict_answers
    from anaphora.analysis.results.scores import Head
    from anaphora.analysis.scores.summary import template_rows
    from anaphora.base.console import say
    from anaphora.commands.parts.shared import head_of_settings, say_how_long
    from anaphora.commands.parts.tables import print_accuracy, print_answer_note, print_trained_items
    from anaphora.runs.items import encode, evaluation_splits, questions_of

    head = head_of_settings(settings, run) or (stored_head(run) if chosen_head(run) else None)
    material = evaluation_splits(run, settings.split, settings.data, settings.items)
    data, batching = encode(run, material.measured), run.config.batching
    rows: list[dict[str, Any]] = []
    # For the calibration, all answers are computed a second time.
    say_how_long(run, material.measured, passes=1 + bool(settings.calibrate or answer_temperatures(run)))
    if run.model.encoder.has_maps:
        scores, answers = score_split(run.model, data, batching)
        correct = correctness(answers, len(data))
        rows = [asdict(row) for row in template_rows(scores, head or Head(0, 0), correct[scores.kept])]
        if head is None:
            rows = [{name: value for name, value in row.items() if name not in _OF_A_HEAD} for row in rows]
    else:
        answers = predict_answers(run.model, data, batching)
        correct = correctness(answers, len(data))
    answer_rows = [
        {
            "item": number,
            "text": example.text,
            "answer": None if answers is None else int(answers.candidates[number]),
            "antecedents": list(example.antecedents),
            "correct": None if answers is None or answers.undecided[number] else bool(answers.correct[number]),
        }
        for number, example in enumerate(material.measured)
    ]
    write_json(folder / f"{settings.results_name}_answers.json", answer_rows)
    if rows:
        write_csv(folder / f"{settings.results_name}_templates.csv", rows)
    print_accuracy(run.name, material.split, accuracy_rows(material.measured, correct))
    print_answer_note(run, answers)
    calibrate_answers(run, settings, data)
    print_trained_items(run, settings.data, questions_of(material.measured), material.split)
    say(N_("answers and templates: {path}") if rows else N_("answers: {path}"), path=folder)


def calibrate_answers(run: Run, settings: Evaluation, measured: EncodedSplit) -> None:
    """Fit and store temperatures if `calibrate` is set; print the expected calibration error of a calibrated run.

    A temperature scales the logits in one language, and is fitted on the split that `calibrate` names. A language
    without items in this split keeps its temperature.

    Raises:
        UserError: the run does not predict antecedents, or the split named by `calibrate` is empty.
    """
    from anaphora.analysis.evidence.storage import answer_temperatures, is_calibrated_on, write_calibration
    from anaphora.analysis.maps.capture import answers_pronouns, log_probabilities, no_pronoun_answers
    from anaphora.analysis.scores.calibration import calibration_by_language, fit_temperatures
    from anaphora.base.console import say
    from anaphora.commands.parts.shared import say_how_long
    from anaphora.commands.parts.tables import print_calibration, print_fitted_here
    from anaphora.runs.items import encode, evaluation_splits

    if settings.calibrate and not answers_pronouns(run.config.task.prediction):
        raise no_pronoun_answers(run)
    temperatures = answer_temperatures(run)
    if settings.calibrate:
        examples = evaluation_splits(run, settings.calibrate, settings.data, settings.items).measured
        say_how_long(run, examples, passes=1)
        fitted_on = encode(run, examples)
        logs = log_probabilities(run.model, fitted_on, run.config.batching)
        temperatures |= fit_temperatures(fitted_on.examples, logs)
    if not temperatures:
        return
    logs = log_probabilities(run.model, measured, run.config.batching)
    rows = calibration_by_language(measured.examples, logs, temperatures)
    print_calibration(run.name, settings.split, rows)
    data = settings.data or run.config.data
    if settings.calibrate:
        about = {
            "data": data.kind,
            "data_settings": asdict(data),
            "fitted_on": settings.calibrate,
            "measured_on": settings.split,
            "measured": list(map(asdict, rows)),
        }
        path = write_calibration(run, temperatures, about)
        say("temperatures: {path}", path=path)
    elif is_calibrated_on(run, data, settings.split):
        print_fitted_here(data.kind, settings.split)


def evaluate_texts(run: Run, settings: Evaluation, folder: Path) -> None:
    """Predict the labels of a split's texts and compare the accuracy with that of a bag-of-words classifier.

    Labels are written to `<name>_answers.json`, and accuracies to `<name>_labels.csv`, with the name as in
    `evaluate_examples`. For a run without a prediction head, only the perplexity of masked tokens is printed.

    Raises:
        UserError: the split has no texts, the run's task does not fit the data, or a text is too long for the model.
    """
    from anaphora.analysis.tasks import labels as classification
    from anaphora.base.console import say, working
    from anaphora.commands.parts.tables import print_label_accuracy, print_perplexity
    from anaphora.runs.items import corpus_of

    source = settings.data or run.config.data
    corpus = corpus_of(run, settings.data)
    training, development = corpus.texts("train"), corpus.texts("dev")
    texts = evenly_sampled(corpus.texts(settings.split), settings.items or run.config.trainer.limit_items)
    if not texts:
        raise UserError(f"split ({settings.split}) holds no texts")
    if isinstance(run.config.task.prediction, NoPrediction):
        if run.is_encoder_alone:
            raise UserError(
                f"{run.name}: it has no output layer over the vocabulary that could be read, so it has no perplexity"
            )
        perplexity, masked = classification.perplexity(run, texts)
        print_perplexity(run.name, settings.split, perplexity, masked)
        return
    if not isinstance(source, LabelledText) or not isinstance(run.config.task.prediction, Label):
        option = f"task.prediction={run.config.task.prediction.kind}"
        raise UserError(f"{run.directory}: the run's {option} cannot label data={source.kind}")
    names = classification.label_names(run)
    labels = [names[number] for number in classification.predict_labels(run, texts)]
    with working(_("fitting the bag of words on the training split")):
        bag = classification.bag_of_words(training, development, texts)
    rows = [table_row(row) for row in classification.accuracy_by_label(texts, labels, bag)]
    answer_rows = [
        {"item": number, "text": text.text, "label": text.label, "answer": answer, "bag_of_words": other}
        for number, (text, answer, other) in enumerate(zip(texts, labels, bag, strict=True))
    ]
    write_json(folder / f"{settings.results_name}_answers.json", answer_rows)
    write_csv(folder / f"{settings.results_name}_labels.csv", rows)
    print_label_accuracy(run.name, settings.split, rows)
    say("answers and accuracies: {path}", path=folder)


def accuracy_rows(examples: Sequence[Example], correct: Any) -> list[dict[str, Any]]:
    """Return the accuracy, and the least accurate template, for each language, cue category, cue type and stratum.

    A cue is what determines the antecedent. Its category is "set" for cues in single words, such as gender, and "role"
    if it matters who did what to whom. A template is a sentence pattern, and a stratum is a part of a split.

    Args:
        examples: N items.
        correct: correctness, (N,), as in `Answers.correct`. For a model that does not predict antecedents, all values
            are NaN, and the accuracies are None.
    """
    factors = ("kind", "type", "stratum")
    cells = indices_by((example.language, *(example.factors.get(name, "") for name in factors)) for example in examples)
    rows = []
    for (language, kind, cue, stratum), items in sorted(cells.items()):
        by_template: dict[str, list[float]] = {}
        for item in items:
            if template := examples[item].factors.get("template"):
                by_template.setdefault(template, []).append(float(correct[item]))
        accuracy = float(sum(correct[item] for item in items) / len(items))
        is_answered = not math.isnan(accuracy)
        worst_template = ""
        if by_template and is_answered:
            worst, hits = min(by_template.items(), key=lambda entry: sum(entry[1]) / len(entry[1]))
            worst_template = f"{worst} {sum(hits) / len(hits):.2f}"
        rows.append(
            {
                "language": language,
                "kind": kind,
                "type": cue,
                "stratum": stratum,
                "items": len(items),
                "accuracy": accuracy if is_answered else None,
                "worst_template": worst_template,
            }
        )
    return rows


def compare_answers(runs: Sequence[Run], settings: Evaluation) -> list[dict[str, Any]]:
    """Print and return the accuracy of several runs, and of shortcut baselines, on items that the runs have not seen.

    Items whose text is in a run's training or development split are left out.

    Raises:
        UserError: a run does not predict antecedents, the data have no pronouns with candidates, no item is left, a
            factor is unknown, the factor `contrast` does not have two values, or a text is too long for a model.
    """
    from anaphora.analysis.tasks import task_accuracy
    from anaphora.base.console import say, working
    from anaphora.commands.parts.tables import print_answers
    from anaphora.data.store import load as load_corpus
    from anaphora.report.wording import label, split_names
    from anaphora.runs.items import corpus_of

    for run in runs:
        task_accuracy.require_pronoun_head(run)
    source = settings.data or runs[0].config.data
    if isinstance(source, TextCorpus):
        raise UserError(f"data={source.kind} has no pronoun questions; name other data, for instance data=knowref")
    with working(_("reading the data")) as progress:
        examples = load_corpus(source).examples(settings.split)
        # Runs of one recipe have the same data settings, except for the fold.
        corpora = {getattr(run.config.data, "fold", 0): corpus_of(run) for run in runs}
        training = [corpus.examples("train") for corpus in corpora.values()]
        # The runs' own test split counts as unseen: nothing was trained or chosen on it.
        splits = [corpus.examples(part) for corpus in corpora.values() for part in ("train", "dev")]
        seen = {example.text for split in splits for example in split}
        unseen = [example for example in examples if example.text not in seen]
        if not unseen:
            raise UserError(f"split ({settings.split}) of data={source.kind} holds no item that the runs have not seen")
        task_accuracy.check_factors(unseen, settings.by, settings.contrast)
        items = task_accuracy.answer_transfer(runs, training, unseen, settings.folds or 5, source.seed, progress)
    rows = [table_row(row) for row in task_accuracy.accuracy_table(items, settings.by, settings.contrast)]
    trained_on = runs[0].config.data.kind
    title = _(
        "{data}, {split} split, answered by runs on {source}, number of runs: {runs}; shares in %, 95 % over groups"
    ).format(data=source.kind, split=label(split_names(), settings.split), runs=len(runs), source=trained_on)
    print_answers(rows, title)
    if len(unseen) < len(examples):
        left_out = len(examples) - len(unseen)
        say("left out: {items:item|items} whose text is in data={data}", items=left_out, data=trained_on)
    return rows


def compare_labels(runs: Sequence[Run], settings: Evaluation) -> list[dict[str, Any]]:
    """Print and return the accuracy of several text classifiers, of linear classifiers and of the most frequent label.

    All are evaluated on the runs' own data.

    Raises:
        UserError: a setting is only for pronouns with candidates, the split has no texts, or a run's training items
            have changed.
    """
    from anaphora.analysis.tasks import labels as classification
    from anaphora.base.console import working
    from anaphora.commands.parts.tables import print_labels
    from anaphora.runs.items import check_training_items, corpus_of

    for name in ("data", "by", "contrast", "folds"):
        if (given := getattr(settings, name)) not in (None, []):
            value = getattr(given, "kind", given)
            raise UserError(f"{name} ({value}) is for runs that answer pronouns; these runs label their own texts")
    first = runs[0]
    corpus = corpus_of(first)
    for run in runs[1:]:
        check_training_items(run.files.directory, run.config.data, corpus)
    training, development = corpus.texts("train"), corpus.texts("dev")
    texts = evenly_sampled(corpus.texts(settings.split), first.config.trainer.limit_items)
    if not texts:
        raise UserError(f"split ({settings.split}) holds no texts")
    with working(_("answering")):
        names = classification.label_names(first)
        labels: dict[str, list[list[str]]] = {
            "encoder": [[names[label] for label in classification.predict_labels(run, texts)] for run in runs]
        }
    with working(_("fitting the linear models on the training split")):
        labels["bag of its tokens"] = [classification.bag_of_tokens(first, training, development, texts)]
        labels["bag of words and pairs"] = [classification.bag_of_words(training, development, texts)]
    ((most, _count),) = Counter(text.label or "" for text in training).most_common(1)
    labels["most frequent label"] = [[most] * len(texts)]
    rows = [table_row(row) for row in classification.accuracy_by_policy(texts, labels)]
    print_labels(rows, first.config.data.kind, settings.split, len(runs))
    return rows
