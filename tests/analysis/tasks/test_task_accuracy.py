from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from anaphora.analysis.maps.answers import Answers
from anaphora.analysis.results.typed_json import table_row
from anaphora.analysis.tasks.task_accuracy import MODEL, NONE_OF_THEM, ItemAnswers, accuracy_table, check_factors
from anaphora.base.errors import UserError
from anaphora.data.example import Example


def items(answers: list[tuple[int, ...]]) -> list[Example]:
    """Return sentences with these antecedents, of which consecutive ones are minimal pairs."""
    return [
        Example(
            text="Anna saw Emma and she left",
            language="en",
            pronoun=(18, 21),
            candidates=(((0, 4),), ((9, 13),)),
            antecedents=right,
            group=f"g{number // 2}",
            minimal_pair=f"g{number // 2}",
            factors={"type": str(number // 4), "gender": ("female", "male")[number % 2]},
        )
        for number, right in enumerate(answers)
    ]


def of_runs(examples: list[Example], candidates: list[list[int]]) -> list[Answers]:
    return [Answers.about(examples, np.array(row, dtype=np.int64)) for row in candidates]


def rows_of(answers: ItemAnswers, **options: object) -> dict[str, dict[str, object]]:
    return {row.policy: dict(table_row(row)) for row in accuracy_table(answers, **options) if not row.factor}  # type: ignore[arg-type]


EIGHT = items([(number % 2,) for number in range(8)])


def test_differences_are_paired_and_minimal_pairs_are_right_together() -> None:
    answers = of_runs(EIGHT, [[0, 1, 0, 0, 0, 1, 0, 0]])
    same = np.array([1.0, 1, 1, 0, 1, 1, 1, 0])
    rows = rows_of(ItemAnswers(EIGHT, answers, {"same": same, "first": np.array([1.0, 0] * 4)}))
    assert rows["same"]["model_minus"] == 0 and rows["same"]["model_minus_low"] is None  # four groups, all alike
    assert rows["first"]["model_minus"] == 0.25
    assert (rows[MODEL]["minimal_pair_accuracy"], rows["first"]["minimal_pair_accuracy"]) == (0.5, 0)


def test_both_minimal_pairs_are_right_in_one_run_not_on_average() -> None:
    answers = of_runs(EIGHT, [[0, 1] * 4, [1, 0] * 4])  # all right, all wrong
    row = rows_of(ItemAnswers(EIGHT, answers, {}))[MODEL]
    assert (row["accuracy"], row["lowest"], row["highest"], row["minimal_pair_accuracy"]) == (0.5, 0, 1, 0.5)


def test_equal_scores_count_as_the_share_of_them_that_are_right() -> None:
    """Counted by hand: a tie among the highest scores counts as the share of correct answers in it."""
    examples = items([(0,), (1,), (0, 1), (), (0,)])
    scores = np.array([[1.0, 1, 0], [1, 1, 1], [1, 1, 0], [0, 1, 1], [2, 1, 0]])
    answers = Answers.from_scores(examples, scores)
    assert answers.candidates.tolist() == [0, 0, 0, 1, 0]
    assert answers.correct.tolist() == pytest.approx([1 / 2, 1 / 3, 1, 1 / 2, 1])
    assert answers.undecided.tolist() == [True, True, False, True, False]
    row = rows_of(ItemAnswers(examples, [answers], {}))[MODEL]
    assert row["accuracy"] == pytest.approx((3 + 1 / 3) / 5)
    # "None of them" is one of three tied answers, and one of two; of two decisions each, 1, 1, 1, 1.5 and 2 are right.
    assert row["silent"] == pytest.approx((1 / 3 + 1 / 2) / 5)
    assert row["decision_accuracy"] == pytest.approx(6.5 / 10)


def test_a_shortcut_that_does_not_apply_to_all_items_is_left_out() -> None:
    four = items([(0,)] * 4)
    answers = ItemAnswers(four, of_runs(four, [[0] * 4]), {"half": np.array([1.0, 0, np.nan, 1])})
    assert list(rows_of(answers)) == [MODEL]


def test_decisions_count_every_candidate() -> None:
    """Counted by hand for one, no and two antecedents; the shortcut always accepts Anna alone."""
    examples = items([(0,), (0,), (), (), (0, 1), (0, 1)])
    answers = of_runs(examples, [[0, 1, -1, 0, 0, -1]])  # 2, 0, 2, 1, 1 and 0 of 2 decisions are right
    rows = rows_of(ItemAnswers(examples, answers, {"first": np.array([1.0, 1, 0, 0, 1, 1])}))
    assert rows[MODEL]["decision_accuracy"] == pytest.approx(6 / 12)
    assert rows["first"]["decision_accuracy"] == pytest.approx(8 / 12)  # 2, 2, 1, 1, 1, 1
    assert rows[NONE_OF_THEM]["decision_accuracy"] == pytest.approx(6 / 12)
    assert rows[NONE_OF_THEM]["accuracy"] == pytest.approx(2 / 6)
    assert rows[MODEL]["accuracy"] == pytest.approx(3 / 6)
    assert (rows[MODEL]["silent"], rows["first"]["silent"]) == (pytest.approx(2 / 6), 0)


def test_a_contrast_is_the_first_value_less_the_second() -> None:
    answers = of_runs(EIGHT, [[0, 0] * 4])  # right where the gender is female, wrong where it is male
    item_answers = ItemAnswers(EIGHT, answers, {"chance": np.full(8, 0.5)})
    rows = rows_of(item_answers, contrast="gender")
    assert [rows[MODEL][name] for name in ("contrast", "contrast_low", "contrast_high")] == [1, None, None]
    assert rows["chance"]["contrast"] == 0


def test_a_contrast_between_groups_varies_as_its_two_means_do() -> None:
    """If no group has both values and all answers are correct, there is no variance."""
    examples = [replace(one, group=f"{number}") for number, one in enumerate(EIGHT * 5)]
    right = np.array([[one.antecedents[0] for one in examples]])
    row = rows_of(ItemAnswers(examples, of_runs(examples, right.tolist()), {}), contrast="gender")[MODEL]
    assert [row[name] for name in ("contrast", "contrast_low", "contrast_high")] == [0, 0, 0]
    some_wrong = np.where(np.arange(40) % 10 < 2, 1 - right, right)
    row = rows_of(ItemAnswers(examples, of_runs(examples, some_wrong.tolist()), {}), contrast="gender")[MODEL]
    assert row["contrast"] == pytest.approx(0)
    low, high = row["contrast_low"], row["contrast_high"]
    assert isinstance(low, float) and isinstance(high, float)
    assert 0.3 < high - low < 0.7  # two means over 20 items each: 4 * sqrt(2 * 0.16 / 20) = 0.51


@pytest.mark.parametrize(("few", "has_interval"), [(1, False), (4, False), (5, True)])
def test_a_contrast_with_few_items_of_a_value_has_no_interval(few: int, has_interval: bool) -> None:
    examples = [replace(one, group=f"{number}") for number, one in enumerate(EIGHT * 2)]
    examples = [replace(one, factors={"form": "its" if number >= few else "it"}) for number, one in enumerate(examples)]
    answers = of_runs(examples, [[0] * 16])
    row = rows_of(ItemAnswers(examples, answers, {}), contrast="form")[MODEL]
    right = [example.antecedents == (0,) for example in examples]
    assert row["contrast"] == pytest.approx(sum(right[:few]) / few - sum(right[few:]) / (16 - few))
    assert (row["contrast_low"] is not None) is (row["contrast_high"] is not None) is has_interval


def test_a_missing_value_of_a_crossed_factor_is_a_dash() -> None:
    some = [replace(one, factors={"type": "0"}) if number < 3 else one for number, one in enumerate(EIGHT)]
    table = accuracy_table(ItemAnswers(some, of_runs(some, [[0] * 8]), {}), by=["type+gender", "gender"])
    cells = {(row.factor, row.value): row.items for row in table if row.factor}
    assert cells["type+gender", "0, –"] == cells["gender", ""] == 3


def test_a_minimal_pair_without_a_group_is_drawn_as_one() -> None:
    right = of_runs(EIGHT, [[0, 1, 1, 0, 0, 1, 0, 1]])  # the second pair is wrong
    grouped, alone = (
        rows_of(ItemAnswers(examples, right, {}))[MODEL]
        for examples in (EIGHT, [replace(one, group="") for one in EIGHT])
    )
    assert grouped["low"] is not None
    assert (grouped["low"], grouped["high"]) == (alone["low"], alone["high"])


def test_crossed_factors_tell_each_pair_of_values() -> None:
    answers = ItemAnswers(EIGHT, of_runs(EIGHT, [[0] * 8]), {})
    cells = {row.value: row.accuracy for row in accuracy_table(answers, by=["type+gender"]) if row.factor}
    assert cells == {"0, female": 1, "0, male": 0, "1, female": 1, "1, male": 0}


def test_factors_that_the_items_lack_are_refused() -> None:
    answers = ItemAnswers(EIGHT, of_runs(EIGHT, [[0] * 8]), {})
    with pytest.raises(UserError, match=r"by \('colour'\) must be one of the factors of these data: gender, type"):
        check_factors(answers.examples, ["type+colour"])
    alone = ItemAnswers(EIGHT[:1], of_runs(EIGHT[:1], [[0]]), {})
    with pytest.raises(UserError, match="must be a factor of two values"):
        check_factors(alone.examples, [], "gender")
    bare = replace(EIGHT[0], factors={})
    with pytest.raises(UserError, match=r"of two values; it has none \(rows without it\), female, male"):
        check_factors([*EIGHT, bare], [], "gender")
    with pytest.raises(UserError, match="factors of these data: they have none"):
        check_factors([bare], ["gender"])


def test_items_of_a_template_are_drawn_together() -> None:
    """Eight answers in separate groups of two templates give the interval of two templates."""
    templates = [
        replace(one, group=f"g{number}", factors={**one.factors, "template": "ab"[number // 4]})
        for number, one in enumerate(EIGHT)
    ]
    right = of_runs(EIGHT, [[1, 0, 1, 1, 0, 1, 0, 1]])  # the first three are wrong
    rows = rows_of(ItemAnswers(templates, right, {}))
    by_hand = accuracy_table(ItemAnswers([replace(one, group="ab"[n // 4]) for n, one in enumerate(EIGHT)], right, {}))
    assert [rows[MODEL][name] for name in ("low", "high")] == [table_row(by_hand[0])[name] for name in ("low", "high")]
