"""Tests that the Chinese page has no English except names, code and data."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from markupsafe import Markup
from matplotlib.figure import Figure
from matplotlib.text import Text

from anaphora.analysis.evidence.comparison import RowDivergence
from anaphora.analysis.evidence.controls import EXPECTED
from anaphora.analysis.evidence.evidence import Control, Evidence
from anaphora.analysis.evidence.verdict import verdict, verdict_at_head
from anaphora.analysis.scores.measures.levels import Level
from anaphora.base.translation import _, spoken_in
from anaphora.report.figures.maps import QuadCell
from anaphora.report.page import write
from anaphora.report.page.elements import ReportRun
from anaphora.report.page.write import write_report

NAMES = (
    {"rollout", "flow", "kappa", "Spearman", "rho", "MAS", "Winograd", "Jensen-Shannon", "Holm"}
    | {"CLS", "SEP", "JavaScript", "Tab", "Enter"}
    | {"Vaswani", "Clark", "Efron", "Heimersheim", "Nanda", "Kobayashi", "Abnar", "Zuidema", "Mohebbi"}
    | {"Sundararajan", "Klein", "Nabi", "Cohen"}
)
"""Words that are not translated into Chinese: names, keys and tokens."""
DATA = re.compile(r"\b(?:en|zh)(?:/\w+)+|data:\S+|\b[0-9a-f]{16}\b")
"""Names of templates, and hashes."""
SENTENCE = ["[CLS]", "小红", "遇见", "了", "图书馆管理员", "，", "因为", "她", "很", "高兴", "。", "[SEP]"]


class ChineseText(HTMLParser):
    """Parser of the visible and spoken text of each section, without parts marked as English."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.section = "header"
        self.english: list[bool] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag == "section":
            self.section = attributes["id"] or ""
        if tag not in ("meta", "input", "br"):
            own = {"zh": False, "en": True}.get(attributes.get("lang") or "")
            inherited = bool(self.english) and self.english[-1]
            self.english.append(tag in ("script", "style") or (inherited if own is None else own))
        for name in ("aria-label", "title", "placeholder"):
            self._keep(attributes.get(name) or "")

    def handle_endtag(self, tag: str) -> None:
        self.english.pop()

    def handle_data(self, data: str) -> None:
        self._keep(data)

    def _keep(self, text: str) -> None:
        if not self.english or not self.english[-1]:
            self.texts.setdefault(self.section, []).append(text)


def english_words(texts: Iterable[str]) -> set[str]:
    return {
        word for text in texts for word in re.findall(r"[A-Za-z][A-Za-z’'-]+", DATA.sub(" ", text)) if word not in NAMES
    }


@pytest.fixture(scope="module")
def spoken(
    tmp_path_factory: pytest.TempPathFactory,
    evidence: Evidence,
    level: Level,
    sentences: list[dict[str, Any]],
    validations: list[dict[str, float]],
) -> tuple[ChineseText, dict[str, Figure]]:
    """Return the page on two runs, one of which has all parts of the evidence, and its figures."""
    assert evidence.controls
    assert evidence.controls["uniform"]
    trained = evidence.controls["uniform"]
    observed = (
        "en role cues task 46.0 % (chance 44.0 %); zh set cues candidate 50.0 % (chance 44.0 %); en items task 9.0 % "
        "(chance 44.0 %); zh items candidate 9.0 % (chance 44.0 %)."
    )
    nothing = "The measured items contain nothing that this applies to."
    controls: dict[str, Control | None] = {
        name: replace(
            trained, expected=each.statement, observed=f"{observed} {each.if_above}" if each.if_above else nothing
        )
        for name, each in EXPECTED.items()
    }
    controls["uniform"] = replace(trained, expected=EXPECTED["uniform"].statement, observed=observed)
    whole = replace(evidence, controls=controls, levels={"zh": {"L1": level, "unseen_names": level}})
    whole = replace(whole, verdict=verdict(whole, 0.05), verdict_at_head=verdict_at_head(whole, 0.05))
    with pytest.MonkeyPatch.context() as patch, spoken_in("zh"):
        # The figures' texts are read from the figures.
        patch.setattr(write, "inline_figure", lambda *_: write.InlineFigure("", Markup()))
        cell = QuadCell(
            words=SENTENCE,
            weights=np.linspace(0, 0.1, len(SENTENCE)),
            pronoun=7,
            antecedents=[1],
            distractors=[4],
            label=_("cue: {cue} · order {order}").format(cue="高兴", order=1),
        )
        run = ReportRun(
            name="甲",
            evidence=whole,
            validations=validations,
            heads={language: np.linspace(0.3, 1, 12).reshape(3, 4) for language in ("en", "zh")},
            heads_chance={"en": 0.44, "zh": 0.44},
            chance=0.45,
            quads=[("zh", "role", [cell] * 4)],
            sentences=sentences[:4],
        )
        bare = replace(evidence, strata={}, effects=None, factors=None, maps=None, causal=None, controls=None)
        runs = [run, ReportRun(name="乙", evidence=replace(bare, verdict=verdict(bare, 0.05)))]
        apart = [RowDivergence(run="甲", other="乙", language="zh", items=80, divergence=0.2, interval=None)]
        path = tmp_path_factory.mktemp("chinese") / "report.html"
        title, other = _("Pronouns and antecedents: {names}").format(names="甲、乙"), {"en": "report.en.html"}
        figures = write_report(path, runs, title, (), apart, other)
    return ChineseText(path.read_text(encoding="utf-8")), figures["甲"]


def test_every_section_is_wholly_chinese(spoken: tuple[ChineseText, dict[str, Figure]]) -> None:
    left = {section: english_words(texts) for section, texts in spoken[0].texts.items()}
    assert len(left) > 20
    assert not {section: words for section, words in left.items() if words}


def test_every_figure_is_wholly_chinese(spoken: tuple[ChineseText, dict[str, Figure]]) -> None:
    left = {name: english_words(text.get_text() for text in figure.findobj(Text)) for name, figure in spoken[1].items()}
    assert len(left) >= 14
    assert not {name: words for name, words in left.items() if words}
