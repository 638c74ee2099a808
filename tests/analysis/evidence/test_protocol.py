from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from anaphora.analysis.evidence import verdict
from anaphora.analysis.evidence.plan import Protocol
from anaphora.analysis.evidence.verdict import protocol
from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.results.scores import Head
from anaphora.analysis.scores.heads import HeadScores, score_records
from anaphora.analysis.scores.measures.effects import significance
from anaphora.analysis.scores.statistics import permutation_p
from anaphora.base.errors import UserError
from anaphora.commands.report import Report
from anaphora.data.example import Example
from anaphora.settings.arguments import settings_from
from anaphora.settings.run import Config, MovedData

HEAD = Head(0, 0)
Settings = Callable[..., Config]
Compose = Callable[..., Any]


@pytest.fixture(scope="module")
def config(settings: Settings) -> Config:
    return settings()


def test_the_protocol_says_what_was_fixed(config: Config) -> None:
    fixed = protocol(Protocol(), "test", config)
    headline = (fixed.metric, fixed.map, fixed.direction)
    assert headline == ("candidate_accuracy", "raw", "pronoun_to_candidate")
    assert (fixed.split, fixed.alpha) == ("test", 0.05)
    assert len(fixed.hash) == 16
    assert int(fixed.hash, 16) >= 0


def test_the_hash_changes_with_the_protocol_and_the_settings_but_not_with_where_the_run_lies(config: Config) -> None:
    def hash_of(run: Config = config, alpha: float = 0.05, split: str = "test") -> str:
        return protocol(Protocol(alpha=alpha), split, run).hash

    other_data = replace(config, data=replace(config.data, seed=1))
    others = [hash_of(alpha=0.01), hash_of(split="dev"), hash_of(replace(config, seed=1)), hash_of(other_data)]
    assert len({hash_of(), *others}) == 5
    assert hash_of(replace(config, name="elsewhere", output="there")) == hash_of()
    assert hash_of(replace(config, resume="outputs/begun", resume_data=MovedData(path="moved.jsonl"))) == hash_of()


def test_the_hash_covers_the_verdicts_rule(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    before = protocol(Protocol(), "test", config).hash
    for name in verdict.FIXED:
        with monkeypatch.context() as patched:
            patched.setitem(verdict.FIXED, name, "another")
            assert protocol(Protocol(), "test", config).hash != before
    assert protocol(Protocol(), "test", config).hash == before


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("protocol.alpha=0", r"protocol.alpha \(0.0\) must be above 0 and below 1"),
        ("protocol.alpha=1", r"protocol.alpha \(1.0\) must be above 0 and below 1"),
    ],
)
def test_another_protocol_is_refused(override: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        settings_from([override], Report)
    assert settings_from(["protocol.alpha=0.01"], Report).protocol.alpha == 0.01


SPANS = ((0, 2), (3, 5), (6, 8))


def items(rights: list[bool], language: str = "en", **known: str) -> list[AttentionRecord]:
    """Return minimal pairs on which the head is right or wrong as given."""
    records = []
    for number, right in enumerate(rights):
        gold = number % 2
        weights = np.array([[[0.1, 0.1, 0.1]]], dtype=np.float32)
        weights[0, 0, gold if right else 1 - gold] = 0.8
        example = Example(
            text="ab ab ab",
            language=language,
            pronoun=SPANS[2],
            candidates=((SPANS[0],), (SPANS[1],)),
            antecedents=(gold,),
            group=f"{language}{known}{number // 2}",
            minimal_pair=f"{language}{known}{number // 2}",
            factors={"cue": str(gold), **known},
        )
        records.append(AttentionRecord(example, SPANS, (0, 1, 2), weights))
    return records


@pytest.fixture(scope="module")
def scores() -> HeadScores:
    return score_records(
        [
            *items([True] * 40, kind="set"),
            *items(([True, True] * 7 + [False, False] * 3), kind="role"),
            *items([True, True, False, False] * 5, "zh", kind="role"),
            *items([False] * 30, kind="role", stratum="cataphora"),
        ]
    )


def test_p_is_reported_per_language_and_kind_and_corrected_for_all_of_them(scores: HeadScores) -> None:
    p_values = significance(scores, HEAD)
    assert {language: list(kinds) for language, kinds in p_values.items()} == {"en": ["set", "role"], "zh": ["role"]}
    raw = {(language, kind): cell.p or 0.0 for language, kinds in p_values.items() for kind, cell in kinds.items()}
    assert raw["en", "set"] == pytest.approx(1 / 2001, abs=1e-6)
    assert raw["en", "set"] < raw["en", "role"] < raw["zh", "role"]
    corrected = [p_values[language][kind].p_holm for language, kind in raw]
    assert corrected == pytest.approx([3 * raw["en", "set"], 2 * raw["en", "role"], raw["zh", "role"]], abs=1e-5)


def test_only_main_items_count(scores: HeadScores) -> None:
    main = scores.select(np.array(["stratum" not in example.factors for example in scores.examples]))
    assert significance(scores, HEAD) == significance(main, HEAD)


def test_items_without_a_kind_are_tested_together() -> None:
    assert list(significance(score_records(items([True] * 4)), HEAD)["en"]) == ["all"]


@hypothesis_settings(max_examples=10, deadline=None)
@given(st.lists(st.booleans(), min_size=8, max_size=24))
def test_the_p_of_one_cell_is_that_of_its_items_alone(hits: list[bool]) -> None:
    one = score_records(items(hits, kind="set"))
    assert significance(one, HEAD)["en"]["set"].p == pytest.approx(permutation_p(one, HEAD), abs=1e-6)


def test_every_field_of_the_protocol_stands_in_it(config: Config) -> None:
    assert {each.name for each in fields(Protocol)} <= {
        each.name for each in fields(protocol(Protocol(), "test", config))
    }
