from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from anaphora.analysis.evidence import measurement
from anaphora.analysis.evidence.headline import Headline, measure_headline
from anaphora.analysis.evidence.measurement import measure_evidence, row_evidence
from anaphora.analysis.evidence.plan import Protocol
from anaphora.analysis.maps.answers import Answers
from anaphora.analysis.maps.capture import Capture
from anaphora.analysis.maps.kinds import MapRows
from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.results.scores import Head
from anaphora.analysis.results.typed_json import to_json
from anaphora.analysis.scores.heads import score_records
from anaphora.analysis.scores.measures.maps import map_scores
from anaphora.base.errors import UserError
from anaphora.data.example import Example
from anaphora.runs.directory import Run, load
from anaphora.runs.items import EvaluationSplits, evaluation_splits

SPANS = ((0, 1), (2, 3), (4, 5))


def rows(hits: Sequence[Sequence[float]], granularity: str = "head", skipped: int = 0, kind: str = "set") -> MapRows:
    """Return an item for each list of shares: each unit gives that share of 0.9 to the antecedent."""
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
    scores = to_json(map_scores(development, measured, Head(0, 0)))
    assert scores["norm"]["head"] == {"layer": 1, "head": 0}
    assert scores["norm"]["en"]["set"]["candidate_accuracy"] == 0.5  # and not 1, which the other unit has
    assert scores["norm"]["en"]["all"]["antecedent_mass"] == pytest.approx(0.9 * 0.55)
    assert scores["rollout"]["head"] == {"layer": 0}
    assert (scores["rollout"]["items"], scores["rollout"]["skipped"]) == (3, 2)


def test_a_map_of_the_whole_model_has_no_unit_and_one_without_rows_is_left_out() -> None:
    whole = rows([[0.9], [0.9]], "model")
    scores = map_scores(
        {"integrated_gradients": whole, "flow": whole}, {"integrated_gradients": whole, "flow": rows([])}, Head(0, 0)
    )
    assert list(scores) == ["integrated_gradients"]
    assert scores["integrated_gradients"].head is None


def test_raw_weights_keep_the_head_of_the_headline() -> None:
    both = {"raw": rows([[0.9, 0.1]] * 3)}
    assert to_json(map_scores(both, both, Head(1, 0)))["raw"]["head"] == {"layer": 1, "head": 0}


@pytest.fixture(scope="module")
def headline(run: Run, material: EvaluationSplits) -> Headline:
    return measure_headline(run, material.training, material.development, material.measured, "test", 0)


def test_costly_parts_take_about_so_many_items_in_whole_blocks_and_the_rest_takes_all(
    headline: Headline, material: EvaluationSplits, monkeypatch: pytest.MonkeyPatch
) -> None:
    example_lists: list[list[Example]] = []

    def only_listen(examples: list[Example]) -> list[Example]:
        example_lists.append(examples)
        return []

    monkeypatch.setattr(measurement, "testable_items", only_listen)
    stages: list[str] = []
    evidence = measure_evidence(headline, material.development, 6, Protocol(), stages.append)
    assert len(example_lists[0]) == 6
    groups = [example.group for example in example_lists[0]]
    assert all(groups.count(group) == 2 for group in groups)
    assert {scores.items for scores in (evidence.maps or {}).values()} == {6}
    assert sum(row.items for rows in (evidence.factors or {})["type"].values() for row in rows) == 12
    assert (evidence.further_scores or {})["en"]["all"].reverse_candidate_accuracy is not None
    assert len(evidence.head_roles or ()) == 4
    assert "other maps" in stages


def test_a_split_without_an_item_that_counts_is_a_plain_message(headline: Headline) -> None:
    none = replace(
        headline,
        measured=replace(headline.measured.select(np.zeros(12, dtype=np.bool_)), dropped={"no antecedent": 12}),
    )
    with pytest.raises(UserError, match=r"test split: no item of stratum main can be scored \(12 with no antecedent\)"):
        row_evidence(none)


def test_items_that_were_left_out_do_not_shift_the_rows(headline: Headline) -> None:
    last = np.arange(12) >= 6
    baselines = {name: right[last] for name, right in headline.baselines.items()}
    answers = headline.capture.answers
    assert answers is not None
    rest = Capture(
        headline.capture.records[6:], Answers(answers.candidates[6:], answers.correct[6:], answers.silent[6:])
    )
    part = replace(headline, baselines=baselines, untrained=headline.untrained[:, last])
    alone = replace(part, capture=rest, measured=score_records(rest.records))
    beside = replace(part, measured=headline.measured.select(last))
    assert row_evidence(beside) == row_evidence(alone)


def test_integrated_gradients_take_whole_blocks_of_so_many_tokens(
    finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = load(finished)
    examples = [one for one in evaluation_splits(run, "test").measured if one.group]
    every = measurement._map_rows(run, examples)["integrated_gradients"]
    assert (len(every.records), every.skipped) == (len(examples), 0)
    tokens = sum(len(record.spans) for record in every.records)
    monkeypatch.setattr(measurement, "MAX_ATTRIBUTED_TOKENS", tokens // 2)
    some = measurement._map_rows(run, examples)["integrated_gradients"]
    assert 0 < len(some.records) < len(examples)
    assert some.skipped == len(examples) - len(some.records)
    kept = [record.example for record in some.records]
    whole = [one for one in examples if one.group in {each.group for each in kept}]
    assert len(kept) == len(whole)
