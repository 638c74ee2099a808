"""Causal tests: the model's answers with edges knocked out, heads ablated and rows patched.

N items, L layers, H heads, M candidates at most, Q tokens of the pronoun, T tokens of a sentence. A *drop* is the loss
of task accuracy: 0.3 is 30 percentage points. Intervals are 95 % bootstrap intervals over templates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anaphora.analysis.causal.battery import CausalTests, has_antecedent_and_distractor
from anaphora.analysis.causal.cells import cumulative_cell, dose_response_cell, knockout_cell, patch_cell, single_cell
from anaphora.analysis.causal.language_models.of_run import MaskedRun, answers_by_masks
from anaphora.analysis.causal.language_models.subject import LanguageModelSubject
from anaphora.analysis.causal.one_head import head_level_cell, one_head
from anaphora.analysis.causal.outcomes import Bools, Progress
from anaphora.analysis.causal.subjects import PackedSubject, Subject
from anaphora.analysis.maps.capture import answers_pronouns, no_pronoun_answers
from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.results.causal import Causal, CausalCell, HeadAblation, HeadLevel
from anaphora.analysis.results.scores import Groups, Head, HeadPosition
from anaphora.analysis.scores.cells import Cells, by_language_and_kind, cells, rounded
from anaphora.analysis.scores.heads import HeadScores, is_main, ranked_heads
from anaphora.base.errors import UserError
from anaphora.base.locale.translation import N_
from anaphora.data.batches.encoded import EncodedSplit
from anaphora.data.example import Example
from anaphora.runs.directory import Run

NOTHING_TO_ASK = N_("no item of stratum main has both an antecedent and a distractor")
"""The error about items of which none can be tested causally."""


def causal_tests_of_run(
    run: Run,
    examples: Sequence[Example],
    head: Head,
    head_scores: HeadScores,
    records_by_map: Mapping[str, Sequence[AttentionRecord]] | None,
    progress: Progress,
) -> Causal:
    """Run all causal tests of a trained run, on the main items that have an antecedent and a distractor.

    Args:
        run: the run.
        examples: the items, thinned by the caller; the pattern patch needs minimal pairs.
        head: the head that the development split chose.
        head_scores: every head's scores on the development split, by which heads are ranked.
        records_by_map: the rows of other maps on the same items, for the dose-response.
        progress: called with a line about what is being measured.

    Returns:
        As `causal_tests`.

    Raises:
        UserError: the run answers nothing, or there is no item to test.
    """
    subject = run_subject(run, testable_items(examples))
    return causal_tests(subject, head, ranked_heads(head_scores), records_by_map, progress)


def one_head_tests_of_run(run: Run, examples: Sequence[Example], head: Head, by: Cells = cells) -> Groups[HeadLevel]:
    """Test one head alone, as `causal_tests` does for `head_level`.

    Args:
        run: the run.
        examples: the items; those without an antecedent or a distractor are passed over.
        head: the head under test.
        by: the grouping of the items; by default main items by kind of cue.

    Raises:
        UserError: as `causal_tests_of_run`.
    """
    subject = run_subject(run, [example for example in examples if has_antecedent_and_distractor(example)])
    layers, heads = subject.shape
    in_order = [Head(layer, number) for layer in range(layers) for number in range(heads)]
    tests = CausalTests(subject, head, in_order, lambda _: None)
    zeroed = {"value_zeroing": tests.zeroed("gold", [head]), "value_zeroing_others": tests.zeroed("other_keys", [head])}
    patch, alone = tests.patch(), one_head(tests)
    return {
        language: {name: head_level_cell(tests, zeroed, patch, alone, items) for name, items in named.items()}
        for language, named in by_language_and_kind(by(subject.examples)).items()
    }


def run_subject(run: Run, testable: Sequence[Example]) -> Subject:
    """Return a run as the subject of causal tests, with the answers of its prediction head or its masked-LM output.

    Raises:
        UserError: the run answers no pronoun questions, or no item can be tested.
    """
    if reason := why_unanswered(run):
        raise reason
    if not testable:
        raise UserError(NOTHING_TO_ASK)
    if answers_by_masks(run):
        return LanguageModelSubject(MaskedRun(run), testable)
    data = EncodedSplit(testable, run.tokenizer)
    return PackedSubject(run.model, data, run.config.batching, run.config.task.prediction)


def why_unanswered(run: Run) -> UserError | None:
    """Return why a run cannot answer which candidate a pronoun means; None if it can."""
    if answers_pronouns(run.config.task.prediction) or answers_by_masks(run):
        return None
    return no_pronoun_answers(run)


def testable_items(examples: Sequence[Example]) -> list[Example]:
    """Return the main items that have an antecedent and a distractor."""
    main = is_main(examples)
    return [
        example
        for example, is_main_item in zip(examples, main, strict=True)
        if is_main_item and has_antecedent_and_distractor(example)
    ]


def causal_tests(
    subject: Subject,
    head: Head,
    order: Sequence[Head],
    records_by_map: Mapping[str, Sequence[AttentionRecord]] | None,
    progress: Progress,
) -> Causal:
    """Run all causal tests of any model, whose items each have an antecedent and a distractor.

    Args:
        subject: the model and its items.
        head: the head under test.
        order: all heads of the layers with attention, best first; sets of heads are its beginnings.
        records_by_map: see `causal_tests_of_run`; records of other items are passed over.
        progress: called with a line about what is being measured.
    """
    tests = CausalTests(subject, head, order, progress)
    knocked = tests.knockout()
    single, cumulative = tests.single(), tests.cumulative()
    patch, alone = tests.patch(), one_head(tests)
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
            pattern_patching=patch_cell(tests, patch, items),
            head_level=head_level_cell(tests, knocked["head"], patch, alone, items),
            dose_response={name: dose_response_cell(tests, dose, items) for name, dose in doses.items()},
        )

    return Causal(
        items=len(subject.examples),
        head=HeadPosition(layer=head.layer, head=head.head),
        languages=by_language_and_kind(
            (language, kind, cell(items)) for language, kind, items in cells(subject.examples)
        ),
    )
