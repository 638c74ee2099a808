from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from anaphora.report import evidence_figures as drawn

Metrics = dict[str, Any]
PARTS: dict[str, Callable[[Metrics], Figure | None]] = {
    "effects": lambda m: drawn.effects(m["effects"]),
    "knock-out": lambda m: drawn.knock_out(m["causal"]),
    "ablation": lambda m: drawn.ablation(m["causal"]),
    "patch": lambda m: drawn.patch(m["causal"]),
    "dose-response": lambda m: drawn.dose_response(m["causal"]),
    "maps": lambda m: drawn.maps(m["maps"]),
    "controls": lambda m: drawn.controls(m["controls"], m),
    "strata": lambda m: drawn.strata(m["strata"]),
    "factors": lambda m: drawn.factors(m["factors"]),
}
every_part = pytest.mark.parametrize("draw", PARTS.values(), ids=PARTS)


def hollow(value: Any, depth: int) -> Any:
    """`value` with null for all that stands deeper than `depth` keys."""
    if depth == 0:
        return None
    if isinstance(value, dict):
        return {key: hollow(one, depth - 1) for key, one in value.items()}
    return value


def texts(figure: Figure) -> list[Text]:
    return [text for text in figure.findobj(Text) if isinstance(text, Text) and text.get_visible() and text.get_text()]


def words_of(figure: Figure) -> set[str]:
    return {text.get_text() for text in texts(figure)}


@pytest.mark.filterwarnings("error")
@every_part
def test_every_part_is_drawn_whole_and_in_type_of_six_points_or_more(
    draw: Callable[[Metrics], Figure | None], metrics: Metrics
) -> None:
    figure = draw(metrics)
    assert figure is not None
    figure.draw_without_rendering()
    inked = figure.get_tightbbox()
    assert inked is not None
    assert min(inked.xmin, inked.ymin) >= -0.01
    assert inked.xmax <= figure.get_figwidth() + 0.01
    assert inked.ymax <= figure.get_figheight() + 0.01
    assert min(float(text.get_fontsize()) for text in texts(figure)) >= 6


@every_part
@pytest.mark.parametrize("depth", [1, 3, 5])
def test_what_was_not_measured_is_no_figure_and_no_fault(
    draw: Callable[[Metrics], Figure | None], depth: int, metrics: Metrics
) -> None:
    figure = draw(hollow(metrics, depth))
    assert depth > 1 or figure is None


def test_a_group_of_all_cues_stands_in_where_kinds_are_not_told_apart() -> None:
    part = {"zh": {"all": {"meaning": {"value": 0.5, "interval": None}}}}
    figure = drawn.effects(part)
    assert figure is not None
    assert "Chinese" in words_of(figure)


def test_bars_are_as_long_as_the_accuracy_that_is_lost(metrics: Metrics) -> None:
    figure = drawn.knock_out(metrics["causal"])
    assert figure is not None
    longest = max(patch.get_width() for axes in figure.axes for patch in axes.patches)  # type: ignore[attr-defined]
    cells = [
        cell for language in metrics["causal"]["languages"].values() for kind, cell in language.items() if kind != "all"
    ]
    assert longest == max(cell["knock_out"]["everywhere"]["gold"]["drop"] for cell in cells)


def test_negative_drops_stay_inside_the_axis(metrics: Metrics) -> None:
    cell = metrics["causal"]["languages"]["en"]["set"]["knock_out"]["head"]
    cell["distractor"] = {"drop": -0.4, "interval": [-0.6, -0.2], "mass_removed": 0.1}
    figure = drawn.knock_out(metrics["causal"])
    assert figure is not None
    assert all(axes.get_xlim()[0] < -0.6 for axes in figure.axes[1:])


def test_every_scope_and_matched_edge_is_named(metrics: Metrics) -> None:
    figure = drawn.knock_out(metrics["causal"])
    assert figure is not None
    edges = {name.replace("’", "'") for name in drawn.EDGES.values()}
    assert {*drawn.SCOPES.values(), *edges} <= words_of(figure)


def test_the_broken_line_surrounds_the_heads_above_untrained_models() -> None:
    scores = np.full((3, 4), 0.45)  # above chance, and no more than an untrained model reaches
    scores[1, 2] = 0.9
    figure = drawn.contoured_grid(scores, 0.4, 0.5, (1, 2), "")
    ways = {
        tuple(map(tuple, np.column_stack([line.get_xdata(), line.get_ydata()]).astype(int).tolist()))
        for line in figure.axes[1].lines
    }
    assert ways == {((2, 1), (2, 2)), ((3, 1), (3, 2)), ((2, 1), (3, 1)), ((2, 2), (3, 2))}


def test_without_untrained_models_no_line_is_drawn() -> None:
    figure = drawn.contoured_grid(np.ones((2, 2)), 0.4, None, (0, 0), "")
    assert not figure.axes[1].lines


def test_controls_that_have_not_run_are_not_drawn(metrics: Metrics) -> None:
    figure = drawn.controls(metrics["controls"], metrics)
    assert figure is not None
    assert {"this run", "uniform attention"} <= words_of(figure)
    assert "shuffled labels" not in words_of(figure)
    assert drawn.controls(dict.fromkeys(drawn.CONTROLS), metrics) is None
