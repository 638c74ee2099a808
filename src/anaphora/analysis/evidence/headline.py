"""The main result: a head selected on the development split, evaluated on another, and compared with chance."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.evidence.evidence import DEVELOPMENT, NAMED, ChosenHead, EncoderFacts, Evidence, MeasuredOn
from anaphora.analysis.maps.answers import Answers, CandidateNumbers
from anaphora.analysis.maps.capture import Capture, capture_run, captured_batches
from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.results.scores import Head
from anaphora.analysis.scores.baselines.stored import shortcut_correctness
from anaphora.analysis.scores.heads import DROP_REASONS, HeadScores, choose_head, is_main, score_records
from anaphora.analysis.scores.measures.levels import composition_shortcuts, level_scores
from anaphora.analysis.scores.strata import summarise
from anaphora.base.errors import UserError
from anaphora.base.locale.translation import _
from anaphora.data.batches.encoded import EncodedSplit
from anaphora.data.example import Example, sample_quads
from anaphora.runs.digests import analysis_code_digest, examples_digest, weights_digest
from anaphora.runs.directory import Run, training_record
from anaphora.settings.batching import Batching
from anaphora.settings.model.prediction import Prediction, reads_candidates

if TYPE_CHECKING:
    from anaphora.model.pronoun_model import PronounModel

FIRST_UNTRAINED_SEED = 1_000_000
"""Untrained models begin here, so that none of them is the start of a run of a usual seed."""
UNTRAINED_DEVELOPMENT, UNTRAINED_MEASURED = 1_000, 3_000
"""Items, as whole quads evenly spread, on which an untrained model chooses its head, and on which that is measured."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Measurement:
    """The scores of any model's heads and answers on one split.

    Attributes:
        split: the name of the split that is reported.
        head: chosen on the development split, unless it is named.
        head_is_named: whether the user named the head, perhaps after looking at the items.
        development: every head's scores there.
        measured: every head's scores on the split that is reported.
        capture: the rows and answers behind `measured`; without rows if only the scores were kept.
        baselines: (N,) correctness of each policy that uses no attention.
        untrained: (R, N) correctness of the head that each of R untrained models chose on the development split, NaN on
            items without a measurement.
        shortcuts: (N,) correctness of each shortcut of the closed list, NaN on items that are no compositions.
        reverse: (N, L, H, M) the weight from each candidate to the pronoun; None if it is not known.
    """

    split: str
    head: Head
    development: HeadScores
    measured: HeadScores
    capture: Capture
    baselines: dict[str, NDArray[np.float64]]
    untrained: NDArray[np.float32]
    shortcuts: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    head_is_named: bool = False
    reverse: NDArray[np.floating] | None = None

    @property
    def task_correct(self) -> NDArray[np.float64]:
        """Return (N,) `Answers.correct` of the model's own answers, for the items that are measured."""
        answers, kept = self.capture.answers, self.measured.kept
        return np.full(len(kept), np.nan) if answers is None else answers.correct[kept]

    @property
    def task_answers(self) -> CandidateNumbers | None:
        """Return (N,) the model's predicted candidate for the measured items; None without a prediction head."""
        answers = self.capture.answers
        return None if answers is None else answers.candidates[self.measured.kept]

    def evidence(self) -> Evidence:
        """Return the scores in the form of `metrics.json`, before any further measures."""
        scores = summarise(self.measured, self.head, self.task_correct, self.baselines, self.untrained)
        levels = level_scores(
            self.measured, self.head, self.task_correct, self.baselines, self.shortcuts, self.untrained
        )
        digests, answers = self._items_digests(), self.capture.answers
        return Evidence(
            split=self.split,
            head=ChosenHead(
                layer=self.head.layer, head=self.head.head, chosen_on=NAMED if self.head_is_named else DEVELOPMENT
            ),
            languages={
                language: replace(cell, items_digest=digests[language]) for language, cell in scores.languages.items()
            },
            strata=scores.strata,
            levels=levels or None,
            dropped=self.measured.dropped,
            undecided=0 if answers is None else int(answers.undecided[self.measured.kept].sum()),
            untrained_models=len(self.untrained),
        )

    def _items_digests(self) -> dict[str, str]:
        """Return a digest of the main items that are measured, by language."""
        by_language: dict[str, list[Example]] = {}
        for example, counts in zip(self.measured.examples, is_main(self.measured.examples), strict=True):
            if counts:
                by_language.setdefault(example.language, []).append(example)
        return {language: examples_digest(examples) for language, examples in by_language.items()}


@dataclass(frozen=True, eq=False, kw_only=True)
class Headline(Measurement):
    """The scores of a run's heads and answers on one split.

    Attributes:
        run: whose heads and answers.
        data: a digest of the items on which heads are chosen and of those that are measured.
    """

    run: Run
    data: str

    @property
    def measured_on(self) -> MeasuredOn:
        """Return the digests of the measured weights, items and code."""
        return MeasuredOn(weights=weights_digest(self.run), data=self.data, code=analysis_code_digest())

    def evidence(self) -> Evidence:
        """Return the scores together with facts about the run."""
        config = self.run.config
        return replace(
            super().evidence(),
            seed=config.seed,
            encoder=EncoderFacts(values=config.model.values),
            train_seconds=training_record(self.run.files.directory).get("train_seconds"),
            reads_candidates=reads_candidates(config.task.prediction),
            head_is_supervised=config.supervises(self.head.layer, self.head.head),
        )


Progress = Callable[[str], None]


def no_progress(stage: str) -> None:
    """Report no progress."""


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
    """Choose a head on the development items and measure it on others.

    Args:
        run: a trained run.
        training: the training items of the baselines; None for no baselines.
        development: where heads are chosen.
        measured: the items to report.
        split: the name of the split that `measured` is.
        untrained: number of randomly initialised models as a control.
        chosen: a head fixed beforehand instead.
        progress: called with the name of each stage.
        keep_rows: whether the rows of the measured items stay in the capture; for a long split they may not fit in
            memory; without them each batch's rows are freed after scoring.
        data: the digest of the development and measured items, if the caller has computed it.

    Raises:
        UserError: there are no development items.
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
    baselines: dict[str, NDArray[np.float64]] = {}
    shortcuts: dict[str, NDArray[np.float64]] = {}
    if training is not None:
        progress(_("baselines"))
        baselines = shortcut_correctness(training, scores.examples)
        shortcuts = composition_shortcuts(training, scores.examples, run.tokenizer)
    # Every untrained model reads the same tokens: the texts are tokenized once.
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


def _score_items(run: Run, examples: Sequence[Example]) -> tuple[HeadScores, Answers | None]:
    data = EncodedSplit(examples, run.tokenizer)
    return score_split(run.model, data, run.config.batching, run.config.task.prediction)


def score_split(
    model: PronounModel, data: EncodedSplit, batching: Batching, prediction: Prediction
) -> tuple[HeadScores, Answers | None]:
    """Score every head on a split, with the model's answers; the rows of a batch are freed after scoring."""
    numbers: list[int] = []
    answers: list[tuple[NDArray[np.int64], Answers]] = []

    def records() -> Iterator[AttentionRecord]:
        for batch in captured_batches(model, data, batching, prediction):
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
    """Return the items on which an untrained model chooses its head, and those on which it is measured."""
    return sample_quads(development, UNTRAINED_DEVELOPMENT), sample_quads(measured, UNTRAINED_MEASURED)


def untrained_seeds(count: int, progress: Progress) -> Iterator[int]:
    """Yield the seeds of the untrained models, reporting each before it is used."""
    for number in range(count):
        progress(_("untrained model {number} of {all}").format(number=number + 1, all=count))
        yield FIRST_UNTRAINED_SEED + number


def untrained_correctness(
    control: Iterable[tuple[HeadScores, HeadScores]], examples: Sequence[Example]
) -> NDArray[np.float32]:
    """Return the correctness of the head that each untrained model chose for itself.

    Args:
        control: of each of R models the scores on development items and on some of `examples`.
        examples: N items that are measured.

    Returns:
        (R, N), NaN on items that the model was not measured on.

    Raises:
        UserError: a model was measured on an item that is not among the `examples`.
    """
    item_numbers: dict[Example, list[int]] = defaultdict(list)
    for number, example in enumerate(examples):
        item_numbers[example].append(number)
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
    batching, prediction = run.config.batching, run.config.task.prediction
    first, second = (score_split(model, data, batching, prediction)[0] for data in (development, measured))
    return first, second
