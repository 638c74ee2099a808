"""Figure that shows measured shares as points and their intervals as lines, with one row per label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from matplotlib.figure import Figure

from anaphora.base.errors import UserError
from anaphora.report.figures import style
from anaphora.report.figures.fonts import drawable_text
from anaphora.report.figures.sheet import (
    MEASURE_MARKERS,
    Heading,
    Sheet,
    legend_lines,
    text_width,
    tick_style,
    wrapped_title,
)
from anaphora.report.figures.style import figure_style

_SYMBOL_WIDTH, _LEGEND_LINE = 0.31, 0.2
"""Width of a legend symbol with its gaps, and height of a legend line, in inches."""


@dataclass(frozen=True, kw_only=True)
class SharePoint:
    """Point of a figure: a measured share in [0, 1] with its interval and its baselines.

    Points with the same label share a row of the figure; `measure` names the measured quantity.
    """

    label: str
    value: float
    low: float | None = None
    high: float | None = None
    baselines: Mapping[str, float] = field(default_factory=dict)
    measure: str = ""


@figure_style()
def share_points_figure(rows: Sequence[SharePoint], title: str = "", label: str = "accuracy (%)") -> Figure:
    """Draw shares with intervals on an axis from 0 to 100 %, one row per label, with baselines as ticks.

    Raises:
        UserError: no rows, or a value, interval or baseline outside [0, 1].
    """
    if not rows:
        raise UserError("a figure of bars needs at least one row")
    for row in rows:
        for bound in (row.value, row.low, row.high, *row.baselines.values()):
            if bound is not None and not 0 <= bound <= 1:
                raise UserError(f"row {row.label!r}: {bound} is outside [0, 1]")
    labels = list(dict.fromkeys(row.label for row in rows))
    measures = list(dict.fromkeys(row.measure for row in rows))
    baselines = list(dict.fromkeys(name for row in rows for name in row.baselines))
    lane = 0.15 * len(measures) + 0.13

    left = max(text_width(drawable_text(text), style.TEXT) for text in labels) + 0.3
    across = max(style.DOUBLE_COLUMN * 0.8 - left, 2.6)
    heading = Heading(wrapped_title(title, left + across), None)
    named = {name: name for name in (*measures, *baselines) if name}
    keys = legend_lines(named, _SYMBOL_WIDTH, across)
    key = 0.06 + _LEGEND_LINE * len(keys)
    width = max(left + across + 0.3, heading.width + 0.3)
    sheet = Sheet(width, heading.height + key + lane * len(labels) + 0.55, heading)
    axes = sheet.axes(left, 0.5, across, lane * len(labels))
    axes.set(xlim=(0, 1), ylim=(len(labels), 0), xlabel=label)
    axes.set_yticks(np.arange(len(labels)) + 0.5, [drawable_text(text) for text in labels], fontsize=style.TEXT)
    axes.tick_params(axis="y", length=0, pad=6)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")
    axes.xaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f}")
    for border in range(1, len(labels)):
        axes.axhline(border, color=style.HAIRLINE, linewidth=0.5)

    for row in rows:
        rank = measures.index(row.measure)
        height = labels.index(row.label) + (0.13 / 2 + 0.15 * (rank + 0.5)) / lane
        colour, shape = MEASURE_MARKERS[rank % len(MEASURE_MARKERS)]
        for name, value in row.baselines.items():
            axes.plot(
                [value, value], [height - 0.076 / lane, height + 0.076 / lane], clip_on=False,
                **tick_style(baselines.index(name)),
            )  # fmt: skip
        if row.low is not None and row.high is not None:
            axes.plot([row.low, row.high], [height, height], color=colour, linewidth=1.4, clip_on=False)
        axes.plot([row.value], [height], marker=shape, markersize=4.5, color=colour, markeredgecolor=style.PAPER,
                  markeredgewidth=0.6, clip_on=False, zorder=3)  # fmt: skip

    line = sheet.height - heading.height - 0.1
    for names in keys:
        place = left
        for name in names:
            colour = style.INK
            if name in measures:
                colour, shape = MEASURE_MARKERS[measures.index(name) % len(MEASURE_MARKERS)]
                sheet.canvas.plot([place + 0.04], [line], marker=shape, markersize=4.5, color=colour, linestyle="none")
            else:
                ends = [line - 0.055, line + 0.055]
                sheet.canvas.plot([place + 0.04] * 2, ends, **tick_style(baselines.index(name)))
            place = sheet.draw_label(place + 0.13, line, name, colour) + 0.18
        line -= _LEGEND_LINE
    return sheet.figure
