"""Any model's attention under the same scores, statistics and causal tests as a run's.

The pronoun's rows enter as `AttentionRecord` (`record.from_arrays` makes one from the maps of any library); causal
tests ask for a `Subject`, which answers again with edges cut, heads silenced and rows replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anaphora.analysis import baselines
from anaphora.analysis.capture import Look, is_right
from anaphora.analysis.causal import causal_tests, ranked_heads
from anaphora.analysis.examination import told_by_rows
from anaphora.analysis.intervene import Subject
from anaphora.analysis.protocol import protocol
from anaphora.analysis.record import AttentionRecord
from anaphora.analysis.scores import choose_head, score
from anaphora.analysis.settings import CONTROLS, Protocol
from anaphora.analysis.study import Measurement, Progress, silent
from anaphora.analysis.verdict import verdict
from anaphora.data.example import Example
from anaphora.errors import UserError


def evidence_of(
    name: str,
    development: Sequence[AttentionRecord],
    measured: Sequence[AttentionRecord],
    answers: Sequence[int] | None = None,
    subject: Subject | None = None,
    training: Sequence[Example] = (),
    split: str = "test",
    fixed: Protocol | None = None,
    progress: Progress = silent,
) -> tuple[Measurement, dict[str, Any]]:
    """Choose a head on the development records, measure it on others, and gather all the evidence there can be.

    Args:
        name: of the model; it enters the protocol's hash in the place of a run's settings.
        development: where the head is chosen.
        measured: the records to report, none of a development sentence.
        answers: what the model itself names in each of `measured`: a candidate's number, -1 for "none of them". Without
            them task accuracy, agreement and factors' task accuracy are None.
        subject: the model for the causal tests, on items that each have an antecedent and a distractor.
        training: what the learned baselines are fitted on; without it only those are there that need no learning.
        split: what `measured` is called in the report.
        fixed: what was settled beforehand; by default the protocol's own values.
        progress: is told what is going on.

    Returns:
        What was measured, and what `metrics.json` holds of it: "split", "head", "languages", "strata", "dropped",
        "untrained_models", "protocol", "significance", "effects", "factors", "more_scores", "head_roles", "causal"
        (None without a subject), "controls" (none is trained here) and "verdict".

    Raises:
        UserError: the records, answers and subject do not fit each other; the message says what was expected.
    """
    fixed = fixed or Protocol()
    _check_apart(development, measured)
    chosen_on, scores = score(development), score(measured)
    if chosen_on.shape != scores.shape:
        raise UserError(
            f"weights: development has {chosen_on.shape} layers and heads, measured has {scores.shape}; "
            "expected the same model"
        )
    if subject is not None:
        _check_subject(subject, scores.shape)
    head = choose_head(chosen_on)
    policies = baselines.per_item(training, scores.examples) if training else baselines.unlearned(scores.examples)
    found = Measurement(
        split=split,
        head=head,
        development=chosen_on,
        measured=scores,
        seen=_look(measured, answers),
        baselines=policies,
        untrained=np.zeros((0, len(scores.examples)), dtype=np.float32),
    )
    progress("significance, effects, factors and roles")
    metrics = {**found.metrics(), "protocol": protocol(fixed, split, name), **told_by_rows(found, None)}
    metrics["causal"] = (
        None if subject is None else causal_tests(subject, head, ranked_heads(chosen_on), None, progress)
    )
    metrics["controls"] = dict.fromkeys(CONTROLS)
    metrics["verdict"] = verdict(metrics, fixed.alpha)
    return found, metrics


def _check_apart(development: Sequence[AttentionRecord], measured: Sequence[AttentionRecord]) -> None:
    chosen_on = {(record.example.text, record.example.pronoun) for record in development}
    for number, record in enumerate(measured):
        if (record.example.text, record.example.pronoun) in chosen_on:
            raise UserError(
                f"measured[{number}]: {record.example.text!r} is a development sentence too; expected others than "
                "those on which the head is chosen"
            )


def _check_subject(subject: Subject, shape: tuple[int, int]) -> None:
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


def _look(records: Sequence[AttentionRecord], answers: Sequence[int] | None) -> Look:
    """The records with the model's answers, as a run gives them."""
    if answers is None:
        return Look(list(records), np.full(len(records), -2, dtype=np.int64), np.full(len(records), np.nan))
    if len(answers) != len(records):
        raise UserError(f"answers: there are {len(answers)}; expected {len(records)}, one for each measured record")
    for number, (answer, record) in enumerate(zip(answers, records, strict=True)):
        if not -1 <= answer < len(record.example.candidates):
            raise UserError(
                f"answers[{number}]: {answer} is not a candidate; expected 0 to {len(record.example.candidates) - 1}, "
                'or -1 for "none of them"'
            )
    right = [is_right(answer, record.example) for answer, record in zip(answers, records, strict=True)]
    return Look(list(records), np.array(answers, dtype=np.int64), np.array(right, dtype=np.float64))
