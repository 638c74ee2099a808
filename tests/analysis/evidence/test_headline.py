from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from anaphora.analysis.evidence import headline as module
from anaphora.analysis.evidence.evidence import ChosenHead
from anaphora.analysis.evidence.headline import Headline, measure_headline
from anaphora.analysis.maps.answers import UNDECIDED, Answers
from anaphora.analysis.maps.capture import Capture
from anaphora.analysis.results.scores import Head
from anaphora.analysis.scores.heads import choose_head
from anaphora.base.errors import UserError
from anaphora.data.example import Example
from anaphora.runs.directory import Run
from anaphora.runs.items import EvaluationSplits


def measured(run: Run, material: EvaluationSplits, untrained: int = 0, chosen: Head | None = None) -> Headline:
    return measure_headline(
        run, material.training, material.development, material.measured, "test", untrained, chosen=chosen
    )


def test_the_head_is_chosen_on_development_and_measured_elsewhere(run: Run, material: EvaluationSplits) -> None:
    one = measured(run, material)
    assert one.head == choose_head(one.development)
    assert list(one.development.examples) == list(material.development)
    assert list(one.measured.examples) == material.measured
    assert one.evidence().head == ChosenHead(layer=one.head.layer, head=one.head.head, chosen_on="dev")
    # A split whose best head is another does not change the choice.
    swapped = measure_headline(run, material.training, material.measured, material.development, "dev", 0)
    assert swapped.head == choose_head(one.measured)
    assert swapped.evidence().languages != one.evidence().languages


def test_a_head_fixed_beforehand_is_the_one_that_is_measured(run: Run, material: EvaluationSplits) -> None:
    for head in (Head(0, 0), Head(1, 1)):
        one = measured(run, material, chosen=head)
        accuracy = one.measured.candidate_accuracy[:, head.layer, head.head]
        english = [example.language == "en" for example in one.measured.examples]
        candidate_accuracy = one.evidence().languages["en"].candidate_accuracy
        assert candidate_accuracy == pytest.approx(float(accuracy[english].mean()), abs=1e-6)


def test_without_development_items_one_line_says_what_is_missing(run: Run, material: EvaluationSplits) -> None:
    with pytest.raises(UserError, match=r"^split \(dev\) holds no items"):
        measure_headline(run, None, [], material.measured, "test", 0)


def test_if_no_item_can_be_scored_one_line_says_why(run: Run, material: EvaluationSplits) -> None:
    unanswered = [replace(example, antecedents=()) for example in material.measured]
    with pytest.raises(UserError, match=rf"^test split: no item .* \({len(unanswered)} with no antecedent\)$"):
        measure_headline(run, None, material.development, unanswered, "test", 1)


def test_items_whose_right_and_wrong_answers_are_equal_are_counted(run: Run, material: EvaluationSplits) -> None:
    one = measured(run, material)
    answers = one.capture.answers
    assert answers is not None and one.evidence().undecided == 0
    half = answers.correct.copy()
    half[one.measured.kept[:3]] = 0.5
    tied = replace(one, capture=Capture([], Answers(answers.candidates, half, answers.silent)))
    assert tied.evidence().undecided == 3
    assert one.task_answers is not None and tied.task_answers is not None
    assert tied.task_answers[:3].tolist() == [UNDECIDED] * 3  # none of the tied answers is the answer
    assert tied.task_answers[3:].tolist() == one.task_answers[3:].tolist()


def test_scores_say_by_a_digest_which_items_of_a_language_they_are_of(run: Run, material: EvaluationSplits) -> None:
    def digests(items: list[Example]) -> dict[str, str | None]:
        scored = measure_headline(run, None, material.development, items, "test", 0).evidence().languages
        return {language: scores.items_digest for language, scores in scored.items()}

    whole = digests(material.measured)
    assert digests(material.measured) == whole and len(set(whole.values())) == 2
    # As many items, one of them another: the digest of its language changes, and that of the other stays.
    place = next(number for number, example in enumerate(material.measured) if example.language == "en")
    first = material.measured[place]
    other = replace(first, antecedents=tuple({0, 1} - set(first.antecedents)))
    changed = digests([*material.measured[:place], other, *material.measured[place + 1 :]])
    assert changed["en"] != whole["en"] and changed["zh"] == whole["zh"]


def test_untrained_models_are_the_same_ones_every_time_and_choose_for_themselves(
    run: Run, material: EvaluationSplits, monkeypatch: pytest.MonkeyPatch
) -> None:
    three, two = measured(run, material, 3).untrained, measured(run, material, 2).untrained
    np.testing.assert_array_equal(three[:2], two)
    assert len({row.tobytes() for row in three}) > 1
    monkeypatch.setattr(module, "UNTRAINED_MEASURED", 4)
    few = measured(run, material, 2)
    counted = ~np.isnan(few.untrained)
    assert counted.sum(axis=1).tolist() == [4, 4]
    np.testing.assert_array_equal(few.untrained[counted], two[counted])
    groups = [example.group for example, inside in zip(few.measured.examples, counted[0], strict=True) if inside]
    assert all(groups.count(group) == 2 for group in groups)  # whole blocks
    evidence = few.evidence()
    assert evidence.untrained_models == 2
    assert evidence.languages["en"].baselines["random_init"] is not None


def test_progress_names_every_stage(run: Run, material: EvaluationSplits) -> None:
    stages: list[str] = []
    measure_headline(run, material.training, material.development, material.measured, "test", 1, progress=stages.append)
    assert stages == ["development split", "test split", "baselines", "untrained model 1 of 1"]


def test_scores_without_rows_are_those_with_rows_to_the_last_digit(run: Run, material: EvaluationSplits) -> None:
    splits = (material.training, material.development, material.measured)
    whole, alone = (measure_headline(run, *splits, "test", 1, keep_rows=keep_rows) for keep_rows in (True, False))
    assert whole.evidence() == alone.evidence()
    for name in ("kept", "candidate_mass", "lift", "reciprocal_rank"):
        np.testing.assert_array_equal(getattr(whole.measured, name), getattr(alone.measured, name))
    assert alone.measured.examples == whole.measured.examples
    np.testing.assert_array_equal(alone.task_correct, whole.task_correct)
    assert len(whole.capture.records) == len(material.measured)
    assert alone.capture.records == []


def test_untrained_models_may_be_measured_on_items_that_were_read_anew(run: Run, material: EvaluationSplits) -> None:
    """Users who bring records of another library build the items of each model separately."""
    scores = measured(run, material).measured
    same = replace(scores, examples=tuple(replace(one) for one in scores.examples))
    [row] = module.untrained_correctness([(scores, same)], scores.examples)
    assert not np.isnan(row).any()
    other = replace(scores, examples=(replace(scores.examples[0], group="elsewhere"), *scores.examples[1:]))
    with pytest.raises(UserError, match="is not among the items that are measured"):
        module.untrained_correctness([(scores, other)], scores.examples)
