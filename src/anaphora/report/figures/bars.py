"""Dots with their intervals, stratum by stratum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from matplotlib.figure import Figure

from anaphora.base.errors import UserError
from anaphora.report.figures import style
from anaphora.report.figures.fonts import drawable_text
from anaphora.report.figures.sheet import MEASURE_MARKERS, Heading, Sheet, text_width, tick_style, wrapped_title
from anaphora.report.figures.style import figure_style


@dataclass(frozen=True, kw_only=True)
class SharePoint:
    """One measured share in [0, 1] with its interval, and the baselines it is read against.

    Rows of the same label share a line; `measure` tells them apart.
    """

    label: str
    value: float
    low: float | None = None
    high: float | None = None
    baselines: Mapping[str, float] = field(default_factory=dict)
    measure: str = ""


@figure_style()
def share_points_figure(rows: Sequence[SharePoint], title: str = "", label: str = "accuracy (%)") -> Figure:
    """Shares with intervals on one axis from 0 to 100 %, a line for every label, baselines as ticks across it.

    Args:
        rows: from the top down; rows of the same label share a line, set apart by measure.
        title: stands above the rows, on as many lines as it needs.
        label: what the axis shows, in per cent.

    Raises:
        UserError: no rows, or a value or bound outside [0, 1].
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
    keys = sum(text_width(drawable_text(name), style.SMALL) + 0.31 for name in (*measures, *baselines) if name)
    across = max(style.DOUBLE_COLUMN * 0.8 - left, 2.6, keys)
    heading = Heading(wrapped_title(title, left + across), None)
    key = 0.26
    width = max(left + across + 0.3, heading.width + 0.3)
    sheet = Sheet(width, heading.height + key + lane * len(labels) + 0.55)
    sheet.heading(heading)
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
                [value, value], [height - 0.076 / lane, height + 0.076 / lane], **tick_style(baselines.index(name))
            )
        if row.low is not None and row.high is not None:
            axes.plot([row.low, row.high], [height, height], color=colour, linewidth=1.4, clip_on=False)
        axes.plot([row.value], [height], marker=shape, markersize=4.5, color=colour, markeredgecolor=style.PAPER,
                  markeredgewidth=0.6, clip_on=False, zorder=3)  # fmt: skip

    place = left
    line = sheet.height - heading.height - 0.1
    for rank, measure in enumerate(measures):
        if measure:
            colour, shape = MEASURE_MARKERS[rank % len(MEASURE_MARKERS)]
            sheet.canvas.plot([place + 0.04], [line], marker=shape, markersize=4.5, color=colour, linestyle="none")
            place = sheet.word(place + 0.13, line, measure, colour) + 0.18
    for rank, name in enumerate(baselines):
        sheet.canvas.plot([place + 0.04, place + 0.04], [line - 0.055, line + 0.055], **tick_style(rank))
        place = sheet.word(place + 0.13, line, name, style.INK) + 0.18
    return sheet.figure
