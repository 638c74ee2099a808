from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from anaphora.report.evidence_tables import CAUSAL, divergence_rows, evidence_tables

Metrics = dict[str, Any]
Rows = list[dict[str, Any]]
PARTS = ("significance", "effects", "more_scores", "factors", "maps", "head_roles", "controls", "verdict")


@pytest.fixture(scope="module")
def tables(invent: Callable[[], Metrics]) -> dict[str, Rows]:
    return evidence_tables(invent())


def one(rows: Rows, **wanted: Any) -> dict[str, Any]:
    found = [row for row in rows if wanted.items() <= row.items()]
    assert len(found) == 1, found
    return found[0]


def test_every_part_is_a_table_of_plain_values(tables: dict[str, Rows]) -> None:
    assert set(tables) == {*PARTS, *CAUSAL}
    for name, rows in tables.items():
        assert rows, name
        for row in rows:
            assert all(value is None or isinstance(value, str | int | float | bool) for value in row.values()), row


def test_numbers_are_those_of_the_file(tables: dict[str, Rows], invent: Callable[[], Metrics]) -> None:
    metrics = invent()
    cell = metrics["causal"]["languages"]["en"]["role"]
    gold = one(tables["knock_out"], language="en", kind="role", scope="layer", edge="gold")
    stored = cell["knock_out"]["layer"]["gold"]
    assert [gold[name] for name in ("drop", "low", "high", "mass_removed")] == [
        stored["drop"], *stored["interval"], stored["mass_removed"],
    ]  # fmt: skip
    gap = one(tables["knock_out"], language="en", kind="role", scope="layer", edge="gold_minus_matched")
    assert gap["value"] == cell["knock_out"]["layer"]["gold_minus_matched"]["value"]
    assert one(tables["patch"], language="zh", kind="set", heads="everywhere")["flipped"] == 0.985
    assert one(tables["patch"], language="zh", kind="set", heads="best 2")["flipped"] == 0.8
    assert one(tables["heads_together"], language="en", kind="role", k=2)["heads"] == "2-2 2-0"
    assert one(tables["heads_together"], language="en", kind="role", k=2)["random_highest"] == pytest.approx(0.14)
    assert one(tables["dose_response"], language="en", kind="role", map="norm")["rho"] == 0.78
    effect = metrics["effects"]["zh"]["set"]["meaning"]
    row = one(tables["effects"], language="zh", kind="set", effect="meaning")
    assert (row["value"], row["low"], row["high"]) == (effect["value"], *effect["interval"])
    for factor, languages in metrics["factors"].items():
        for language, cells in languages.items():
            listed = [
                row["value"] for row in tables["factors"] if (row["factor"], row["language"]) == (factor, language)
            ]
            assert listed == [cell["value"] for cell in cells]
    rules = sum(len(cell["rows"]) for kinds in metrics["verdict"].values() for cell in kinds.values())
    assert len(tables["verdict"]) == rules


def test_a_map_is_told_with_the_unit_that_was_chosen_for_it(
    tables: dict[str, Rows], invent: Callable[[], Metrics]
) -> None:
    for name, found in invent()["maps"].items():
        languages = {row["language"] for row in tables["maps"] if row["map"] == name}
        assert languages == {"en", "zh"}  # and neither "granularity" nor "head" is taken for one
        unit = found["head"] or {}
        rows = [row for row in tables["maps"] if row["map"] == name]
        assert {(row["layer"], row["head"]) for row in rows} == {(unit.get("layer"), unit.get("head"))}


@pytest.mark.parametrize("missing", [*PARTS, "causal"])
def test_a_part_that_was_not_measured_is_left_out(missing: str, invent: Callable[[], Metrics]) -> None:
    metrics = invent()
    whole = set(evidence_tables(metrics))
    without = set(evidence_tables({**metrics, missing: None}))
    assert whole - without == (set(CAUSAL) if missing == "causal" else {missing})
    assert set(evidence_tables({name: part for name, part in metrics.items() if name != missing})) == without


def test_unknown_intervals_leave_both_ends_empty() -> None:
    rows = divergence_rows([{"run": "a", "divergence": None, "interval": None}, {"run": "b", "interval": [0.1, 0.2]}])
    assert rows[0] == {"run": "a", "divergence": None, "low": None, "high": None}
    assert (rows[1]["low"], rows[1]["high"]) == (0.1, 0.2)
