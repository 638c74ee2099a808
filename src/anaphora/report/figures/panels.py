"""Building blocks of the report's figures: panels with shared rows, and curves over a count or an amount.

Shares and accuracy drops are fractions in the data. The axes of curves, and of panels with `points`, are in percent or
percentage points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, MaxNLocator

from anaphora.base.errors import UserError
from anaphora.report.figures import style
from anaphora.report.figures.fonts import drawable_text
from anaphora.report.figures.sheet import Heading, Sheet, legend_lines, text_width, tick_style
from anaphora.report.numbers import NOT_MEASURED, format_number


@dataclass(frozen=True)
class Mark:
    """Value drawn in a panel.

    Attributes:
        value: horizontal position of the mark.
        ends: (low, high) of the interval; None if there is none.
        form: "bar", "hollow bar", one of `_TICKS`, a matplotlib marker, or "not measured". The last is drawn as a dash,
            since a bar of length 0 would look like a measured value.
    """

    value: float
    ends: tuple[float, float] | None
    colour: str
    form: str = "o"


@dataclass(frozen=True)
class Curve:
    """Curve drawn in a panel.

    Attributes:
        counts: horizontal positions of the points, such as numbers of ablated heads.
        values: vertical positions of the points.
        form: "line" for a line with points, "broken" for a dashed line, "dot" for a single point, or "level" for a
            horizontal line. A curve of the form "level" has one value and no counts.
        low, high: lower and upper ends of the interval at each point; None at points without an interval. The
            intervals are drawn as a band, or as a line if the form is "dot". If `low` and `high` are empty, there is no
            band.
    """

    counts: Sequence[float]
    values: Sequence[float]
    colour: str
    form: str = "line"
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()


Marks = dict[tuple[str, str], list[Mark]]
_Legend = Sequence[tuple[str, str, str]]
_ROW_HEIGHT = 0.185
"""Height in inches of a row with one or two marks."""
_TALL_ROW = {3: 1.25, 4: 1.7}
"""Factors by which rows with three marks, and with four or more marks, are higher."""
_BELOW = "\x1f"
"""Separator between heading and text in the name of a row; no text contains the unit separator."""
_TICKS = ("tick", "dotted tick", "dashed tick")
"""Forms of ticks: solid, dotted and dashed, as in `tick_style`."""
_LABELLED_COUNTS = 5
"""Number of distinct counts below which an axis has a tick for each of them."""
_SYMBOL_WIDTH, _LEGEND_LINE = 0.46, 0.2
"""Width of the widest legend symbol with its gaps, and height of a legend line, in inches."""


def row_below(heading: str, text: str) -> str:
    """Return a row name that the heading makes unique; `panel_figure` prints only the part `text`."""
    return f"{heading}{_BELOW}{text}"


def marks_of(*marks: tuple[float | None, tuple[float, float] | None, str, str]) -> list[Mark]:
    """Return a mark for each (value, ends, colour, form) whose value was measured."""
    return [Mark(value, ends, colour, form) for value, ends, colour, form in marks if value is not None]


def axis_limits(marks: Marks, low: float, high: float) -> tuple[float, float]:
    """Return axis limits that include `low`, `high` and every mark with its interval."""
    ends = [end for row_marks in marks.values() for mark in row_marks for end in (mark.value, *(mark.ends or ()))]
    return min([low, *ends]), max([high, *ends])


def panel_figure(
    title: str,
    rows: Sequence[tuple[str, bool]],
    panels: Sequence[str],
    marks: Marks,
    label: str,
    limits: tuple[float, float],
    references: Sequence[float] = (),
    points: bool = False,
    key: _Legend = (),
    note: str = "",
) -> Figure:
    """Draw panels side by side with shared rows.

    Args:
        rows: (name, whether the row is a heading) from top to bottom; if empty, the rows in the keys of `marks`.
        panels: names of the panels; if empty, the panels in the keys of `marks`.
        marks: marks to draw, keyed by (row name, panel name).
        label, limits: label of the horizontal axes, and the lower and upper limit of these axes.
        references: horizontal positions of vertical lines.
        points: whether axes are in percent or percentage points instead of shares.
        key: legend entries, (text, colour, form).

    Raises:
        UserError: no rows or no panels.
    """
    rows = rows or [(row, False) for row in dict.fromkeys(row for row, _ in marks)]
    panels = panels or list(dict.fromkeys(panel for _, panel in marks))
    if not rows or not panels:
        raise UserError("a figure of panels needs at least one row and one panel")
    texts = [drawable_text(name if heading else name.rpartition(_BELOW)[2]) for name, heading in rows]
    widths = [text_width(text, style.TEXT, bold=heading) for text, (_, heading) in zip(texts, rows, strict=True)]
    left, gap = 0.15 + max(widths) + 0.12, 0.24
    widest = max(text_width(drawable_text(panel), style.TEXT, bold=True) for panel in panels)
    each = min(max((style.DOUBLE_COLUMN - left - 0.2 - gap * (len(panels) - 1)) / len(panels), widest, 1.0), 3.2)
    heading = Heading(title, None, note)
    width = max(left + each * len(panels) + gap * (len(panels) - 1) + 0.2, heading.width + 0.3)
    entries = {name: (name, colour, form) for name, colour, form in key}
    lines_of_names = legend_lines({name: name for name in entries}, _SYMBOL_WIDTH, width - 0.3)
    legend = [[entries[name] for name in names] for names in lines_of_names]
    width = max(width, *(_legend_width(legend_line) + 0.3 for legend_line in legend))
    head = heading.height + (0.24 + _LEGEND_LINE * (len(legend) - 1) if key else 0.0) + 0.2
    most_marks = max((len(measured_marks(row)) for row in marks.values()), default=0)
    line = _ROW_HEIGHT * _TALL_ROW.get(min(4, most_marks), 1.0)
    tall = line * len(rows) + 0.08
    sheet = Sheet(width, head + tall + 0.5, heading)
    for number, legend_line in enumerate(legend):
        _draw_legend(sheet, sheet.height - heading.height - 0.08 - _LEGEND_LINE * number, legend_line)

    base = sheet.height - head - tall
    for number, text in enumerate(texts):
        middle = base + tall - line * (number + 0.5) - 0.04
        bold = rows[number][1]
        sheet.canvas.text(
            0.15 if bold else left - 0.1, middle - 0.035, text, ha="left" if bold else "right", fontsize=style.TEXT,
            fontweight="bold" if bold else "normal",
        )  # fmt: skip
    margin = 0.03 * (limits[1] - limits[0])
    for column, panel in enumerate(panels):
        axes = sheet.axes(left + column * (each + gap), base, each, tall)
        axes.set(xlim=(limits[0] - margin, limits[1] + margin), ylim=(len(rows) + 0.22, -0.22))
        axes.spines["left"].set_visible(False)
        axes.set_yticks([])
        axes.grid(axis="x")
        axes.xaxis.set_major_locator(MaxNLocator(nbins=max(3, int(each / 0.4)), steps=[1, 2, 2.5, 5, 10]))
        if points:
            axes.xaxis.set_major_formatter(lambda share, _: format_number(100 * share, 0))
        sheet.canvas.text(left + column * (each + gap), base + tall + 0.06, drawable_text(panel), fontsize=style.TEXT,
                          fontweight="bold")  # fmt: skip
        for reference in references:
            axes.axvline(reference, color=style.INK, linewidth=0.8, zorder=1.5)
        for number, (name, _is_heading) in enumerate(rows):
            _draw_row(axes, marks.get((name, panel), []), number + 0.5)
    across = each * len(panels) + gap * (len(panels) - 1)
    sheet.canvas.text(left + across / 2, 0.1, drawable_text(label), ha="center", fontsize=style.TEXT, color=style.MUTED)
    return sheet.figure


def measured_marks(marks: Sequence[Mark]) -> list[Mark]:
    """Return the marks except ticks, which span the height of the row and so need no vertical offset."""
    return [mark for mark in marks if mark.form not in _TICKS]


def _draw_row(axes: Axes, marks: Sequence[Mark], height: float) -> None:
    """Draw the marks of a row with small vertical offsets, so that they do not overlap."""
    measured = measured_marks(marks)
    apart = min(0.38, 0.62 / max(1, len(measured) - 1))
    for mark in marks:
        aside = 0.0 if mark.form in _TICKS else apart * (measured.index(mark) - (len(measured) - 1) / 2)
        _draw_mark(axes, mark, height + aside)


def _draw_mark(axes: Axes, mark: Mark, height: float) -> None:
    if mark.form in _TICKS:
        # With clipping, ticks at the ends of the axis would lose half of their width.
        pattern = _tick_pattern(mark.form, mark.colour)
        axes.plot([mark.value] * 2, [height - 0.34, height + 0.34], clip_on=False, **pattern)
        return
    if mark.form == "not measured":
        place, aside = (mark.value, height), (3, 0)
        axes.annotate(NOT_MEASURED, place, aside, textcoords="offset points", va="center", color=mark.colour)
        return
    if mark.form.endswith("bar"):
        hollow = mark.form == "hollow bar"
        axes.barh(
            [height], [mark.value], height=0.62, color=style.PAPER if hollow else mark.colour, edgecolor=mark.colour,
            linewidth=0.9 if hollow else 0.0, zorder=2,
        )  # fmt: skip
        if mark.ends is not None:
            _draw_ends_of_bar(axes, mark, 0.0 if hollow else mark.value, height)
        # A bar of length 0 would be invisible.
        axes.plot([mark.value], [height], marker="o", markersize=3.0, color=mark.colour, markeredgecolor=style.PAPER,
                  markeredgewidth=0.5, clip_on=False, zorder=4)  # fmt: skip
        return
    if mark.ends is not None:
        axes.plot(mark.ends, [height, height], color=mark.colour, linewidth=1.4, clip_on=False, zorder=2)
    axes.plot(
        [mark.value], [height], marker=mark.form, markersize=4.2, color=mark.colour, markeredgecolor=style.PAPER,
        markeredgewidth=0.6, clip_on=False, zorder=3,
    )  # fmt: skip


def _tick_pattern(form: str, colour: str) -> dict[str, Any]:
    return tick_style(_TICKS.index(form)) | {"color": colour, "linewidth": 1.4}


def _draw_ends_of_bar(axes: Axes, bar: Mark, filled: float, height: float) -> None:
    """Draw the interval of a bar that extends from 0 to `filled`, in colours that contrast with bar and background."""
    inside = sorted((0.0, filled))
    low, high = bar.ends or (0.0, 0.0)
    for start, end, colour in (
        (low, min(high, inside[0]), style.INK),
        (max(low, inside[0]), min(high, inside[1]), style.text_colour_on(to_rgb(bar.colour))),
        (max(low, inside[1]), high, style.INK),
    ):
        if start < end:
            axes.plot([start, end], [height, height], color=colour, linewidth=1.1, zorder=3)


def curve_figure(
    title: str,
    panels: Sequence[tuple[str, Sequence[Curve]]],
    key: _Legend,
    across_label: str,
    label: str,
    top: float = 0.3,
    reference: float | None = None,
) -> Figure:
    """Draw panels of curves with a common vertical scale, at most four side by side.

    Args:
        panels: (name, curves) of each panel.
        key: legend entries, (text, colour, form).
        across_label, label: labels of the horizontal and of the vertical axes.
        top: minimum upper limit of the vertical axes, as a share.
        reference: share at which a horizontal line is drawn; None for no line.
    """
    columns = min(len(panels), 4)
    lines = -(-len(panels) // columns)
    left, gap, tall, foot = 0.6, 0.28, 1.45, 0.52
    widest = max(text_width(drawable_text(name), style.TEXT, bold=True) for name, _ in panels)
    each = min(max((style.DOUBLE_COLUMN - left - 0.2 - gap * (columns - 1)) / columns, widest), 3.0)
    heading = Heading(title, None)
    head = heading.height + 0.24
    width = max(left + each * columns + gap * (columns - 1) + 0.2, heading.width + 0.3, _legend_width(key) + 0.3)
    sheet = Sheet(width, head + lines * (tall + 0.22 + foot), heading)
    _draw_legend(sheet, sheet.height - heading.height - 0.08, key)
    ends = [end for _, panel_lines in panels for line in panel_lines for end in (*line.values, *line.low, *line.high)]
    low, high = min(0.0, *(end for end in ends if end is not None)), max(top, *(end for end in ends if end is not None))
    counts = sorted({count for _, panel_lines in panels for line in panel_lines for count in line.counts})
    most = max(counts, default=1)
    for number, (name, panel_lines) in enumerate(panels):
        line_number, column = divmod(number, columns)
        base = sheet.height - head - line_number * (tall + 0.22 + foot) - 0.2 - tall
        start = left + column * (each + gap)
        axes = sheet.axes(start, base, each, tall)
        sheet.canvas.text(start, base + tall + 0.07, drawable_text(name), fontsize=style.TEXT, fontweight="bold")
        room = 0.04 * (high - low)
        axes.set(xlim=(0.6, most + 0.4), ylim=(low - room, high + room), xlabel=across_label)
        axes.grid(axis="y")
        few = len(counts) < _LABELLED_COUNTS
        axes.xaxis.set_major_locator(
            FixedLocator(counts) if few else MaxNLocator(nbins=max(3, int(each / 0.22)), integer=True, min_n_ticks=1)
        )
        axes.yaxis.set_major_formatter(lambda share, _: format_number(100 * share, 0))
        if column:
            axes.tick_params(axis="y", labelleft=False, length=0)
        else:
            axes.set_ylabel(label)
        if reference is not None:
            axes.axhline(reference, color=style.MUTED, linewidth=1.0, linestyle=(0, (1, 2)))
        for line in panel_lines:
            _draw_curve(axes, line)
    return sheet.figure


def _draw_curve(axes: Axes, line: Curve) -> None:
    if line.form == "level":
        axes.axhline(line.values[0], color=line.colour, linewidth=1.1, linestyle=(0, (5, 2)))
        return
    if line.form != "dot":
        _draw_band(axes, line)
    if line.form == "broken":
        axes.plot(line.counts, line.values, color=line.colour, linewidth=1.1, linestyle=(0, (5, 2)),
                  marker="" if len(line.counts) > 1 else "o", markersize=3.5)  # fmt: skip
        return
    if line.form == "dot" and line.low[0] is not None and line.high[0] is not None:
        axes.plot([line.counts[0]] * 2, [line.low[0], line.high[0]], color=line.colour, linewidth=1.4)
    size = 5.5 if line.form == "dot" else 3.0
    axes.plot(line.counts, line.values, color=line.colour, linewidth=1.6, marker="o", markersize=size,
              markeredgecolor=style.PAPER, markeredgewidth=0.5)  # fmt: skip


def _draw_band(axes: Axes, line: Curve) -> None:
    """Draw the intervals of a curve as a band, leaving out points without an interval."""
    ends = [
        (count, low, high)
        for count, low, high in zip(line.counts, line.low, line.high, strict=False)
        if low is not None and high is not None
    ]
    if len(ends) > 1:
        counts, low, high = zip(*ends, strict=True)
        axes.fill_between(counts, low, high, color=line.colour, alpha=0.18, linewidth=0)
    elif ends:
        axes.plot([ends[0][0]] * 2, ends[0][1:], color=line.colour, linewidth=4, alpha=0.18)


def _legend_width(key: _Legend) -> float:
    return sum(text_width(drawable_text(name), style.SMALL) + _SYMBOL_WIDTH for name, *_ in key)


def _draw_legend(sheet: Sheet, middle: float, key: _Legend) -> None:
    left = 0.15
    for name, colour, form in key:
        if form in ("line", "broken", "dotted"):
            patterns: dict[str, Any] = {"line": "-", "broken": (0, (5, 2)), "dotted": (0, (1, 2))}
            sheet.canvas.plot([left, left + 0.2], [middle] * 2, color=colour, linewidth=1.4, linestyle=patterns[form])
            left += 0.12
        elif form in _TICKS:
            sheet.canvas.plot([left + 0.05] * 2, [middle - 0.055, middle + 0.055], **_tick_pattern(form, colour))
        elif form == "not measured":
            sheet.draw_label(left + 0.02, middle, NOT_MEASURED, colour)
        else:
            sheet.canvas.plot([left + 0.05], [middle], marker=form, markersize=4.5, color=colour, linestyle="none")
        left = sheet.draw_label(left + 0.15, middle, name, style.INK) + 0.19
