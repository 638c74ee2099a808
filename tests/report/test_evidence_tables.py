from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from anaphora.analysis.evidence.comparison import RowDivergence
from anaphora.analysis.evidence.evidence import Evidence
from anaphora.analysis.results.typed_json import Interval
from anaphora.report.tables import divergence_rows, every_table

Rows = list[dict[str, Any]]
PARTS = ("significance", "effects", "further_scores", "factors", "maps", "head_roles", "controls", "verdict")
CAUSAL_TABLES = ("knockout", "heads_alone", "heads_together", "pattern_patching", "dose_response")


def measured_tables(evidence: Evidence) -> dict[str, Rows]:
    return {name: rows for name, rows in every_table(evidence).items() if rows}


@pytest.fixture(scope="module")
def tables(evidence: Evidence) -> dict[str, Rows]:
    return measured_tables(evidence)


def one(rows: Rows, **wanted: Any) -> dict[str, Any]:
    fitting = [row for row in rows if wanted.items() <= row.items()]
    assert len(fitting) == 1, fitting
    return fitting[0]


def test_every_part_is_a_table_of_plain_values(tables: dict[str, Rows]) -> None:
    assert set(tables) == {*PARTS, *CAUSAL_TABLES}
    for name, rows in tables.items():
        assert rows, name
        for row in rows:
            assert all(value is None or isinstance(value, str | int | float | bool) for value in row.values()), row


def test_numbers_are_those_of_the_evidence(tables: dict[str, Rows], evidence: Evidence) -> None:
    cell = evidence.causal_cells["en"]["role"]
    gold = one(tables["knockout"], language="en", kind="role", scope="layer", edge="gold")
    loss = cell.knockout["layer"].edges["gold"]
    assert loss.interval is not None
    assert [gold[name] for name in ("drop", "low", "high", "mass_removed")] == [
        loss.drop, *loss.interval, loss.mass_removed,
    ]  # fmt: skip
    gap = one(tables["knockout"], language="en", kind="role", scope="layer", edge="gold_minus_matched")
    assert gap["value"] == cell.knockout["layer"].gold_minus_matched.value
    assert one(tables["pattern_patching"], language="zh", kind="set", heads="all_layers")["flipped"] == 0.985
    assert one(tables["pattern_patching"], language="zh", kind="set", heads="best 2")["flipped"] == 0.8
    assert one(tables["heads_together"], language="en", kind="role", k=2)["heads"] == "2-2 2-0"
    assert one(tables["heads_together"], language="en", kind="role", k=2)["random_highest"] == pytest.approx(0.14)
    assert one(tables["dose_response"], language="en", kind="role", map="norm")["rho"] == 0.78
    assert evidence.effects is not None
    effect = evidence.effects["zh"]["set"].meaning
    assert effect.interval is not None
    row = one(tables["effects"], language="zh", kind="set", effect="meaning")
    assert (row["value"], row["low"], row["high"], row["quads"]) == (effect.value, *effect.interval, effect.quads)
    for factor, languages in (evidence.factors or {}).items():
        for language, cells in languages.items():
            listed = [
                row["value"] for row in tables["factors"] if (row["factor"], row["language"]) == (factor, language)
            ]
            assert listed == [cell.value for cell in cells]
    rules = sum(len(cell.rows) for kinds in (evidence.verdict or {}).values() for cell in kinds.values())
    assert len(tables["verdict"]) == rules


def test_a_map_stands_with_the_unit_that_was_chosen_for_it(tables: dict[str, Rows], evidence: Evidence) -> None:
    for name, scores in (evidence.maps or {}).items():
        rows = [row for row in tables["maps"] if row["map"] == name]
        assert {row["language"] for row in rows} == {"en", "zh"}
        assert scores.head is not None
        assert {(row["layer"], row["head"]) for row in rows} == {(scores.head.layer, scores.head.head)}


@pytest.mark.parametrize("missing", [*PARTS, "causal"])
def test_a_part_that_was_not_measured_is_left_out(missing: str, evidence: Evidence) -> None:
    whole = set(measured_tables(evidence))
    part: dict[str, Any] = {missing: None}
    without = set(measured_tables(replace(evidence, **part)))
    assert whole - without == (set(CAUSAL_TABLES) if missing == "causal" else {missing})


def test_unknown_intervals_leave_both_ends_empty() -> None:
    known = RowDivergence(run="b", other="c", language="en", items=2, divergence=0.15, interval=Interval(0.1, 0.2))
    rows = divergence_rows([replace(known, divergence=None, interval=None), known])
    assert (rows[0]["divergence"], rows[0]["low"], rows[0]["high"]) == (None, None, None)
    assert (rows[1]["low"], rows[1]["high"]) == (0.1, 0.2)
