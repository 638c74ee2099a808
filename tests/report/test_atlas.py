from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from anaphora.analysis.evidence.evidence import Evidence
from anaphora.analysis.results.typed_json import Interval
from anaphora.base.translation import spoken_in
from anaphora.data.tokens.words import UnreadMentions
from anaphora.report.numbers import format_percent
from anaphora.report.page.atlas.entries import AtlasEntry, findings
from anaphora.report.page.atlas.page import write_atlas


@pytest.mark.parametrize("language", ["en", "zh"])
def test_findings_give_the_numbers_that_they_rest_on(evidence: Evidence, language: str) -> None:
    entry = AtlasEntry(model="mine", is_decoder=False, corpus="gap", evidence=evidence, heads={})
    with spoken_in(language):
        sentences = list(findings([entry]))
    for code, whole in evidence.languages.items():
        tested = evidence.causal_cells[code]["all"]
        loss = tested.knockout["layer"].edges["gold"]
        shares = (whole.candidate_accuracy, whole.chance)
        percents = [f"{format_percent(share)}{' %' if language == 'en' else '%'}" for share in shares]
        assert any(all(percent in one for percent in percents) for one in sentences)
        assert any(
            format_percent(loss.drop) in one and format_percent(tested.task_accuracy) in one for one in sentences
        )
    assert all(one.startswith("GAP") and "{" not in one for one in sentences)


@pytest.mark.parametrize(
    ("drop", "ends", "said"),
    [
        (0.25, (0.1, 0.4), "and 25.0 points fewer (95 % interval 10.0 to 40.0) once"),
        (-0.1, (-0.445, 0.245), "and 10.0 points more (95 % interval −24.5 to 44.5) once"),
        (0.0, (-0.1, 0.1), "and as many (95 % interval of the difference: −10.0 to 10.0 points) once"),
        (0.0, (0.0, 0.0), "and as many once"),
        (1.0, (1.0, 1.0), "and 100.0 points fewer once"),
    ],
)
def test_answers_that_are_gained_or_kept_are_not_called_fewer(
    drop: float, ends: tuple[float, float], said: str, evidence: Evidence
) -> None:
    assert evidence.causal is not None
    cell = evidence.causal_cells["en"]["all"]
    edges = cell.knockout["layer"].edges
    edges = edges | {"gold": replace(edges["gold"], drop=drop, interval=Interval(*ends))}
    knockout = {**cell.knockout, "layer": replace(cell.knockout["layer"], edges=edges)}
    languages = {"en": {"all": replace(cell, knockout=knockout)}}
    changed = replace(evidence, causal=replace(evidence.causal, languages=languages))
    entry = AtlasEntry(model="mine", is_decoder=False, corpus="gap", evidence=changed, heads={})
    assert any(said in one for one in findings([entry]))
    with spoken_in("zh"):
        assert not any(re.search(r"少答对 −|\d–", one) for one in findings([entry]))


def test_models_are_listed_in_chinese_with_chinese_commas(evidence: Evidence) -> None:
    whole = evidence.languages["en"]
    best = replace(whole.intervals, candidate_accuracy=Interval(0.98, 1.0))
    alone = replace(evidence, languages={"en": replace(whole, intervals=best)})
    names = ("mine", "yours")
    entries = [AtlasEntry(model=name, is_decoder=False, corpus="gap", evidence=alone, heads={}) for name in names]
    with spoken_in("zh"):
        assert "mine、yours。" in next(findings(entries))


def test_a_head_is_above_all_only_where_all_was_measured_and_what_was_not_is_left_out(evidence: Evidence) -> None:
    whole = evidence.languages["en"]
    best = replace(whole.intervals, candidate_accuracy=Interval(0.98, 1.0))
    alone = replace(evidence, languages={"en": replace(whole, intervals=best)})
    bare = {name: value for name, value in whole.baselines.items() if not name.startswith("random_init")}
    unmeasured = replace(evidence, languages={"en": replace(whole, intervals=best, baselines=bare)})

    def sentence(of: Evidence) -> str:
        return next(findings([AtlasEntry(model="mine", is_decoder=False, corpus="gap", evidence=of, heads={})]))

    assert "With its whole interval above all three: mine." in sentence(alone)
    assert "untrained models" in sentence(alone)
    assert not re.search("above all three|untrained models|–", sentence(unmeasured))
    few = replace(
        evidence, languages={"en": replace(whole, intervals=replace(whole.intervals, candidate_accuracy=None))}
    )
    assert "95 % interval" in sentence(alone) and not re.search("interval|–", sentence(few).partition("For ")[0])


def test_a_note_on_unread_words_names_the_data_as_the_rest_of_the_page_does(tmp_path: Path, evidence: Evidence) -> None:
    unread = UnreadMentions(items=2, of=5, words=("Zoë",))
    heads = {language: np.full((3, 4), 0.5) for language in evidence.languages}
    entry = AtlasEntry(model="mine", is_decoder=False, corpus="jsonl", evidence=evidence, heads=heads, unread=unread)
    write_atlas(tmp_path / "atlas.html", [entry], "test")
    page = (tmp_path / "atlas.html").read_text(encoding="utf-8")
    assert "mine, Own items: of 5 items, 2 have" in page
