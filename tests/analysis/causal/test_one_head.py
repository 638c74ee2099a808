from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from copier import COPIER, CUE, OTHERS, PAIRS, PRONOUN, Copier, silent

from anaphora.analysis.causal import one_head
from anaphora.analysis.causal.causal_tests import causal_tests
from anaphora.analysis.causal.knockout_and_ablation import CausalTests
from anaphora.analysis.causal.one_head import DOSES, KEYS
from anaphora.analysis.causal.patching import aligned_patching
from anaphora.analysis.results.scores import Head
from anaphora.analysis.results.typed_json import to_json

ANTECEDENT, DISTRACTOR, ON_CUE = 0.15, 0.08, 0.02


class Weak(Copier):
    """Copier whose pronoun gives the antecedent 0.15, the distractor 0.08, the cue 0.02 and [CLS] the rest."""

    def __init__(self, counting: Sequence[Head]) -> None:
        super().__init__(PAIRS, counting, [1.0] * len(counting))
        for one, maps in zip(PAIRS, self._maps, strict=True):
            row = np.zeros(maps.shape[-1], dtype=np.float32)
            antecedent, distractor = (2, 5) if one.antecedents[0] == 0 else (5, 2)
            row[[antecedent, distractor, CUE]] = ANTECEDENT, DISTRACTOR, ON_CUE
            row[0] = 1 - row.sum()
            maps[COPIER.layer, COPIER.head, PRONOUN] = row


def level(counting: Head) -> dict[str, Any]:
    measured = to_json(causal_tests(Weak([counting]), COPIER, [COPIER, *OTHERS], None, silent))
    cell: dict[str, Any] = measured["languages"]["en"]["all"]["head_level"]
    return cell


def test_the_same_weight_costs_the_answer_on_the_antecedents_edge_alone() -> None:
    cell = level(COPIER)
    doses = {
        dose["mass"]: (dose["items"], dose["antecedent_points"], dose["other_edges_points"]) for dose in cell["doses"]
    }
    # 0.15 - 0.05 still is more than 0.08, 0.15 - 0.1 is less, and 0.2 is more than there is.
    assert doses == {0.05: (20, 0.0, 0.0), 0.1: (20, 100.0, 0.0), 0.2: (0, None, None)}
    assert list(doses) == list(DOSES)


def test_a_head_that_nothing_reads_costs_nothing_at_any_dose() -> None:
    cell = level(OTHERS[0])
    assert [dose["antecedent_points"] for dose in cell["doses"]] == [0.0, 0.0, None]
    assert (cell["exchange_items"], cell["exchange_flips"]) == (20, 0.0)


def test_two_names_that_take_each_others_weight_turn_the_answer_where_the_head_carries_it() -> None:
    cell = level(COPIER)
    assert (cell["exchange_items"], cell["exchange_flips"], cell["exchange_interval"]) == (20, 1.0, [1.0, 1.0])


def test_an_item_whose_answers_tie_is_not_answered_correctly_and_not_exchanged() -> None:
    tests = CausalTests(Copier(PAIRS, [COPIER], [1.0]), COPIER, [COPIER, *OTHERS], silent)
    tests.right[0] = 0.5
    assert one_head._exchange(tests)[0].tolist() == [False] + [True] * (len(PAIRS) - 1)


def test_an_answer_that_ties_after_patching_or_an_exchange_counts_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    tests = CausalTests(Copier(PAIRS, [COPIER], [1.0]), COPIER, [COPIER, *OTHERS], silent)
    tied = np.zeros_like(tests.before)
    monkeypatch.setattr(one_head, "_scores", lambda *_: tied)
    monkeypatch.setattr(tests.subject, "patched", lambda *_: tied)
    share = 1 / tied.shape[1]
    assert one_head._exchange(tests)[1] == pytest.approx(share)
    assert aligned_patching(tests)(np.ones(len(PAIRS), dtype=bool)).head.flipped == pytest.approx(share, abs=1e-4)


def test_what_a_knockout_frees_goes_where_the_rest_of_the_row_is() -> None:
    left = 1 - ANTECEDENT
    expected = dict(zip(KEYS, (DISTRACTOR, ON_CUE, 0, left - DISTRACTOR - ON_CUE, 0), strict=True))
    freed = level(COPIER)["freed_mass"]
    assert freed == {name: pytest.approx(mass / left, abs=1e-4) for name, mass in expected.items()}


def test_points_have_an_interval_in_points_where_templates_are_few() -> None:
    """A t interval is clipped at the largest possible loss, which is 100 in points, not 1 as for shares."""
    few = [replace(one, factors={**one.factors, "template": f"t{number % 3}"}) for number, one in enumerate(PAIRS)]
    tests = CausalTests(Copier(few, [COPIER], [1.0]), COPIER, [COPIER, *OTHERS], silent)
    lost = np.arange(len(few)) % 6 < 4
    right = tests.right * ~lost
    by_side = one_head._points_by_side(tests, right, right, np.ones(len(few), dtype=bool))
    points, interval = by_side["antecedent_points"], by_side["antecedent_interval"]
    assert points == pytest.approx(70)
    assert interval is not None and interval.low < 70 < interval.high <= 100
