"""Tests of invalid settings of a study."""

from __future__ import annotations

import pytest

from anaphora.base.errors import UserError
from anaphora.studies.plan import VerdictRule


def test_a_bound_in_percent_of_a_measure_that_is_a_share_is_refused() -> None:
    with pytest.raises(
        UserError, match=r"at_most \(60\) must be from -1 to 1; task_accuracy is a share, so 60 % is 0.6"
    ):
        VerdictRule(statement="at most 60 %", cell="base", at_most=60)


def test_other_measures_have_bounds_in_their_own_unit() -> None:
    assert VerdictRule(statement="40 points", cell="base", measure="antecedent_points", at_least=40).at_least == 40
