"""Figures of all heads: grids of candidate accuracy, and candidate accuracy over training.

In shapes, L is the number of layers, H of heads, and S of training steps. Layers and heads are counted from 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from anaphora.analysis.evidence.evidence import DEVELOPMENT
from anaphora.base.errors import UserError, counted
from anaphora.base.translation import _
from anaphora.data.grouping import portions
from anaphora.report.figures import style
from anaphora.report.figures.fonts import drawable_text
from anaphora.report.figures.sheet import (
    Heading,
    Sheet,
    draw_colour_bar,
    finite_array,
    spread_labels,
    text_width,
    wrapped_title,
)
from anaphora.report.figures.style import figure_style
from anaphora.report.numbers import format_short_percent
from anaphora.report.wording import head_choice_names, head_name, label


@figure_style()
def head_grid_figure(
    scores: ArrayLike,
    chance: float,
    chosen: tuple[int, int],
    title: str,
    threshold: float | None = None,
    chosen_on: str = DEVELOPMENT,
) -> Figure:
    """Draw the candidate accuracy of every head in %, coloured by its distance from chance.

    A dashed line surrounds the heads above both chance and the 95th percentile of untrained models.

    Args:
        scores: (L, H) candidate accuracies; NaN for all heads of a layer without attention. Such a layer is hatched.
        chance: accuracy drawn in white; accuracies equally far above and below chance have equally dark colours.
        chosen: (layer, head) of the framed head.
        threshold: 95th percentile of candidate accuracy over untrained models, each with its own chosen head; None for
            no outline.
        chosen_on: how the head was chosen: `DEVELOPMENT` (on the development split) or `NAMED` (by the user).

    Raises:
        UserError: the scores are not two-dimensional, no layer has attention, a score in a layer with attention is not
            finite, or the chosen head is outside the grid.
    """
    values = _checked_scores(scores, "scores")
    layers, heads = values.shape
    layer, head = chosen
    if not (0 <= layer < layers and 0 <= head < heads):
        raise UserError(
            f"chosen head {chosen} is outside the grid of {counted(layers, 'layer')} x {counted(heads, 'head')}"
        )
    low, high = min(0.0, float(np.nanmin(values))), max(1.0, float(np.nanmax(values)))
    reach = max(high - chance, chance - low)
    norm = Normalize(chance - reach, chance + reach)

    cell_width, cell_height = 0.46, 0.32  # inches
    measure = _("candidate accuracy (%)")
    at_chance = f"{_('chance')} {format_short_percent(chance)}"
    choice = label(head_choice_names(), chosen_on)
    captions = [_("framed: {head}, {choice}").format(head=head_name(layer, head), choice=choice)]
    if threshold is not None:
        text = (
            _("broken line: above the 95th percentile of untrained models ({threshold} %)")
            if threshold >= chance
            else _("broken line: above chance ({threshold} %) and the 95th percentile of untrained models")
        )
        captions.append(text.format(threshold=format_short_percent(head_threshold(threshold, chance))))
    if blank := _blank_note([values]):
        captions.append(blank)
    left, right, bottom = 0.5, 0.66 + text_width(at_chance, style.SMALL), 0.46 + 0.16 * len(captions)
    across, down = heads * cell_width, layers * cell_height
    heading = Heading(wrapped_title(title, left + across + right - 0.3), None)
    tall = max(down, text_width(measure, style.TEXT), 0.9)
    captions_width = max(text_width(text, style.SMALL) for text in captions)
    width = max(left + across + right, heading.width + 0.3, captions_width + 0.3)
    sheet = Sheet(width, bottom + tall + heading.height, heading)

    axes = sheet.axes(left, bottom + tall - down, across, down)
    _draw_grid(axes, values, norm, chosen, rule=1.2, frame=1.8)
    axes.set_xticks(np.arange(heads) + 0.5, [str(number) for number in range(heads)])
    axes.set_yticks(np.arange(layers) + 0.5, [str(number) for number in range(layers)])
    axes.set_xlabel(_("head"))
    axes.set_ylabel(_("layer"))
    _print_scores(axes, values, norm, chosen)
    if threshold is not None:
        _outline(axes, values > head_threshold(threshold, chance))
    for line, text in enumerate(reversed(captions)):
        sheet.canvas.text(0.15, 0.1 + 0.16 * line, text, fontsize=style.SMALL, color=style.MUTED)

    bar = sheet.axes(left + across + 0.15, bottom, 0.09, tall)
    draw_colour_bar(bar, style.DIVERGING, norm, measure, (low, high))
    bar.axhline(chance, color=style.INK, linewidth=1.0)
    ends = [end for end in (low, high) if abs(end - chance) * tall > 0.14 * (high - low)]
    bar.set_yticks([chance, *ends], [at_chance, *map(format_short_percent, ends)])
    return sheet.figure


def _draw_grid(
    axes: Axes, scores: NDArray[np.float64], norm: Normalize, chosen: tuple[int, int], rule: float, frame: float
) -> None:
    """Draw (L, H) scores as coloured cells, layer 0 at the top, with a frame around the chosen head.

    Layers without attention are hatched. `rule` and `frame` are line widths in points.
    """
    axes.pcolormesh(scores, cmap=style.DIVERGING, norm=norm, edgecolors=style.PAPER, linewidth=rule)
    for layer in np.flatnonzero(np.isnan(scores).all(axis=1)).tolist():
        axes.add_patch(
            Rectangle((0, layer), scores.shape[1], 1, fill=False, hatch="////", edgecolor=style.OTHER, linewidth=0)
        )
    axes.invert_yaxis()
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    axes.add_patch(
        Rectangle(chosen[::-1], 1, 1, fill=False, edgecolor=style.INK, linewidth=frame, clip_on=False, zorder=4)
    )


def _print_scores(axes: Axes, scores: NDArray[np.float64], norm: Normalize, chosen: tuple[int, int]) -> None:
    for row, column in np.argwhere(~np.isnan(scores)):
        score = scores[row, column]
        colour = style.text_colour_on(style.DIVERGING(norm(float(score))))
        axes.text(
            column + 0.5, row + 0.5, format_short_percent(float(score)), ha="center",
            va="center", fontsize=style.SMALL + 0.5, color=colour,
            fontweight="bold" if (row, column) == chosen else "normal",
        )  # fmt: skip


def _outline(axes: Axes, above: NDArray[np.bool_]) -> None:
    """Draw a dashed line around the cells of a grid, (L, H), that are True."""
    padded = np.pad(above, 1)
    line: dict[str, Any] = {
        "color": style.INK, "linewidth": 1.1, "linestyle": (0, (3.0, 1.6)), "clip_on": False, "zorder": 3,
    }  # fmt: skip
    for row, column in np.argwhere(padded[:, 1:] != padded[:, :-1]):
        axes.plot([column, column], [row - 1, row], **line)
    for row, column in np.argwhere(padded[1:, :] != padded[:-1, :]):
        axes.plot([column - 1, column], [row, row], **line)


def _checked_scores(scores: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return the scores of all heads as an array, (L, H), with NaN in layers without attention.

    Raises:
        UserError: the scores are not two-dimensional, no layer has attention, or a score in a layer with attention is
            not finite.
    """
    values = np.asarray(scores, dtype=np.float64)
    finite_array(values[~np.isnan(values).all(axis=1)] if values.ndim == 2 else values, name, (None, None))
    return values


def _blank_note(grids: Sequence[NDArray[np.float64]]) -> str:
    return _("hatched: layers without attention") if any(np.isnan(grid).any() for grid in grids) else ""


_WIDEST = 9.4
"""Maximum width in inches of a row of grids on a page."""


@dataclass(frozen=True)
class HeadGrid:
    """Grid of the candidate accuracies of all heads of one model, (L, H), with a heading (`name`) and a note.

    The chosen head is framed, and layers without attention (NaN) are hatched.
    """

    name: str
    note: str
    scores: NDArray[np.float64]
    chosen: tuple[int, int]


@figure_style()
def head_grids_figure(
    grids: Sequence[HeadGrid], chance: float, title: str, label: str, axes_names: tuple[str, str]
) -> Figure:
    """Draw the candidate accuracies of all heads of several models, as grids with a common colour scale from 0 to 1.

    Args:
        grids: one grid per model with scores in [0, 1]; the grids are placed side by side in rows of page width.
        chance: score drawn in white.
        label: label of the colour scale.
        axes_names: names of the vertical and horizontal axis, layer and head.

    Raises:
        UserError: there are no grids, or the scores of a grid are not valid for `head_grid_figure`.
    """
    if not grids:
        raise UserError("a figure of head grids needs at least one model")
    values = [_checked_scores(grid.scores, f"scores of {grid.name}") for grid in grids]
    reach = max(chance, 1 - chance)
    norm = Normalize(chance - reach, chance + reach)
    cell = min(0.3, 2.3 / max(max(each.shape) for each in values))
    left, gap, right, names, foot, above = 0.5, 0.5, 0.95, 0.44, 0.5, 0.1
    sizes = [
        (max(cell * each.shape[1], *(text_width(drawable_text(text), style.TEXT, bold=True)
                                     for text in (grid.name, grid.note))), cell * each.shape[0])
        for grid, each in zip(grids, values, strict=True)
    ]  # fmt: skip
    lines = portions([width + gap for width, _ in sizes], _WIDEST - left - right + gap)
    tall = [max(sizes[number][1] for number in line) for line in lines]
    heading = Heading(title, None, _blank_note(values))
    across = max(sum(sizes[number][0] for number in line) + gap * (len(line) - 1) for line in lines)
    bar = max(tall[0], 1.3)
    tall[0] = bar
    height = heading.height + above + sum(names + each + foot for each in tall)
    sheet = Sheet(max(left + across + right, heading.width + 0.3), height, heading)
    top = height - heading.height - above
    for line, line_height in zip(lines, tall, strict=True):
        start = left
        for number in line:
            grid, scores = grids[number], values[number]
            layers, heads = scores.shape
            sheet.canvas.text(start, top - 0.14, drawable_text(grid.name), fontsize=style.TEXT, fontweight="bold")
            sheet.canvas.text(start, top - 0.3, drawable_text(grid.note), fontsize=style.SMALL, color=style.MUTED)
            axes = sheet.axes(start, top - names - cell * layers, cell * heads, cell * layers)
            _draw_grid(axes, scores, norm, grid.chosen, rule=0.6, frame=1.6)
            for axis, count in ((axes.xaxis, heads), (axes.yaxis, layers)):
                step = max(1, -(-count // max(1, int(cell * count / 0.22))))
                axis.set_ticks(
                    [number + 0.5 for number in range(0, count, step)],
                    [str(number) for number in range(0, count, step)],
                )
            axes.set_xlabel(drawable_text(axes_names[1]))
            axes.set_ylabel(drawable_text(axes_names[0]))
            start += sizes[number][0] + gap
        if line is lines[0]:
            scale = sheet.axes(left + across + 0.2, top - names - bar, 0.09, bar)
            draw_colour_bar(scale, style.DIVERGING, norm, label, (0.0, 1.0))
            scale.axhline(chance, color=style.INK, linewidth=1.0)
            scale.set_yticks([0, chance, 1], ["0", f"{100 * chance:.0f}", "100"])
        top -= names + line_height + foot
    return sheet.figure


@figure_style()
def alignment_figure(
    steps: Sequence[int],
    scores: ArrayLike,
    chance: float,
    chosen: tuple[int, int],
    task_accuracy: ArrayLike | None = None,
    title: str = "",
) -> Figure:
    """Draw the candidate accuracy of every head over training, one line per head, with the chosen head labelled.

    Args:
        steps: S training steps, increasing.
        scores: (S, L, H), finite.
        chance: chance accuracy, drawn as a dotted line.
        chosen: (layer, head) of the chosen head.
        task_accuracy: (S,) accuracy of the model's answers, drawn as a dashed line unless None.

    Raises:
        UserError: mismatched shapes, values that are not finite, steps that do not increase, or a chosen head outside
            the grid.
    """
    values = finite_array(scores, "scores", (len(steps), None, None))
    _steps, layers, heads = values.shape
    layer, head = chosen
    if not (0 <= layer < layers and 0 <= head < heads):
        raise UserError(f"chosen head {chosen} is outside {counted(layers, 'layer')} x {counted(heads, 'head')}")
    if any(later <= earlier for earlier, later in pairwise(steps)):
        raise UserError(f"steps must rise, got {list(steps)}")
    task = None if task_accuracy is None else finite_array(task_accuracy, "task_accuracy", (len(steps),))

    heading = Heading(title, None)
    sheet = Sheet(0.8 * style.DOUBLE_COLUMN, 2.9, heading)
    room = text_width(_("layer {layer} head {head}").format(layer="00", head="00"), style.SMALL, bold=True) + 0.2
    others = np.where(np.arange(layers * heads) == layer * heads + head, -np.inf, values[-1].ravel())
    best = divmod(int(others.argmax()), heads)
    axes = sheet.axes(0.55, 0.5, sheet.width - 0.55 - room, sheet.height - 0.5 - heading.height)
    marker = "o" if len(steps) == 1 else ""
    faint = max(0.6 * min(1.0, (12 / (layers * heads)) ** 0.5), 0.15)
    for row in range(layers):
        for column in range(heads):
            if (row, column) != chosen:
                # The best other head is labelled, so its line must be visible even where other lines cover it.
                width, shade = (1.8, 1.0) if (row, column) == best else (0.7, faint)
                axes.plot(steps, values[:, row, column], color=style.OTHER, linewidth=width, alpha=shade,
                          marker=marker, markersize=3)  # fmt: skip
    axes.axhline(chance, color=style.INK, linewidth=0.8, linestyle=(0, (1, 2)), zorder=2.5)
    ends = [(chance, f"{_('chance')} {format_short_percent(chance)}", style.INK, "normal")]
    if task is not None:
        axes.plot(steps, task, color=style.INK, linewidth=1.1, linestyle=(0, (5, 2)), marker=marker, markersize=4)
        ends.append((float(task[-1]), _("task accuracy"), style.INK, "normal"))
    axes.plot(steps, values[:, layer, head], color=style.ANTECEDENT, linewidth=2.0, marker=marker, markersize=5)
    ends.append((float(values[-1, layer, head]), head_name(layer, head), style.ANTECEDENT, "bold"))
    if layers * heads > 1:
        ends.append((float(values[-1][best]), head_name(*best), style.MUTED, "normal"))
    if layers * heads > 2:
        rest = np.delete(values[-1].ravel(), [layer * heads + head, best[0] * heads + best[1]])
        middle = rest[np.abs(rest - np.median(rest)).argmin()]  # the line end nearest the median
        ends.append((float(middle), _("other heads"), style.MUTED, "normal"))

    axes.set_ylim(min(0.0, float(values.min())), max(1.0, float(values.max())) * 1.02)
    axes.grid(axis="y")
    first, last = steps[0], steps[-1]
    ticks = MaxNLocator(nbins=6, integer=True).tick_values(first, last)
    axes.set_xticks([first, *(tick for tick in ticks if first + 0.1 * (last - first) <= tick <= last and tick > first)])
    axes.xaxis.set_major_formatter(lambda step, _: f"{step:,.0f}")
    axes.margins(x=0)
    axes.set_xlabel(_("training step"))
    axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f}")
    axes.set_ylabel(_("candidate accuracy (%)") if task is None else _("accuracy (%)"))
    _label_line_ends(axes, ends, axes.get_position().height * sheet.height)
    return sheet.figure


def _label_line_ends(axes: Axes, ends: Sequence[tuple[float, str, str, str]], tall: float) -> None:
    """Label each line, given as (last value, label, colour, font weight), at its right end.

    The axes are `tall` inches high.
    """
    low, high = axes.get_ylim()
    gap = 0.135 / tall * (high - low)
    for height, (_value, text, colour, weight) in zip(
        spread_labels([end[0] for end in ends], gap, low, high), ends, strict=True
    ):
        axes.annotate(text, (1, height), xycoords=axes.get_yaxis_transform(), xytext=(5, 0), textcoords="offset points",
                      va="center", fontsize=style.SMALL, color=colour, fontweight=weight)  # fmt: skip


def head_threshold(untrained: float, chance: float) -> float:
    """Return the accuracy that a head must exceed: the larger of chance and the 95th percentile of untrained models."""
    return max(untrained, chance)
