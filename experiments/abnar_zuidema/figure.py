"""Figure of the replication: correlation of each map with blank-out importance, by layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from anaphora.base.errors import UserError
from anaphora.report.figures import style
from anaphora.report.figures.fonts import drawable_text
from anaphora.report.figures.sheet import Heading, Sheet, spread_labels
from anaphora.report.figures.style import figure_style


@dataclass(frozen=True)
class CorrelationPoint:
    """Mean correlation with its confidence interval, if there is one."""

    mean: float
    low: float | None = None
    high: float | None = None


_MAP_STYLES: dict[str, dict[str, Any]] = {
    "raw": {"color": style.MUTED, "linestyle": (0, (5, 2)), "marker": "o"},
    "rollout": {"color": style.INK, "linestyle": "-", "marker": "s"},
    "flow": {"color": style.ANTECEDENT, "linestyle": "-", "marker": "D"},
}


@figure_style()
def layer_correlation_figure(panels: Mapping[str, Mapping[str, Sequence[CorrelationPoint]]]) -> Figure:
    """Draw small axes side by side on one scale, with a line and intervals for each map.

    Args:
        panels: for each title, the points of each map ("raw", "rollout", "flow"), one for each layer from the first on.

    Raises:
        UserError: there is no panel, or a map has no point.
    """
    if not panels or any(not points for lines in panels.values() for points in lines.values()):
        raise UserError("the figure needs at least one panel, and a layer for each of its maps")
    points = [point for lines in panels.values() for line in lines.values() for point in line]
    ends = [end for point in points for end in (point.mean, point.low, point.high) if end is not None]
    low, high = min(-0.25, min(ends) - 0.05), max(1.0, max(ends))
    left, gap, tall, foot, room = 0.62, 0.3, 1.9, 0.5, 0.5
    panel = (style.DOUBLE_COLUMN - left - 0.1 - 2 * room - gap) / 2
    heading = Heading("Which map ranks the tokens as blanking them out does?", None)
    width = left + len(panels) * (panel + room) + (len(panels) - 1) * gap + 0.1
    sheet = Sheet(max(width, heading.width + 0.3), heading.height + 0.3 + tall + foot, heading)
    for number, (title, lines) in enumerate(panels.items()):
        start = left + number * (panel + room + gap)
        axes = sheet.axes(start, foot, panel, tall)
        sheet.canvas.text(start, foot + tall + 0.08, drawable_text(title), fontsize=style.TEXT, fontweight="bold")
        layers = max(len(line) for line in lines.values())
        axes.set(xlim=(0.7, layers + 0.3), ylim=(low, high), xlabel="layer")
        axes.xaxis.set_major_locator(MultipleLocator(1))
        axes.grid(axis="y")
        axes.axhline(0, color=style.INK, linewidth=0.8, zorder=1.5)
        if number:
            axes.tick_params(axis="y", labelleft=False, length=0)
        else:
            axes.set_ylabel("rank correlation")
        for name, line in lines.items():
            form = _MAP_STYLES[name]
            numbers = list(range(1, len(line) + 1))
            for layer, point in zip(numbers, line, strict=True):
                if point.low is not None and point.high is not None:
                    axes.plot([layer] * 2, [point.low, point.high], color=form["color"], linewidth=1.2)
            axes.plot(numbers, [point.mean for point in line], linewidth=1.5, markersize=3.8,
                      markeredgecolor=style.PAPER, markeredgewidth=0.5, **form)  # fmt: skip
        heights = spread_labels([line[-1].mean for line in lines.values()], 0.14 / tall * (high - low), low, high)
        for name, height in zip(lines, heights, strict=True):
            sheet.canvas.text(
                start + panel + 0.05, foot + (height - low) / (high - low) * tall - 0.032, name, fontsize=style.SMALL,
                color=_MAP_STYLES[name]["color"], fontweight="bold",
            )  # fmt: skip
    return sheet.figure
