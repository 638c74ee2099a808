from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from anaphora.analysis.evidence.evidence import Evidence
from anaphora.analysis.results.causal import AlignedPatching, CausalCell, Flipped, KnockoutLoss
from anaphora.analysis.results.typed_json import Interval
from anaphora.analysis.scores.measures.effects import Effect, Effects
from anaphora.analysis.scores.measures.factors import FactorValue
from anaphora.base.errors import UserError
from anaphora.report.figures import causal, heads, measures, panels
from anaphora.report.figures.panels import Mark, panel_figure, row_below
from anaphora.report.page.elements import FigureElement, ReportRun
from anaphora.report.page.sections.causal import ablation_section
from anaphora.report.wording import control_names, edge_names, scope_names

OPTIONAL: dict[str, Any] = {each.name: None for each in fields(Evidence) if each.default is None}
"""Optional parts of the evidence, set to None."""

Draw = Callable[[Evidence], Figure | None]
PARTS: dict[str, Draw] = {
    "effects": lambda evidence: measures.effects_figure(evidence.effects),
    "knockout": lambda evidence: causal.knockout_figure(evidence.causal_cells),
    "ablation": lambda evidence: causal.ablation_figure(evidence.causal_cells),
    "patching": lambda evidence: causal.patching_figure(evidence.causal_cells),
    "equal doses": lambda evidence: causal.equal_doses_figure(evidence.causal_cells),
    "dose-response": lambda evidence: causal.dose_response_figure(evidence.causal_cells),
    "maps": lambda evidence: measures.maps_figure(evidence.maps),
    "controls": measures.controls_figure,
    "strata": lambda evidence: measures.strata_figure(evidence.strata),
    "factors": lambda evidence: measures.factors_figure(evidence.factors),
}
every_part = pytest.mark.parametrize("draw", PARTS.values(), ids=PARTS)


def hollow(value: Any) -> Any:
    """Return a part of the evidence with None for every optional value and interval."""
    if is_dataclass(value) and not isinstance(value, type):
        hints = get_type_hints(type(value))
        plain = {each.name: getattr(value, each.name) for each in fields(value)}
        empty = {
            name: None
            for name, hint in hints.items()
            if name in plain and type(None) in get_args(hint) and isinstance(plain[name], int | float | Interval)
        }
        return replace(value, **{name: hollow(inner) for name, inner in plain.items() if name not in empty}, **empty)
    if isinstance(value, dict):
        return {name: hollow(inner) for name, inner in value.items()}
    if isinstance(value, tuple) and not isinstance(value, Interval):
        return tuple(map(hollow, value))
    return value


def texts(figure: Figure) -> list[Text]:
    return [text for text in figure.findobj(Text) if isinstance(text, Text) and text.get_visible() and text.get_text()]


def words_of(figure: Figure) -> set[str]:
    return {text.get_text() for text in texts(figure)}


@pytest.mark.filterwarnings("error")
@every_part
def test_every_part_is_drawn_whole_and_in_type_of_six_points_or_more(draw: Draw, evidence: Evidence) -> None:
    figure = draw(evidence)
    assert figure is not None
    figure.draw_without_rendering()
    inked = figure.get_tightbbox()
    assert inked is not None
    assert min(inked.xmin, inked.ymin) >= -0.01
    assert inked.xmax <= figure.get_figwidth() + 0.01
    assert inked.ymax <= figure.get_figheight() + 0.01
    assert min(float(text.get_fontsize()) for text in texts(figure)) >= 6


@every_part
def test_what_was_not_measured_is_no_figure_and_no_fault(draw: Draw, evidence: Evidence) -> None:
    assert draw(replace(evidence, strata={}, **OPTIONAL)) is None
    assert draw(hollow(evidence)) is None


def test_a_group_of_all_cues_stands_in_where_kinds_are_not_distinguished() -> None:
    effect = Effect(value=0.5, interval=None, quads=1)
    figure = measures.effects_figure({"zh": {"all": Effects(meaning=effect, position=effect, entity=effect)}})
    assert figure is not None
    assert "Chinese" in words_of(figure)


def test_bars_are_as_long_as_the_accuracy_that_is_lost(evidence: Evidence) -> None:
    figure = causal.knockout_figure(evidence.causal_cells)
    assert figure is not None
    longest = max(patch.get_width() for axes in figure.axes for patch in axes.patches)  # type: ignore[attr-defined]
    drops = [
        cell.knockout["all_layers"].edges["gold"].drop or 0
        for kinds in evidence.causal_cells.values()
        for kind, cell in kinds.items()
        if kind != "all"
    ]
    assert longest == max(drops)


def test_negative_drops_stay_inside_the_axis(evidence: Evidence) -> None:
    cells = {language: dict(kinds) for language, kinds in evidence.causal_cells.items()}
    cell = cells["en"]["set"]
    edges = cell.knockout["head"].edges
    edges = edges | {"distractor": KnockoutLoss(drop=-0.4, interval=Interval(-0.6, -0.2), mass_removed=0.1)}
    cells["en"]["set"] = replace(cell, knockout={**cell.knockout, "head": replace(cell.knockout["head"], edges=edges)})
    figure = causal.knockout_figure(cells)
    assert figure is not None
    assert all(axes.get_xlim()[0] < -0.6 for axes in figure.axes[1:])


def test_an_edge_that_was_not_measured_is_a_dash_and_no_bar_of_length_0(evidence: Evidence) -> None:
    cells = {language: dict(kinds) for language, kinds in evidence.causal_cells.items()}
    cell = cells["en"]["set"]
    whole = causal.knockout_figure(cells)
    assert whole is not None and "gold" in cell.knockout["layer"].edges and "–" not in words_of(whole)
    unmeasured = {edge: loss for edge, loss in cell.knockout["layer"].edges.items() if edge != "gold"}
    layer = replace(cell.knockout["layer"], edges=unmeasured)
    cells["en"]["set"] = replace(cell, knockout={**cell.knockout, "layer": layer})
    partial = causal.knockout_figure(cells)
    assert partial is not None and "–" in words_of(partial)
    assert "not measured" in words_of(partial) - words_of(whole)


def test_ticks_differ_in_pattern_and_a_loss_of_0_is_a_point() -> None:
    forms = ("tick", "dotted tick", "dashed tick", "bar")
    figure = panel_figure("", [("a", False)], [""], {("a", ""): [Mark(0.0, None, "black", form) for form in forms]},
                          "", (0.0, 1.0))  # fmt: skip
    lines = figure.axes[1].get_lines()
    assert [line.is_dashed() for line in lines[:3]] == [False, True, True]
    assert str(panels._tick_pattern(forms[1], "")) != str(panels._tick_pattern(forms[2], ""))
    assert lines[3].get_marker() == "o"


def test_every_scope_and_matched_edge_is_named(evidence: Evidence) -> None:
    figure = causal.knockout_figure(evidence.causal_cells)
    assert figure is not None
    edges = {edge_names()[edge].replace("’", "'") for edge in causal.EDGES}
    assert {*scope_names().values(), *edges} <= words_of(figure)


def test_values_of_a_factor_are_in_order_where_no_language_has_them_all() -> None:
    def one(value: str) -> FactorValue:
        return FactorValue(value=value, items=9, antecedent_mass=0.5, task_accuracy=0.9, candidate_accuracy=0.8,
                           interval=None, chance=0.5)  # fmt: skip

    cells = {
        language: tuple(map(one, values))
        for language, values in {"en": ("6-8", "12 or more"), "zh": ("0-2", "3-5", "9-11")}.items()
    }
    figure = measures.factors_figure({"distance": cells})
    assert figure is not None
    rows = [text.get_text() for text in texts(figure)]
    ranges = [row for row in rows if row in {"0–2", "3–5", "6–8", "9–11", "12 or more"}]
    assert ranges == ["0–2", "3–5", "6–8", "9–11", "12 or more"]


def test_a_head_that_somebody_named_is_not_called_chosen() -> None:
    named = heads.head_grid_figure(np.full((2, 2), 0.5), 0.4, (1, 0), "", None, "named")
    assert "framed: layer 1 head 0, named, not chosen on the development split" in words_of(named)


def test_the_broken_line_surrounds_the_heads_above_untrained_models() -> None:
    scores = np.full((3, 4), 0.45)  # above chance, and no more than an untrained model reaches
    scores[1, 2] = 0.9
    figure = heads.head_grid_figure(scores, 0.4, (1, 2), "", 0.5)
    ways = {
        tuple(map(tuple, np.column_stack([line.get_xdata(), line.get_ydata()]).astype(int).tolist()))
        for line in figure.axes[1].lines
    }
    assert ways == {((2, 1), (2, 2)), ((3, 1), (3, 2)), ((2, 1), (3, 1)), ((2, 2), (3, 2))}


def test_the_broken_line_surrounds_no_head_at_chance_that_untrained_models_stay_below() -> None:
    figure = heads.head_grid_figure([[0.47], [0.43], [0.9]], 0.44, (2, 0), "", 0.42)
    drawn = {tuple(np.asarray(line.get_ydata()).tolist()) for line in figure.axes[1].lines}
    assert drawn == {(0, 0), (1, 1), (2, 2), (0, 1), (2, 3), (3, 3)}
    assert any("above chance (44 %)" in word for word in words_of(figure))


def test_without_other_heads_nothing_random_is_drawn_or_named(evidence: Evidence) -> None:
    figure = causal.ablation_figure(evidence.causal_cells)
    assert figure is not None and any("random heads" in word for word in words_of(figure))
    alone = {language: groups_without_random(groups) for language, groups in evidence.causal_cells.items()}
    figure = causal.ablation_figure(alone)
    assert figure is not None and not any("random heads" in word for word in words_of(figure))
    assert evidence.causal is not None
    run = ReportRun(name="a", evidence=replace(evidence, causal=replace(evidence.causal, languages=alone)))
    summary = " ".join(element.alt for element in ablation_section(run).elements if isinstance(element, FigureElement))
    assert summary and "random" not in summary


def groups_without_random(groups: Mapping[str, CausalCell]) -> dict[str, CausalCell]:
    """Return the cells of a model without other heads in its layers."""
    return {
        name: replace(
            cell,
            head_ablation=replace(
                cell.head_ablation,
                cumulative=tuple(replace(step, random=None) for step in cell.head_ablation.cumulative),
            ),
        )
        for name, cell in groups.items()
    }


def test_without_untrained_models_no_line_is_drawn() -> None:
    figure = heads.head_grid_figure(np.ones((2, 2)), 0.4, (0, 0), "")
    assert not figure.axes[1].lines


def test_controls_that_have_not_run_are_not_drawn(evidence: Evidence) -> None:
    figure = measures.controls_figure(evidence)
    assert figure is not None
    assert {"this run", "uniform attention"} <= words_of(figure)
    assert "shuffled labels" not in words_of(figure)
    assert measures.controls_figure(replace(evidence, controls=dict.fromkeys(control_names()))) is None


def test_rows_below_other_headings_print_the_whole_text_of_their_own() -> None:
    rows = [(row_below("one", text), False) for text in ("his/her", "him/her")]
    marks = {(name, "English"): [Mark(0.5, None, "black", "o")] for name, _ in rows}
    figure = panel_figure("", rows, ["English"], marks, "", (0.0, 1.0))
    assert {"his/her", "him/her"} <= words_of(figure)


def test_where_only_aligned_pairs_are_patched_the_figure_shows_them_over_whole_heads(evidence: Evidence) -> None:
    unmeasured = Flipped(flipped=None, interval=None)
    aligned = AlignedPatching(
        pairs=90, head=Flipped(flipped=0.7, interval=None), layer=Flipped(flipped=0.8, interval=None)
    )
    cells = {
        language: {
            kind: replace(
                cell,
                pattern_patching=replace(
                    cell.pattern_patching,
                    head=unmeasured, layer=unmeasured, all_layers=unmeasured, cumulative=(), aligned=aligned,
                ),
            )
            for kind, cell in kinds.items()
        }
        for language, kinds in evidence.causal_cells.items()
    }  # fmt: skip
    figure = causal.patching_figure(cells)
    assert figure is not None
    figure.canvas.draw()
    panels = figure.axes[1:]
    assert panels
    for axes in panels:
        low, high = axes.get_xlim()
        assert [tick for tick in axes.get_xticks() if low <= tick <= high] == [1]
        assert {0.7, 0.8} <= {float(np.ravel(line.get_ydata())[0]) for line in axes.get_lines()}


def test_layers_without_attention_are_hatched_and_have_no_score() -> None:
    scores = np.array([[np.nan, np.nan], [0.25, 0.75]])
    grid = heads.head_grid_figure(scores, 0.5, (1, 1), "", 0.6)
    several = heads.head_grids_figure([heads.HeadGrid("m", "", scores, (1, 1))], 0.5, "", "", ("layer", "head"))
    for figure in (grid, several):
        drawn = [text.get_text() for text in figure.findobj(Text) if isinstance(text, Text)]
        assert "hatched: layers without attention" in drawn
        assert [patch.get_hatch() for patch in figure.axes[1].patches if patch.get_hatch()] == ["////"]
    printed = [text.get_text() for text in grid.axes[1].texts]
    assert [text for text in printed if text.strip("0123456789.") == ""] == ["25", "75"]
    with pytest.raises(UserError, match="scores must be finite; 1 of 2 are not"):
        heads.head_grid_figure([[np.nan, 0.5]], 0.5, (0, 1), "")
