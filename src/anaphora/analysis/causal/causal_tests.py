"""Causal tests of a trained run or another model: do its answers change when attention is edited?

Intervals are 95 % bootstrap intervals over templates (sentence patterns from which items are generated).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anaphora.analysis.causal.knockout_and_ablation import (
    CausalTests,
    cumulative_cell,
    dose_response_cell,
    knockout_cell,
    single_cell,
)
from anaphora.analysis.causal.language_models import LanguageModelSubject, MaskedRun, answers_by_masks
from anaphora.analysis.causal.one_head import head_level
from anaphora.analysis.causal.patching import aligned_patching, pattern_patching
from anaphora.analysis.causal.subjects import PackedSubject, Subject
from anaphora.analysis.maps.answers import Bools
from anaphora.analysis.maps.capture import answers_pronouns, no_pronoun_answers
from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.results.causal import Causal, CausalCell, HeadAblation, HeadLevel
from anaphora.analysis.results.scores import Groups, Head, HeadPosition
from anaphora.analysis.scores.cells import Cells, cells, each_cell, rounded
from anaphora.analysis.scores.heads import reason_to_drop
from anaphora.base.console import Progress
from anaphora.base.errors import UserError
from anaphora.base.translation import N_
from anaphora.data.batches.encoded import EncodedSplit
from anaphora.data.example import Example
from anaphora.runs.directory import Run

NOTHING_TO_ASK = N_("no item of stratum main has both an antecedent and a distractor")
"""Error message if no item can be tested."""


def one_head_tests_of_run(run: Run, examples: Sequence[Example], head: Head, by: Cells = cells) -> Groups[HeadLevel]:
    """Run only those causal tests that edit a single head, and return their results for each group of items.

    `causal_tests` returns these results in the field `head_level`.

    Args:
        examples: items; those without an antecedent or without another candidate are skipped.
        by: function that divides the items into groups, by default by language and cue category (`kind`).

    Raises:
        UserError: the run has no attention maps, or `head` does not exist in the run; also the errors of `run_subject`.
    """
    subject = run_subject(run, [example for example in examples if reason_to_drop(example) is None])
    layers, heads = subject.shape
    in_order = [Head(layer, number) for layer in range(layers) for number in range(heads)]
    tests = CausalTests(subject, head, in_order, lambda _: None)
    zeroed = {"value_zeroing": tests.zeroed("gold", [head]), "value_zeroing_others": tests.zeroed("other_keys", [head])}
    return each_cell(subject.examples, head_level(tests, zeroed, aligned_patching(tests)), by)


def run_subject(run: Run, testable: Sequence[Example]) -> Subject:
    """Wrap a trained run and items as a `Subject`, the model under test in causal tests.

    Answers come from the run's prediction head, or from its masked-LM output if no prediction head predicts candidates.

    Args:
        testable: items, each with an antecedent and another candidate.

    Raises:
        UserError: `testable` is empty, the run does not predict antecedents, or a run that answers by its masked-LM
            output needs the pronoun as a second input sequence (`model.second_sequence`).
    """
    if reason := why_unanswered(run):
        raise reason
    if not testable:
        raise UserError(NOTHING_TO_ASK)
    if answers_by_masks(run):
        return LanguageModelSubject(MaskedRun(run), testable)
    data = EncodedSplit(testable, run.tokenizer)
    return PackedSubject(run.model, data, run.config.batching)


def why_unanswered(run: Run) -> UserError | None:
    """Return the error for a run that cannot predict antecedents; None if it can."""
    if answers_pronouns(run.config.task.prediction) or answers_by_masks(run):
        return None
    return no_pronoun_answers(run)


def testable_items(examples: Sequence[Example]) -> list[Example]:
    """Return the items of the main results (`Example.is_main`) that have an antecedent and another candidate."""
    return [example for example in examples if example.is_main and reason_to_drop(example) is None]


def causal_tests(
    subject: Subject,
    head: Head,
    order: Sequence[Head],
    records_by_map: Mapping[str, Sequence[AttentionRecord]] | None,
    progress: Progress,
) -> Causal:
    """Run all causal tests on a model: knockout, head ablation, attention-pattern patching and dose-response.

    Patching uses only items that belong to minimal pairs.

    Args:
        subject: model under test, with its items, each of which has an antecedent and another candidate.
        head: head under test, usually the one chosen on development items.
        order: all heads of the layers with attention, best first; the first k are called the best k heads.
        records_by_map: attention records of the pronouns in maps other than raw attention (such as rollout), keyed by
            the name of the map. For each map, the dose-response test correlates the pronoun's weight on a candidate
            with the effect of knocking out the edge from pronoun to candidate in every head. Records of items that
            `subject` lacks are ignored.

    Raises:
        UserError: `order` lacks `head`, or does not hold all heads of each of its layers.
    """
    tests = CausalTests(subject, head, order, progress)
    knocked = tests.knockout()
    single, cumulative = tests.single(), tests.cumulative()
    aligned = aligned_patching(tests)
    patched, alone = pattern_patching(tests, aligned), head_level(tests, knocked["head"], aligned)
    doses = tests.dose_response(records_by_map or {})

    def cell(items: Bools) -> CausalCell:
        return CausalCell(
            items=int(items.sum()),
            task_accuracy=rounded(tests.right[items].mean()),
            knockout=knockout_cell(tests, knocked, items),
            head_ablation=HeadAblation(
                single=tuple(single_cell(tests, one, mode, right, items) for one, mode, right in single),
                cumulative=tuple(cumulative_cell(tests, step, items) for step in cumulative),
            ),
            pattern_patching=patched(items),
            head_level=alone(items),
            dose_response={name: dose_response_cell(tests, dose, items) for name, dose in doses.items()},
        )

    return Causal(
        items=len(subject.examples),
        head=HeadPosition(layer=head.layer, head=head.head),
        languages=each_cell(subject.examples, cell),
    )
