from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anaphora.analysis import examination
from anaphora.analysis.capture import Look
from anaphora.analysis.examination import examine, map_scores, told_by_rows
from anaphora.analysis.flow import MapRows
from anaphora.analysis.record import AttentionRecord
from anaphora.analysis.scores import Head, score
from anaphora.analysis.settings import Analysis, Protocol
from anaphora.analysis.study import Study, study
from anaphora.checkpoint import Run, load
from anaphora.data.example import Example
from anaphora.errors import UserError
from anaphora.workflow import Material, material_of

SPANS = ((0, 1), (2, 3), (4, 5))


def rows(hits: Sequence[Sequence[float]], granularity: str = "head", skipped: int = 0, kind: str = "set") -> MapRows:
    """An item for each list: how much of 0.9 each unit (L, H) gives the antecedent, the rest going to the other."""
    records = []
    for number, shares in enumerate(hits):
        example = Example(
            text="a b c",
            language="en",
            pronoun=(4, 5),
            candidates=(((0, 1),), ((2, 3),)),
            antecedents=(0,),
            group=f"g{number}",
            factors={"kind": kind, "template": f"t{number}"},
        )
        share = np.array(shares, dtype=np.float32).reshape(len(shares), -1)
        weights = np.stack([0.9 * share, 0.9 * (1 - share), np.full_like(share, 0.1)], axis=-1)
        records.append(AttentionRecord(example, SPANS, (0, 1, 2), weights))
    return MapRows(granularity, records, list(range(len(records))), skipped)


def test_each_map_is_scored_at_the_unit_that_development_chose_for_it() -> None:
    development = {"norm": rows([[0.1, 0.9]] * 4), "rollout": rows([[0.9, 0.2]] * 4, "layer")}
    measured = {"norm": rows([[0.9, 0.8], [0.9, 0.3]]), "rollout": rows([[0.7, 0.9]] * 3, "layer", skipped=2)}
    found = map_scores(development, measured, Head(0, 0))
    assert found["norm"]["head"] == {"layer": 1, "head": 0}
    assert found["norm"]["en"]["set"]["candidate_accuracy"] == 0.5  # and not 1, which the other unit has
    assert found["norm"]["en"]["all"]["antecedent_mass"] == pytest.approx(0.9 * 0.55)
    assert found["rollout"]["head"] == {"layer": 0}
    assert (found["rollout"]["items"], found["rollout"]["skipped"]) == (3, 2)


def test_a_map_of_the_whole_model_has_no_unit_and_one_without_rows_is_left_out() -> None:
    whole = rows([[0.9], [0.9]], "model")
    found = map_scores(
        {"integrated_gradients": whole, "flow": whole},
        {"integrated_gradients": whole, "flow": rows([])},
        Head(0, 0),
    )
    assert list(found) == ["integrated_gradients"]
    assert found["integrated_gradients"]["head"] is None


def test_raw_weights_keep_the_head_of_the_headline() -> None:
    both = {"raw": rows([[0.9, 0.1]] * 3)}
    assert map_scores(both, both, Head(1, 0))["raw"]["head"] == {"layer": 1, "head": 0}


@pytest.fixture(scope="module")
def run(finished: Path) -> Run:
    return load(finished)


@pytest.fixture(scope="module")
def material(run: Run) -> Material:
    return material_of(run, Analysis(run=str(run.directory)))


@pytest.fixture(scope="module")
def found(run: Run, material: Material) -> Study:
    return study(run, material.training, material.development, material.measured, "test", 0)


def test_costly_parts_take_about_so_many_items_in_whole_blocks_and_the_rest_takes_all(
    found: Study, material: Material, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[Example]] = []

    def only_listen(run: Run, examples: list[Example], *_: object) -> dict[str, Any]:
        asked.append(examples)
        return {}

    monkeypatch.setattr(examination, "causal", only_listen)
    stages: list[str] = []
    evidence = examine(found, material.development, 6, Protocol(), stages.append)
    assert evidence["causal"] == {}
    assert len(asked[0]) == 6
    groups = [example.group for example in asked[0]]
    assert all(groups.count(group) == 2 for group in groups)
    assert {name: part["items"] for name, part in evidence["maps"].items()} == dict.fromkeys(evidence["maps"], 6)
    assert sum(row["items"] for rows in evidence["factors"]["type"].values() for row in rows) == 12
    assert evidence["more_scores"]["en"]["all"]["reverse_candidate_accuracy"] is not None
    assert len(evidence["head_roles"]) == 4
    assert "other maps" in stages


def test_a_split_without_an_item_that_counts_is_a_plain_message(found: Study) -> None:
    none = replace(
        found, measured=replace(found.measured.select(np.zeros(12, dtype=np.bool_)), dropped={"no antecedent": 12})
    )
    with pytest.raises(UserError, match=r"test split: no item of stratum main can be scored \(12 with no antecedent\)"):
        told_by_rows(none, None)


def test_items_that_were_left_out_do_not_shift_the_rows(found: Study) -> None:
    last = np.arange(12) >= 6
    baselines = {name: right[last] for name, right in found.baselines.items()}
    seen = Look(found.seen.records[6:], found.seen.answers[6:], found.seen.correct[6:])
    alone = replace(found, seen=seen, measured=score(seen.records), baselines=baselines)
    beside = replace(found, measured=found.measured.select(last), baselines=baselines)
    assert told_by_rows(beside, None) == told_by_rows(alone, None)


def test_integrated_gradients_take_whole_blocks_of_so_many_tokens(
    finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = load(finished)
    examples = [one for one in material_of(run, Analysis(run=str(finished))).measured if one.group]
    every = examination._maps(run, examples)["integrated_gradients"]
    assert (len(every.records), every.skipped) == (len(examples), 0)
    tokens = sum(len(record.spans) for record in every.records)
    monkeypatch.setattr(examination, "ATTRIBUTED", tokens // 2)
    some = examination._maps(run, examples)["integrated_gradients"]
    assert 0 < len(some.records) < len(examples)
    assert some.skipped == len(examples) - len(some.records)
    kept = [record.example for record in some.records]
    whole = [one for one in examples if one.group in {each.group for each in kept}]
    assert len(kept) == len(whole)
