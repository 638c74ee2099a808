from __future__ import annotations

import pytest

from anaphora.analysis.evidence.schema.evidence import Evidence
from anaphora.report.numbers import format_percent
from anaphora.report.page.atlas.entry import AtlasEntry
from anaphora.report.page.atlas.findings import findings


@pytest.mark.parametrize("language", ["en", "zh"])
def test_findings_give_the_numbers_that_they_rest_on(evidence: Evidence, language: str) -> None:
    entry = AtlasEntry(model="mine", kind="run", is_decoder=False, corpus="gap", evidence=evidence, heads={})
    sentences = list(findings([entry], language))
    for code, whole in evidence.languages.items():
        tested = evidence.causal_cells[code]["all"]
        loss = tested.knockout["layer"].edges["gold"]
        shares = (whole.candidate_accuracy, whole.chance)
        assert any(all(f"{format_percent(share)} %" in one for share in shares) for one in sentences)
        assert any(
            format_percent(loss.drop) in one and format_percent(tested.task_accuracy) in one for one in sentences
        )
    assert all(one.startswith("GAP") and "{" not in one for one in sentences)
