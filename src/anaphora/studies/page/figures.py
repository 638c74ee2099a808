"""Figures of a study: comparisons of its cells (configurations), and plots of a measure against, say, distance.

Every value is shown with its range over seeds. Measures of alignment (how well the attention weights identify the
antecedent) are not meaningful for cells that do not solve the task; their values for these cells are hatched.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from anaphora.analysis.results.scores import KINDS, Spread
from anaphora.base.translation import _
from anaphora.report.figures import style
from anaphora.report.figures.fonts import drawable_text
from anaphora.report.figures.panels import Mark, panel_figure, row_below
from anaphora.report.figures.sheet import Heading, Sheet, legend_lines, text_width, wrapped_title
from anaphora.report.figures.style import figure_style
from anaphora.report.wording import label, language_name, language_names
from anaphora.studies.page.words import axis_names, axis_value, cell_label, factor_label, items_label, measure_label
from anaphora.studies.plan import TASK_MEASURE, is_share
from anaphora.studies.schema import CellSummary, GroupSummary, Study

PANEL_MEASURES = ("task_accuracy", "candidate_accuracy", "antecedent_mass")
"""Measures that have a panel in `cells_figure`."""
NOT_COMPARED = ("items", "chance", "quad_accuracy")
"""Measures shown neither as curves nor in the terminal tables."""
_CHANCE_MEASURES = frozenset({"task_accuracy", "candidate_accuracy"})
"""Panel measures with a chance level."""
_CUE_STYLES = {"set": (style.INK, "o"), "role": (style.ANTECEDENT, "D"), "all": (style.INK, "o")}
_INTERVENTION_STYLES = (
    (style.ANTECEDENT, "D"),
    (style.DISTRACTOR, "s"),
    (style.PRONOUN, "^"),
    (style.MUTED, "v"),
    (style.OTHER, "P"),
    (style.INK, "X"),
)
"""Colour and marker of the first interventions in `interventions_figure`; see `_intervention_style`."""
_LINE_STYLES = (
    (style.ANTECEDENT, "-", "o"),
    (style.DISTRACTOR, (0, (5, 2)), "D"),
    (style.INK, (0, (1, 1.5)), "s"),
    (style.PRONOUN, (0, (5, 1.5, 1, 1.5)), "^"),
    (style.MUTED, "-", "v"),
    (style.OTHER, (0, (3, 1)), "P"),
)


def _measured_cells(study: Study) -> list[CellSummary]:
    return [cell for cell in study.cells if any(cell.groups.values())]


def cue_groups(groups: Mapping[str, GroupSummary]) -> list[str]:
    """Return the keys "set" and "role" (cue categories) of `groups`; if it has neither, return its key "all"."""
    return [kind for kind in KINDS if kind in groups] or [name for name in ("all",) if name in groups]


@figure_style()
def cells_figure(study: Study, language: str) -> Figure | None:
    """Draw task accuracy, candidate accuracy and antecedent mass of every cell (configuration), one panel per measure.

    Each mark shows the median over seeds, and a line the range. Cells that change the same factor (aspect of the
    configuration) are grouped; cells without measurements are left out. Return None if no cell has any of the measures.
    """
    rows: list[tuple[str, bool]] = []
    marks: dict[tuple[str, str], list[Mark]] = {}
    unsolved: list[tuple[int, int, int]] = []
    drawn_groups: dict[str, None] = {}
    factor = None
    for cell in _measured_cells(study):
        groups = cell.groups.get(language, {})
        if cell.factor and cell.factor != factor:
            rows.append((factor_label(cell.factor, study), True))
        factor = cell.factor
        name = row_below(cell.name, cell_label(cell.name, study))
        rows.append((name, False))
        row_groups = cue_groups(groups)
        for index, group in enumerate(row_groups):
            drawn_groups[group] = None
            summary = groups[group]
            for measure in PANEL_MEASURES:
                spread = summary.measures.get(measure)
                if spread:
                    mark = Mark(spread.median, (spread.lowest, spread.highest), *_CUE_STYLES[group])
                    marks.setdefault((name, measure_label(measure)), []).append(mark)
            chance = summary.measures.get("chance")
            if chance:
                for measure in _CHANCE_MEASURES.intersection(summary.measures):
                    tick = Mark(chance.median, None, _CUE_STYLES[group][0], "tick")
                    marks.setdefault((name, measure_label(measure)), []).append(tick)
            if summary.is_solved is False:
                unsolved.append((len(rows) - 1, index, len(row_groups)))
    measures = [measure for measure in PANEL_MEASURES if any(measure_label(measure) == panel for _, panel in marks)]
    if not measures:
        return None
    if measures == [TASK_MEASURE]:
        unsolved = []  # only panels of alignment are hatched
    limit = f"{100 * study.solved:g}"
    key = [(items_label(group), *_CUE_STYLES[group]) for group in drawn_groups]
    if TASK_MEASURE in measures:
        key.append((_("from {limit} % on, the task counts as solved").format(limit=limit), style.MUTED, "dotted"))
    if any(mark.form == "tick" for row_marks in marks.values() for mark in row_marks):
        key.append((_("chance, in the colour of its cues"), style.MUTED, "tick"))
    figure = panel_figure(
        language_name(language),
        rows, [measure_label(measure) for measure in measures], marks, _("share (%)"), (0.0, 1.0),
        points=True, key=key,
        note=wrapped_title((_("Median and range over seeds. Hatched: the median task accuracy is below {limit} %, and "
"alignment is not interpreted.") if unsolved else _("Median and range over seeds.")).format(limit=limit)),
    )  # fmt: skip
    for axes, measure in zip(figure.axes[1:], measures, strict=True):
        if measure == TASK_MEASURE:
            axes.axvline(study.solved, color=style.MUTED, linewidth=0.8, linestyle=(0, (1, 2)), zorder=1.5)
            continue
        left, right = axes.get_xlim()
        for row, index, count in unsolved:
            axes.add_patch(
                Rectangle((left, row + 0.06 + 0.88 * index / count), right - left, 0.88 / count, hatch="////////",
                          facecolor="none", edgecolor=style.OTHER, linewidth=0, zorder=0.5)
            )  # fmt: skip
    return figure


def interventions_of(study: Study) -> list[str]:
    """Return the interventions of a study: "all knocked out" if a group is named "all knocked out, set"."""
    groups = (group for cell in study.cells for groups in cell.groups.values() for group in groups)
    parts = (group.rpartition(", ") for group in groups)
    return list(dict.fromkeys(change for change, _, kind in parts if change and kind in KINDS))


@figure_style()
def interventions_figure(study: Study) -> Figure | None:
    """Draw the task accuracy of every cell (configuration) without and with each intervention, such as knockout.

    There is one panel for each language. Return None if the study has no interventions.
    """
    changes = interventions_of(study)
    if not changes:
        return None
    forms = {"": (_("as trained"), style.INK, "o")}
    forms |= {name: (items_label(name), *_intervention_style(number)) for number, name in enumerate(changes)}
    rows: list[tuple[str, bool]] = []
    marks: dict[tuple[str, str], list[Mark]] = {}
    for cell in _measured_cells(study):
        kinds = [kind for kind in KINDS if any(kind in groups for groups in cell.groups.values())]
        kind_rows = {kind: row_below(cell.name, items_label(kind)) for kind in kinds}
        rows += [(cell_label(cell.name, study), True), *((name, False) for name in kind_rows.values())]
        for language, groups in cell.groups.items():
            for kind, name in kind_rows.items():
                for change, (_name, colour, form) in forms.items():
                    group = groups.get(f"{change}, {kind}" if change else kind)
                    spread = group.measures.get(TASK_MEASURE) if group else None
                    if spread:
                        mark = Mark(spread.median, (spread.lowest, spread.highest), colour, form)
                        marks.setdefault((name, language_name(language)), []).append(mark)
    panels = list(dict.fromkeys(panel for _, panel in marks))
    return panel_figure(
        wrapped_title(_("Task accuracy as trained and under interventions")),
        rows, panels, marks, _("task accuracy (%)"), (0.0, 1.0), points=True, key=list(forms.values()),
        note=_("Median and range over seeds."),
    )  # fmt: skip


def _intervention_style(number: int) -> tuple[str, str]:
    """Return the colour and the marker of the intervention with this index, from 0; every combination is different."""
    turn, index = divmod(number, len(_INTERVENTION_STYLES))
    return _INTERVENTION_STYLES[index][0], _INTERVENTION_STYLES[(index + turn) % len(_INTERVENTION_STYLES)][1]


def series_of(study: Study) -> dict[str, tuple[str, str]]:
    """Return (quantity on the x axis, measure on the y axis) of each line plot of a study, keyed by figure name.

    A quantity such as "distance" is read from names of groups of items such as "distance 8". Measures in `NOT_COMPARED`
    are not plotted.
    """
    axes: dict[str, dict[str, None]] = {}
    for cell in study.cells:
        for groups in cell.groups.values():
            for group, summary in groups.items():
                if place := axis_value(group):
                    axes.setdefault(place[0], {}).update(dict.fromkeys(summary.measures))
    return {
        f"{axis.replace(' ', '_')}_{measure}": (axis, measure)
        for axis, measures in axes.items()
        for measure in measures
        if measure not in NOT_COMPARED
    }


_Line = list[tuple[float, Spread]]
"""Points of a cell's line in ascending order: the x value, and the measure's median and range over seeds."""


@figure_style()
def series_figure(study: Study, axis: str, measure: str) -> Figure | None:
    """Plot a measure (median and range over seeds) against the quantity `axis`, such as "distance".

    There is one line for each cell (configuration) and one panel for each language. Return None if there are no values.
    """
    panels: dict[str, dict[str, _Line]] = {}
    for language in study.measured_languages:
        for cell in study.cells:
            line = sorted(_series_points(cell, language, axis, measure), key=lambda point: point[0])
            if line:
                panels.setdefault(language, {})[cell.name] = line
    if not panels:
        return None
    points = [point for lines in panels.values() for line in lines.values() for point in line]
    drawn = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    forms = {
        # From the seventh line on, the styles repeat with hollow markers.
        name: (*_LINE_STYLES[number % len(_LINE_STYLES)], number >= len(_LINE_STYLES))
        for number, name in enumerate(drawn)
    }
    left, gap, tall, foot = 0.75, 0.35, 2.0, 0.55
    title = _("{measure} by {axis}").format(measure=measure_label(measure), axis=label(axis_names(), axis))
    heading = Heading(wrapped_title(title[:1].upper() + title[1:]), None, _("Median and range over seeds."))
    legend = {name: drawable_text(cell_label(name, study)) for name in drawn}
    keys = legend_lines(legend, 0.5, style.DOUBLE_COLUMN - 0.3)
    panel_width = min((style.DOUBLE_COLUMN - left - 0.2 - gap * (len(panels) - 1)) / len(panels), 3.4)
    head = heading.height + 0.2 * len(keys) + 0.28
    width = max(left + panel_width * len(panels) + gap * (len(panels) - 1) + 0.2, heading.width + 0.3)
    widest = max(sum(text_width(legend[name], style.SMALL) + 0.5 for name in line) for line in keys)
    sheet = Sheet(max(width, widest + 0.3), head + tall + foot, heading)
    for number, line_names in enumerate(keys):
        line_legend = {name: legend[name] for name in line_names}
        _draw_line_legend(sheet, sheet.height - heading.height - 0.06 - 0.2 * number, line_legend, forms)
    for number, (language, lines) in enumerate(panels.items()):
        start = left + number * (panel_width + gap)
        axes = sheet.axes(start, foot, panel_width, tall)
        if language in language_names():
            sheet.canvas.text(
                start, foot + tall + 0.07, language_name(language), fontsize=style.TEXT, fontweight="bold"
            )
        axes.set_xlabel(label(axis_names(), axis))
        axes.grid(axis="y")
        _scale_across(axes, [position for position, _ in points], panel_width)
        _scale_up(axes, measure, [spread for _, spread in points])
        if number:
            axes.tick_params(axis="y", labelleft=False)
        else:
            name = measure_label(measure)
            axes.set_ylabel(_("{measure} (%)").format(measure=name) if is_share(measure) else name)
        for name, line in lines.items():
            _draw_line(axes, line, forms[name])
    return sheet.figure


def _scale_across(axes: Axes, positions: Sequence[float], panel_width: float) -> None:
    """Set the scale of the x axis: logarithmic for positive values that span a factor of 8, otherwise linear.

    On a logarithmic axis, or with a single value, the ticks are at the values. `panel_width` is in inches.
    """
    ticks = sorted(set(positions))
    is_logarithmic = ticks[0] > 0 and ticks[-1] / ticks[0] >= 8
    if is_logarithmic:
        axes.set_xscale("log", base=2)
    if is_logarithmic or len(ticks) == 1:
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=max(3, int(panel_width / 0.35)), integer=True))


def _scale_up(axes: Axes, measure: str, spreads: Sequence[Spread]) -> None:
    """Set the scale of the y axis: logarithmic for positive values that span a factor of 30, otherwise linear from 0.

    The axis of a share is linear and ends at 100 % or above; negative values extend a linear axis below 0.
    """
    share = is_share(measure)
    low, high = min(spread.lowest for spread in spreads), max(spread.highest for spread in spreads)
    if not share and low > 0 and high / low > 30:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(numticks=6))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.set_ylim(low / 1.4, high * 1.4)
        return
    floor, top = (min(0.0, low), max(1.0, high)) if share else (min(0.0, low), high * 1.05 or 1.0)
    axes.set_ylim(floor - 0.03 * (top - floor), top + 0.03 * (top - floor))
    if share:
        axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f}")


def _draw_line(axes: Axes, line: _Line, form: tuple[str, Any, str, bool]) -> None:
    colour, dashes, marker, hollow = form
    for position, spread in line:
        axes.plot([position] * 2, [spread.lowest, spread.highest], color=colour, linewidth=1.0, alpha=0.7)
    axes.plot([position for position, _ in line], [spread.median for _, spread in line], color=colour,
              linestyle=dashes, marker=marker, linewidth=1.5, markersize=4.0, markeredgewidth=0.8 if hollow else 0.5,
              markerfacecolor=style.PAPER if hollow else colour,
              markeredgecolor=colour if hollow else style.PAPER)  # fmt: skip


def _series_points(cell: CellSummary, language: str, axis: str, measure: str) -> Iterator[tuple[float, Spread]]:
    for group, summary in cell.groups.get(language, {}).items():
        group_axis, position = axis_value(group) or (None, 0.0)
        spread = summary.measures.get(measure)
        if group_axis == axis and spread and math.isfinite(spread.median):
            yield position, spread


def _draw_line_legend(sheet: Sheet, middle: float, names: Mapping[str, str], forms: Mapping[str, Any]) -> None:
    left = 0.15
    for name, text in names.items():
        colour, dashes, marker, hollow = forms[name]
        sheet.canvas.plot([left, left + 0.24], [middle] * 2, color=colour, linestyle=dashes, linewidth=1.4)
        sheet.canvas.plot([left + 0.12], [middle], color=colour, marker=marker, markersize=4.0, linestyle="none",
                          markerfacecolor=style.PAPER if hollow else colour)  # fmt: skip
        left = sheet.draw_label(left + 0.3, middle, text, style.INK) + 0.2
