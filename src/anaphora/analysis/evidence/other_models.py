"""Evidence on models from other libraries: the same scores, statistics and causal tests as for runs.

The pronoun's attention rows are given as `AttentionRecord`s; `record.from_arrays` makes a record from any attention
maps. Causal tests need a `Subject`, the model under test: it computes answers with attention edges knocked out, heads
ablated or attention rows patched.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from anaphora.analysis.causal.causal_tests import causal_tests
from anaphora.analysis.causal.subjects import Subject
from anaphora.analysis.evidence.evidence import Evidence
from anaphora.analysis.evidence.headline import Measurement, no_progress, untrained_correctness
from anaphora.analysis.evidence.measurement import row_evidence
from anaphora.analysis.evidence.plan import CONTROLS, Protocol
from anaphora.analysis.evidence.verdict import protocol, verdict, verdict_at_head
from anaphora.analysis.maps.answers import NO_CANDIDATE, Answers
from anaphora.analysis.maps.capture import Capture
from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.results.scores import Head, existing_head
from anaphora.analysis.scores.baselines.shortcuts import shortcut_correctness, unfitted_correctness
from anaphora.analysis.scores.heads import choose_head, ranked_heads, score_records
from anaphora.base.console import Progress
from anaphora.base.errors import UserError
from anaphora.base.translation import _
from anaphora.data.example import Example


def evidence_from_records(
    name: str,
    development: Sequence[AttentionRecord],
    measured: Sequence[AttentionRecord],
    *,
    answers: Sequence[int] | Answers | None = None,
    subject: Subject | None = None,
    training: Sequence[Example] = (),
    split: str = "test",
    fixed: Protocol | None = None,
    progress: Progress = no_progress,
    chosen: Head | None = None,
    untrained: Iterable[tuple[Sequence[AttentionRecord], Sequence[AttentionRecord]]] = (),
) -> tuple[Measurement, Evidence]:
    """Choose a head of a model on development records, and compute the evidence on it from other records.

    Args:
        name: name of the model, which is included in the hash of the protocol.
        development: records on which the head is chosen.
        measured: records to report, without sentences of `development`.
        answers: index of the predicted candidate for each measured record, -1 for "none of them"; or `Answers`, which
            hold ties. Without answers, task accuracies and the agreement of head and answer are None.
        subject: the model under test in the causal tests, with items that each have an antecedent and a distractor.
            Without it, there are no causal tests.
        training: items on which learned baselines are fitted. Without training items, only baselines that need no
            fitting are computed.
        split: name of the split of the measured records, shown in the report.
        fixed: settings of the protocol; None for the defaults.
        chosen: head to evaluate; None to choose one on `development`.
        untrained: for each untrained model, records of development examples and of a subset of the evaluated examples.

    Returns:
        The scores and the evidence computed from them. Not measured are controls, perturbations, attention from other
        words than the pronoun, and kinds of attention map that the records do not hold.

    Raises:
        UserError: the records, answers, subject and `chosen` do not match, a sentence of `measured` is also a
            development sentence, or no item of the main results (`Example.is_main`) can be scored.
    """
    fixed = fixed or Protocol()
    _check_disjoint(development, measured)
    chosen_on, scores = score_records(development), score_records(measured)
    if chosen_on.shape != scores.shape:
        raise UserError(
            f"weights: development has {chosen_on.shape} layers and heads, measured has {scores.shape}; "
            "expected the same model"
        )
    if subject is not None:
        _check_tested_model(subject, scores.shape)
    head = existing_head(chosen, chosen_on.attending_layers, chosen_on.shape[1]) if chosen else choose_head(chosen_on)
    baselines = shortcut_correctness(training, scores.examples) if training else unfitted_correctness(scores.examples)
    measurement = Measurement(
        split=split,
        head=head,
        development=chosen_on,
        measured=scores,
        capture=_capture_from_records(measured, answers),
        baselines=baselines,
        untrained=untrained_correctness(
            ((score_records(first), score_records(second)) for first, second in untrained), scores.examples
        ),
        head_is_named=chosen is not None,
    )
    progress(_("significance, effects, factors and roles"))
    evidence = replace(
        row_evidence(measurement),
        protocol=protocol(fixed, split, name),
        causal=None if subject is None else causal_tests(subject, head, ranked_heads(chosen_on), None, progress),
        controls=dict.fromkeys(CONTROLS),
    )
    return measurement, replace(
        evidence, verdict=verdict(evidence, fixed.alpha), verdict_at_head=verdict_at_head(evidence, fixed.alpha)
    )


def _check_disjoint(development: Sequence[AttentionRecord], measured: Sequence[AttentionRecord]) -> None:
    chosen_on = {(record.example.text, record.example.pronoun) for record in development}
    for number, record in enumerate(measured):
        if (record.example.text, record.example.pronoun) in chosen_on:
            raise UserError(
                f"measured[{number}]: {record.example.text!r} is also a development sentence; expected sentences "
                "on which the head is not chosen"
            )


def _check_tested_model(subject: Subject, shape: tuple[int, int]) -> None:
    if tuple(subject.shape) != shape:
        raise UserError(f"subject: it has {tuple(subject.shape)} layers and heads; expected {shape} as in the records")
    if not subject.examples:
        raise UserError("subject: it has no items; expected at least one")
    for number, example in enumerate(subject.examples):
        if not 0 < len(example.antecedents) < len(example.candidates):
            raise UserError(
                f"subject: item {number} has {len(example.antecedents)} antecedents among {len(example.candidates)} "
                "candidates; expected at least one antecedent and one other candidate"
            )


def _capture_from_records(records: Sequence[AttentionRecord], answers: Sequence[int] | Answers | None) -> Capture:
    """Combine records and answers; raise UserError if an answer is not a candidate or their number is wrong."""
    if answers is None or isinstance(answers, Answers):
        return Capture(list(records), answers)
    if len(answers) != len(records):
        raise UserError(f"answers: there are {len(answers)}; expected {len(records)}, one for each measured record")
    for number, (answer, record) in enumerate(zip(answers, records, strict=True)):
        if not NO_CANDIDATE <= answer < len(record.example.candidates):
            raise UserError(
                f"answers[{number}]: {answer} is not a candidate; expected 0 to {len(record.example.candidates) - 1}, "
                f'or {NO_CANDIDATE} for "none of them"'
            )
    examples = [record.example for record in records]
    return Capture(list(records), Answers.about(examples, np.array(answers, dtype=np.int64)))
