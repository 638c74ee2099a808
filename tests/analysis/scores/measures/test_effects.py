from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.results.scores import Head
from anaphora.analysis.results.typed_json import to_json
from anaphora.analysis.scores.heads import score_records
from anaphora.analysis.scores.measures.effects import EFFECTS, effects
from anaphora.data.example import Example

HEAD = Head(0, 0)
NAMES = ("aa", "bb")
Weigh = Callable[[str, int, bool], float]
"""Function from (name, position, whether it is the antecedent) to the weight on a candidate."""


def quad(weigh: Weigh, group: str, names: tuple[str, ...] = NAMES, **factors: str) -> list[AttentionRecord]:
    """Return two cues in two orders of the first two names; the other names follow and are never the antecedent."""
    items = []
    for order in (0, 1):
        written = [*(names[:2] if order == 0 else names[1::-1]), *names[2:]]
        for meant in names[:2]:
            gold = written.index(meant)
            masses = [weigh(name, place, place == gold) for place, name in enumerate(written)]
            spans = tuple((3 * place, 3 * place + 2) for place in range(len(written) + 1))
            focal = {"focal": "0,1"} if len(names) > 2 else {}
            example = Example(
                text=" ".join([*written, "it"]),
                language="en",
                pronoun=spans[-1],
                candidates=tuple((span,) for span in spans[:-1]),
                antecedents=(gold,),
                group=group,
                minimal_pair=f"{group}/{order}",
                factors={"order": str(order), "cue": meant, "template": group[0], "kind": "role", **focal, **factors},
            )
            weights = np.array([[[*masses, 1 - sum(masses)]]], dtype=np.float32)
            items.append(AttentionRecord(example, spans, tuple(range(len(spans))), weights))
    return items


def at_most(weigh: Weigh, **rest: Any) -> dict[str, float]:
    """Return the three effects over four quads of two templates."""
    records = [record for group in ("a1", "a2", "b1", "b2") for record in quad(weigh, group, **rest)]
    cell = to_json(effects(score_records(records), HEAD))["en"]["role"]
    assert {effect["quads"] for effect in cell.values()} == {4}
    return {name: cell[name]["value"] for name in EFFECTS}


def test_a_head_that_looks_at_the_first_candidate_has_an_effect_of_position_only() -> None:
    values = at_most(lambda name, place, right: 0.8 if place == 0 else 0.1)
    assert values == pytest.approx({"meaning": 0, "position": 0.7, "entity": 0}, abs=1e-6)


def test_a_head_that_looks_at_the_second_has_the_opposite_effect() -> None:
    values = at_most(lambda name, place, right: 0.1 if place == 0 else 0.8)
    assert values == pytest.approx({"meaning": 0, "position": -0.7, "entity": 0}, abs=1e-6)


@pytest.mark.parametrize("favourite", NAMES)
def test_a_head_that_looks_at_one_entity_has_an_effect_of_entity_only(favourite: str) -> None:
    values = at_most(lambda name, place, right: 0.8 if name == favourite else 0.1)
    assert values == pytest.approx({"meaning": 0, "position": 0, "entity": 0.7}, abs=1e-6)


def test_a_head_that_is_right_has_an_effect_of_meaning_only() -> None:
    values = at_most(lambda name, place, right: 0.8 if right else 0.1)
    assert values == pytest.approx({"meaning": 0.7, "position": 0, "entity": 0}, abs=1e-6)


@settings(max_examples=30, deadline=None)
@given(*[st.floats(-0.1, 0.1) for _ in range(3)])
def test_the_three_effects_are_distinguished_where_they_mix(meaning: float, position: float, entity: float) -> None:
    def weigh(name: str, place: int, right: bool) -> float:
        signs = (1 if right else -1, 1 if place == 0 else -1, 1 if name == "aa" else -1)
        return 0.4 + sum(sign * part / 2 for sign, part in zip(signs, (meaning, position, entity), strict=True))

    values = at_most(weigh)
    assert values == pytest.approx({"meaning": meaning, "position": position, "entity": abs(entity)}, abs=1e-5)


def test_entities_that_blocks_prefer_do_not_cancel() -> None:
    records = quad(lambda name, place, right: 0.8 if name == "aa" else 0.1, "a1")
    records += quad(lambda name, place, right: 0.8 if name == "bb" else 0.1, "b1")
    assert effects(score_records(records), HEAD)["en"]["all"].entity.value == pytest.approx(0.7)


def test_a_distractor_has_no_part() -> None:
    values = at_most(lambda name, place, right: 0.5 if name == "cc" else 0.3 if right else 0.1, names=(*NAMES, "cc"))
    assert values == pytest.approx({"meaning": 0.2, "position": 0, "entity": 0}, abs=1e-6)


def test_intervals_are_over_templates_and_cells_of_kinds_are_apart() -> None:
    weak = quad(lambda name, place, right: 0.4 if right else 0.3, "a1")
    strong = quad(lambda name, place, right: 0.8 if right else 0.1, "b1", kind="set")
    values = to_json(effects(score_records([*weak, *strong]), HEAD))["en"]
    assert list(values) == ["set", "role", "all"]
    assert values["role"]["meaning"] == {"value": 0.1, "interval": None, "quads": 1}
    assert values["all"]["meaning"]["value"] == pytest.approx(0.4)
    low, high = values["all"]["meaning"]["interval"]
    assert (low, high) == (-1.0, 1.0)  # of two templates, of which each says something else


@pytest.mark.parametrize("without", [slice(0, 3), slice(0, 2)])
def test_a_block_with_a_missing_cell_does_not_count(without: slice) -> None:
    records = quad(lambda name, place, right: 0.8 if right else 0.1, "a1")
    values = to_json(effects(score_records(records[without]), HEAD))["en"]["role"]
    assert values == {name: {"value": None, "interval": None, "quads": 0} for name in EFFECTS}


def test_a_block_whose_cells_are_not_balanced_or_whose_words_change_does_not_count() -> None:
    right = quad(lambda name, place, right: 0.8 if right else 0.1, "a1")
    twice = [right[0], right[0], right[2], right[2]]
    changed = [*right[:2], *quad(lambda name, place, right: 0.4, "a1", names=("aa", "cc"))[2:]]
    for records in (twice, changed):
        assert effects(score_records(records), HEAD)["en"]["role"].meaning.quads == 0


def test_only_main_items_count() -> None:
    main = quad(lambda name, place, right: 0.8 if right else 0.1, "a1")
    other = quad(lambda name, place, right: 0.1, "b1", stratum="cataphora")
    assert effects(score_records([*main, *other]), HEAD)["en"]["all"].meaning.quads == 1
