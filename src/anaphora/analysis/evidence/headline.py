"""Headline result: accuracy of the head that is chosen on the development split, with chance and baselines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.evidence.evidence import DEVELOPMENT, NAMED, ChosenHead, EncoderFacts, Evidence, MeasuredOn
from anaphora.analysis.maps.answers import UNDECIDED, Answers, CandidateNumbers
from anaphora.analysis.maps.capture import Capture, capture_run, captured_batches
from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.results.scores import Head
from anaphora.analysis.scores.baselines.shortcuts import shortcut_correctness
from anaphora.analysis.scores.heads import DROP_REASONS, HeadScores, choose_head, score_records
from anaphora.analysis.scores.measures.levels import composition_shortcuts, level_scores
from anaphora.analysis.scores.summary import summarise
from anaphora.base.console import Progress
from anaphora.base.errors import UserError
from anaphora.base.translation import _
from anaphora.data.batches.encoded import EncodedSplit
from anaphora.data.example import Example, sample_quads
from anaphora.data.grouping import indices_by
from anaphora.data.tokens.words import UnreadMentions, unread_mentions
from anaphora.runs.directory import Run, training_record
from anaphora.runs.items import analysis_code_digest, examples_digest, weights_digest
from anaphora.settings.model.prediction import reads_candidates
from anaphora.settings.training import Batching

if TYPE_CHECKING:
    from anaphora.model.pronoun_model import PronounModel

FIRST_UNTRAINED_SEED = 1_000_000
"""First seed of the untrained models, larger than the seeds of runs."""
UNTRAINED_DEVELOPMENT, UNTRAINED_MEASURED = 1_000, 3_000
"""Approximate numbers of items, in evenly spaced quads, on which an untrained model's head is chosen and measured."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Measurement:
    """Scores of a model's heads and answers on one split of N items."""

    split: str
    head: Head  # head chosen on the development split, or named by the user
    development: HeadScores  # scores of all heads on the development split
    measured: HeadScores  # scores of all heads on the N items
    capture: Capture  # attention rows and answers on the N items; without rows if these were freed after scoring
    baselines: dict[str, NDArray[np.float64]]  # correctness of each shortcut by name, (N,)
    untrained: NDArray[np.float32]  # correctness of the head of each of R untrained models, (R, N); NaN if not measured
    shortcuts: dict[str, NDArray[np.float64]] = field(default_factory=dict)  # result of `composition_shortcuts`
    head_is_named: bool = False  # whether the user named the head, perhaps after seeing the items
    reverse: NDArray[np.floating] | None = None  # weight from each candidate to the pronoun, (N, L, H, M)

    @property
    def task_correct(self) -> NDArray[np.float64]:
        """Return the correctness of the model's answers to the scored items, (N,); NaN for a model without answers."""
        answers, kept = self.capture.answers, self.measured.kept
        return np.full(len(kept), np.nan) if answers is None else answers.correct[kept]

    @property
    def task_answers(self) -> CandidateNumbers | None:
        """Return the model's predicted candidates for the scored items, (N,); None for a model without answers.

        A tie between right and wrong answers is `UNDECIDED`.
        """
        answers = self.capture.answers
        if answers is None:
            return None
        return np.where(answers.undecided, UNDECIDED, answers.candidates)[self.measured.kept]

    def evidence(self) -> Evidence:
        """Return `Evidence` that contains only scores of the head and the answers, without tests and controls."""
        scores = summarise(self.measured, self.head, self.task_correct, self.baselines, self.untrained)
        levels = level_scores(
            self.measured, self.head, self.task_correct, self.baselines, self.shortcuts, self.untrained
        )
        answers, examples = self.capture.answers, self.measured.examples
        by_language = indices_by(example.language if example.is_main else None for example in examples)
        return Evidence(
            split=self.split,
            head=ChosenHead(
                layer=self.head.layer, head=self.head.head, chosen_on=NAMED if self.head_is_named else DEVELOPMENT
            ),
            languages={
                language: replace(cell, items_digest=examples_digest(examples[item] for item in by_language[language]))
                for language, cell in scores.languages.items()
            },
            strata=scores.strata,
            levels=levels or None,
            dropped=self.measured.dropped,
            undecided=0 if answers is None else int(answers.undecided[self.measured.kept].sum()),
            untrained_models=len(self.untrained),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Headline(Measurement):
    """Scores of a run's heads and answers on one split, with the run and a hash of the items."""

    run: Run
    data: str  # hash of the development and the evaluated items

    @cached_property
    def unread(self) -> UnreadMentions | None:
        """Return the words or characters of pronouns and candidates that the vocabulary lacks; None if it has all."""
        return unread_mentions(self.run.tokenizer.encode, self.measured.examples)

    @property
    def measured_on(self) -> MeasuredOn:
        """Return the hashes of the run's weights, of the evaluated items and of the evaluation code."""
        return MeasuredOn(weights=weights_digest(self.run), data=self.data, code=analysis_code_digest())

    def evidence(self) -> Evidence:
        """Return `Evidence` that contains only the scores, and properties of the run, such as its seed."""
        config = self.run.config
        return replace(
            super().evidence(),
            seed=config.seed,
            encoder=EncoderFacts(values=config.model.values),
            train_seconds=training_record(self.run.files.directory).get("train_seconds"),
            reads_candidates=reads_candidates(config.task.prediction),
            head_is_supervised=config.supervises(self.head.layer, self.head.head),
        )


def no_progress(stage: str) -> None:
    """Ignore a progress message."""


def measure_headline(
    run: Run,
    training: Sequence[Example] | None,
    development: Sequence[Example],
    measured: Sequence[Example],
    split: str,
    untrained: int,
    *,
    chosen: Head | None = None,
    progress: Progress = no_progress,
    keep_rows: bool = True,
    data: str | None = None,
) -> Headline:
    """Choose a head on the development items and measure it on other items.

    Args:
        training: items on which the baselines are fitted; if None, there are no baselines.
        measured: items to report.
        split: name of the split of `measured`.
        untrained: number of randomly initialised models to measure as a control.
        chosen: head to measure; None to choose one on the development items.
        keep_rows: whether the attention rows of the evaluated items stay in memory; if not, each batch's rows are freed
            after scoring.
        data: hash of the development and evaluated items; computed if None.

    Raises:
        UserError: there are no development items, none of those in the main results (`Example.is_main`) can be scored
            (unless `chosen` is given), no item of `measured` can be scored, an item's antecedents are not among the
            candidates that its cue distinguishes (`Example.focal`), or the model has no attention maps.
    """
    if not development:
        raise UserError(
            "split (dev) holds no items, and heads are compared on it before another split is measured: mark rows as "
            "dev in the column split, or leave the column out, and data.dev_share sets some aside"
        )
    progress(_("development split"))
    dev_scores = _score_items(run, development)[0]
    head = chosen or choose_head(dev_scores)
    progress(_("{split} split").format(split=split))
    if keep_rows:
        captured = capture_run(run, measured)
        scores = score_records(captured.records)
    else:
        scores, answers = _score_items(run, measured)
        captured = Capture([], answers)
    if not scores.examples:
        raise no_main_item(split, scores)
    baselines: dict[str, NDArray[np.float64]] = {}
    shortcuts: dict[str, NDArray[np.float64]] = {}
    if training is not None:
        progress(_("baselines"))
        baselines = shortcut_correctness(training, scores.examples)
        shortcuts = composition_shortcuts(training, scores.examples, run.tokenizer)
    # All untrained models get the same tokens, so the texts are tokenized once.
    split_items = untrained_items(development, scores.examples) if untrained else ()
    encoded = [EncodedSplit(examples, run.tokenizer) for examples in split_items]
    control = (_untrained_scores(run, seed, *encoded) for seed in untrained_seeds(untrained, progress))
    return Headline(
        run=run,
        data=data or examples_digest((*development, *measured)),
        split=split,
        head=head,
        development=dev_scores,
        measured=scores,
        capture=captured,
        baselines=baselines,
        untrained=untrained_correctness(control, scores.examples),
        shortcuts=shortcuts,
        head_is_named=chosen is not None,
    )


def no_main_item(split: str, scores: HeadScores) -> UserError:
    """Return the error for a split in which no item can be scored for the main results, with counts by reason."""
    left_out = ", ".join(f"{count} with {reason}" for reason, count in scores.dropped.items())
    return UserError(f"{split} split: no item of stratum main can be scored ({left_out or 'there is none'})")


def _score_items(run: Run, examples: Sequence[Example]) -> tuple[HeadScores, Answers | None]:
    data = EncodedSplit(examples, run.tokenizer)
    return score_split(run.model, data, run.config.batching)


def score_split(model: PronounModel, data: EncodedSplit, batching: Batching) -> tuple[HeadScores, Answers | None]:
    """Return the scores of all heads on a split, and the model's answers (None if it does not predict antecedents).

    Each batch's attention rows are freed after scoring.

    Raises:
        UserError: the split is empty, an item's antecedents are not among the candidates that its cue distinguishes
            (`Example.focal`), or the model has no attention maps.
    """
    numbers: list[int] = []
    answers: list[tuple[NDArray[np.int64], Answers]] = []

    def records() -> Iterator[AttentionRecord]:
        for batch in captured_batches(model, data, batching):
            numbers.extend(batch.items.tolist())
            if batch.answers is not None:
                answers.append((batch.items, batch.answers))
            yield from batch.records

    by_length = score_records(records())
    items = np.array(numbers, dtype=np.int64)[by_length.kept]
    order = np.argsort(items)
    dropped = {reason: by_length.dropped[reason] for reason in DROP_REASONS if reason in by_length.dropped}
    scores = replace(by_length.select(order), kept=items[order], dropped=dropped)
    return scores, Answers.in_order(answers) if answers else None


def untrained_items(
    development: Sequence[Example], measured: Sequence[Example]
) -> tuple[Sequence[Example], Sequence[Example]]:
    """Sample development items and evaluated items for untrained models; items of a group are kept together."""
    return sample_quads(development, UNTRAINED_DEVELOPMENT), sample_quads(measured, UNTRAINED_MEASURED)


def untrained_seeds(count: int, progress: Progress) -> Iterator[int]:
    """Yield the seeds of `count` untrained models, with a progress message before each."""
    for number in range(count):
        progress(_("untrained model {number} of {all}").format(number=number + 1, all=count))
        yield FIRST_UNTRAINED_SEED + number


def untrained_correctness(
    control: Iterable[tuple[HeadScores, HeadScores]], examples: Sequence[Example]
) -> NDArray[np.float32]:
    """Choose a head of each untrained model on development items, and return its correctness on evaluated items.

    Args:
        control: scores of each of R models on development items and on a subset of `examples`.
        examples: the N evaluated items.

    Returns:
        (R, N), NaN on items outside a model's subset.

    Raises:
        UserError: a model has no development item of the main results (`Example.is_main`), or scores on an item outside
            `examples`.
    """
    item_numbers = indices_by(examples)
    rows = []
    for development, measured in control:
        head = choose_head(development)
        row = np.full(len(examples), np.nan, dtype=np.float32)
        accuracies = measured.candidate_accuracy[:, head.layer, head.head]
        for example, accuracy in zip(measured.examples, accuracies, strict=True):
            if example not in item_numbers:
                raise UserError(f"untrained: {example.text!r} is not among the items that are measured")
            row[item_numbers[example]] = accuracy
        rows.append(row)
    return np.array(rows, dtype=np.float32).reshape(len(rows), len(examples))


def _untrained_scores(
    run: Run, seed: int, development: EncodedSplit, measured: EncodedSplit
) -> tuple[HeadScores, HeadScores]:
    model = run.untrained_model(seed)
    first, second = (score_split(model, data, run.config.batching)[0] for data in (development, measured))
    return first, second
