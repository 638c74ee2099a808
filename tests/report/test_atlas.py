from __future__ import annotations

import re
from dataclasses import replace

import pytest

from anaphora.analysis.evidence.schema.evidence import Evidence
from anaphora.analysis.evidence.schema.typed_json import Interval
from anaphora.report.numbers import format_percent
from anaphora.report.page.atlas.entry import AtlasEntry
from anaphora.report.page.atlas.findings import findings
from anaphora.report.wording import spoken_in


@pytest.mark.parametrize("language", ["en", "zh"])
def test_findings_give_the_numbers_that_they_rest_on(evidence: Evidence, language: str) -> None:
    entry = AtlasEntry(model="mine", is_decoder=False, corpus="gap", evidence=evidence, heads={})
    with spoken_in(language):
        sentences = list(findings([entry]))
    for code, whole in evidence.languages.items():
        tested = evidence.causal_cells[code]["all"]
        loss = tested.knockout["layer"].edges["gold"]
        shares = (whole.candidate_accuracy, whole.chance)
        assert any(all(f"{format_percent(share)} %" in one for share in shares) for one in sentences)
        assert any(
            format_percent(loss.drop) in one and format_percent(tested.task_accuracy) in one for one in sentences
        )
    assert all(one.startswith("GAP") and "{" not in one for one in sentences)


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
