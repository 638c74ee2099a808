"""Tests that temperatures maximise the likelihood and keep answers, and that the error is that of Guo et al. 2017."""

from __future__ import annotations

import numpy as np
import pytest

from anaphora.analysis.scores.calibration import (
    calibration_by_language,
    expected_calibration_error,
    fit_temperature,
    fit_temperatures,
    shares_at,
)
from anaphora.data.example import Example

TEXTS = {"en": "Anna met Emma; she left.", "zh": "安娜见了小红，她走了。"}
PLACES = {"en": ((0, 4), (9, 13), (15, 18)), "zh": ((0, 2), (4, 6), (7, 8))}


def items(language: str, right: np.ndarray) -> list[Example]:
    first, second, pronoun = PLACES[language]
    return [
        Example(
            text=TEXTS[language],
            language=language,
            pronoun=pronoun,
            candidates=((first,), (second,)),
            antecedents=(int(answer),),
        )
        for answer in right
    ]


def drawn(temperature: float, language: str, seed: int) -> tuple[list[Example], np.ndarray]:
    """Return 20,000 items with answers drawn from the probabilities at a temperature, never "none of them"."""
    generator = np.random.default_rng(seed)
    logs = np.full((20_000, 3), -np.inf)
    logs[:, 0] = -np.logaddexp(0, generator.normal(0, 4, 20_000))
    logs[:, 1] = np.log(-np.expm1(logs[:, 0]))
    right = (generator.random(20_000) < shares_at(logs, temperature)[:, 1]).astype(int)
    return items(language, right), logs


@pytest.mark.parametrize("temperature", [0.4, 1.0, 3.0])
def test_the_temperature_with_which_answers_were_drawn_is_found_and_calibrates_them(temperature: float) -> None:
    examples, logs = drawn(temperature, "en", 0)
    fitted = fit_temperatures(examples, logs)
    assert fitted["en"] == pytest.approx(temperature, rel=0.1)
    other_items, other_logs = drawn(temperature, "en", 1)
    (row,) = calibration_by_language(other_items, other_logs, fitted)
    assert row.after < 0.01 and (row.before > 0.03 or temperature == 1)


def test_each_language_has_a_temperature_of_its_own_and_no_answer_changes() -> None:
    english, english_logs = drawn(0.5, "en", 2)
    chinese, chinese_logs = drawn(2.5, "zh", 3)
    logs = np.concatenate([english_logs, chinese_logs])
    fitted = fit_temperatures([*english, *chinese], logs)
    assert fitted["en"] < 0.6 and fitted["zh"] > 2.2
    for temperature in fitted.values():
        shares = shares_at(logs, temperature)
        assert (shares.argmax(axis=1) == logs.argmax(axis=1)).all() and (shares[:, 2] == 0).all()
        np.testing.assert_allclose(shares.sum(axis=1), 1)


def test_items_without_a_right_answer_that_can_be_given_are_left_out() -> None:
    logs = np.log([[0.9, 0.1, 1e-300], [0.9, 0.1, 1e-300]])
    logs[:, 2] = -np.inf
    nothing = np.array([[False, False, True]] * 2)
    assert fit_temperature(logs, nothing) == 1
    one = np.array([[True, False, False], [False, False, True]])
    assert fit_temperature(logs, one) == pytest.approx(fit_temperature(logs[:1], one[:1]))


def test_items_that_determine_no_temperature_move_it_from_1_by_their_number() -> None:
    answers = np.log([[0.6, 0.4]])
    right, wrong = np.array([[True, False]]), np.array([[False, True]])
    for many, (low, high) in {1: (0.7, 1.0), 5: (0.2, 0.35), 50: (0.05, 0.1)}.items():
        assert low < fit_temperature(answers.repeat(many, 0), right.repeat(many, 0)) < high
    for many, (low, high) in {1: (1.0, 1.4), 50: (4, 8), 5000: (40, np.exp(4))}.items():
        assert low < fit_temperature(answers.repeat(many, 0), wrong.repeat(many, 0)) <= high
    even = np.log([[0.5, 0.5]] * 2)
    certain = np.array([[0.0, -800.0]] * 3)  # the wrong answer has probability 0 at every temperature below 1
    assert fit_temperature(even, np.concatenate([right, wrong])) == pytest.approx(1, abs=1e-3)
    assert fit_temperature(certain, right.repeat(3, 0)) == pytest.approx(1, abs=1e-3)


def test_the_calibration_error_weighs_ten_bins_by_their_items() -> None:
    shares = np.array([[0.95, 0.05], [0.95, 0.05], [0.6, 0.4], [0.55, 0.45]])
    right = np.array([[True, False], [False, True], [True, False], [False, True]])
    # Above 0.9: confidence 0.95, accuracy 0.5, two items. Above 0.5 to 0.6 itself: 0.575 and 0.5, two items.
    assert expected_calibration_error(shares, right) == pytest.approx(0.5 * 0.45 + 0.5 * 0.075)


def test_right_answers_are_compared_with_the_wrong_ones_of_their_own_item() -> None:
    right = np.array([[True, False, False]] * 2)
    unsure, sure = [0.36, 0.34, 0.30], [0.6, 0.395, 0.005]  # the sure item's wrong answer beats the unsure right one
    assert 0.2 < fit_temperature(np.log([unsure, sure]), right) < 0.9  # all are right: only the prior holds it
    half = np.array([[True, False], [False, True]] * 400)  # half are right: the prior does not count
    answers = np.log([[0.9, 0.1], [0.6, 0.4]] * 400)
    assert fit_temperature(answers, half) == pytest.approx(fit_temperature(answers[:2], half[:2]), abs=1e-3)
