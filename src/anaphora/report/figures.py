"""The figures of attention: plain data in, a `matplotlib.figure.Figure` out, no global state touched.

Legend: W words, L layers, H heads, S steps of training. Layers and heads are counted from 0.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from math import isqrt
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.colors import Colormap, Normalize
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from anaphora.errors import UserError
from anaphora.report import style
from anaphora.report.fonts import drawable, families, is_chinese
from anaphora.report.style import house_style

Candidates = Sequence[int | Sequence[int]]
"""Candidates of one role: each a word's index, or the indices of all its words where it has several."""


@dataclass(frozen=True, kw_only=True)
class QuadCell:
    """One sentence of a block: its words, the pronoun's attention to each (W weights), and who is who."""

    words: Sequence[str]
    weights: ArrayLike
    pronoun: int
    antecedents: Candidates
    distractors: Candidates
    label: str = ""


@dataclass(frozen=True, kw_only=True)
class Dot:
    """One measured share in [0, 1] with its interval, and the baselines it is read against.

    Rows of the same label share a line; `measure` tells them apart.
    """

    label: str
    value: float
    low: float | None = None
    high: float | None = None
    baselines: Mapping[str, float] = field(default_factory=dict)
    measure: str = ""


@house_style()
def heat_map(
    words: Sequence[str],
    weights: ArrayLike,
    title: str,
    pronoun: int | None = None,
    antecedents: Candidates = (),
    distractors: Candidates = (),
) -> Figure:
    """The whole attention map of one head: a row is the attending word, a column the attended one.

    Args:
        words: W words, Chinese or English.
        weights: (W, W), finite and at least 0; the colour scale begins at 0 and ends at the next round number.
        title: stands above the map.
        pronoun: index of the word whose row is framed, with the candidates' cells in it.
        antecedents: the candidates that are right.
        distractors: the other candidates.

    Raises:
        UserError: no words, weights of another shape or not finite, an index outside the sentence.
    """
    count = len(words)
    values = _weights(weights, (count, count))
    roles = _Roles(count, pronoun, antecedents, distractors)
    labels = [drawable(word) for word in words]
    cell, size = next((cell, size) for most, cell, size in _CELLS if count <= most)
    top = _round_up(float(values.max()))

    wide = max(_width(label, size, bold=True) for label in labels)
    tall = max(_height_of_column_label(label, size) for label in labels)
    side = count * cell
    left, right, bottom = wide + 0.42, 0.75, 0.2
    heading = _Heading(title, roles)
    width = max(left + side + right, heading.width + 0.3)
    long = max(side, _width("attending word", style.TEXT), 0.9)
    sheet = _Sheet(width, bottom + long + tall + 0.32 + heading.height)
    sheet.heading(heading)

    axes = sheet.axes(left, bottom + long - side, side, side)
    norm = Normalize(0, top)
    axes.pcolormesh(values, cmap=style.WEIGHTS, norm=norm, edgecolors=style.PAPER, linewidth=min(0.8, 2.2 * cell))
    axes.invert_yaxis()
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, pad=3)
    places = np.arange(count) + 0.5
    axes.set_yticks(places, labels, fontsize=size)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set_xticks(places, [_column_label(label) for label in labels], fontsize=size)
    for index, (row, column) in enumerate(zip(axes.get_yticklabels(), axes.get_xticklabels(), strict=True)):
        column.set(rotation=0 if is_chinese(labels[index]) else 90, linespacing=1.0)
        for tick in (row, column):
            tick.set(color=roles.colour(index, style.INK), fontweight="bold" if roles.of(index) else "normal")
    axes.set_xlabel("attended word", labelpad=5, color=style.MUTED)
    axes.set_ylabel("attending word", labelpad=5, color=style.MUTED)

    if pronoun is not None:
        axes.add_patch(_frame(0, pronoun, count, 1, "pronoun", 1.2))
        for run in roles.runs():
            axes.add_patch(_frame(run[0], pronoun, len(run), 1, roles.of(run[0]) or "pronoun", 1.8))

    bar = sheet.axes(left + side + 0.15, bottom, 0.09, long)
    _colour_bar(bar, style.WEIGHTS, norm, "attention weight", (0, top))
    return sheet.figure


@house_style()
def pronoun_row(
    words: Sequence[str],
    weights: ArrayLike,
    pronoun: int,
    antecedents: Candidates,
    distractors: Candidates,
    title: str,
) -> Figure:
    """The pronoun's attention in its sentence: words shaded by weight, a bar with its value over each.

    The sum over a candidate's words stands under it. A long sentence goes on in the next line.

    Args:
        words: W words, Chinese or English.
        weights: (W,), finite and at least 0.
        pronoun: index of the pronoun.
        antecedents: the candidates that are right.
        distractors: the other candidates.
        title: stands above the sentence.

    Raises:
        UserError: no words, weights of another shape or not finite, an index outside the sentence.
    """
    strip = _Strip(words, weights, _Roles(len(words), pronoun, antecedents, distractors), style.TEXT + 1)
    margin, tallest, foot = 0.15, 0.45, 0.42
    caption = "attention weight of the pronoun (shading, bars); under a candidate, its sum"
    lines = strip.lines(style.DOUBLE_COLUMN - 2 * margin, least=0.27)
    top = _round_up(float(strip.weights.max()))
    rises = [max(float(strip.weights[index]) for index, _, _ in line.places) / top * tallest + 0.2 for line in lines]
    heading = _Heading(title, strip.roles)
    width = max(*(line.length for line in lines), heading.width, _scale_width(caption))
    height = heading.height + sum(rises) + sum(strip.height(line) for line in lines) + foot
    sheet = _Sheet(width + 2 * margin, height)
    sheet.heading(heading)

    alone = {run[0] for run in strip.roles.runs() if len(run) == 1}
    floor = sheet.height - heading.height
    for line, rise in zip(lines, rises, strict=True):
        floor -= rise
        strip.draw(sheet.canvas, line, margin, floor - strip.box, top)
        sheet.canvas.plot([margin, margin + line.length], [floor, floor], color=style.HAIRLINE, linewidth=0.5, zorder=0)
        for index, offset, box in line.places:
            weight = float(strip.weights[index])
            bar = weight / top * tallest
            colour = strip.roles.colour(index)
            sheet.canvas.add_patch(Rectangle((margin + offset, floor), box, bar, facecolor=colour, linewidth=0))
            if weight >= _WORTH_PRINTING and index not in alone:
                sheet.canvas.text(
                    margin + offset + box / 2, floor + bar + 0.025, _share(weight), ha="center", va="bottom",
                    fontsize=style.TINY, color=style.MUTED,
                )  # fmt: skip
        floor -= strip.height(line)
    sheet.scale(margin, 0.2, top, caption)
    return sheet.figure


@house_style()
def head_grid(
    scores: ArrayLike,
    chance: float,
    chosen: tuple[int, int],
    title: str,
    label: str = "candidate accuracy",
    intervals: ArrayLike | None = None,
) -> Figure:
    """The score of every head, coloured by its distance from chance; the chosen head is framed.

    Args:
        scores: (L, H), finite.
        chance: the score that is white; equal distances above and below it have equal depth of colour.
        chosen: (layer, head).
        title: stands above the grid.
        label: what the scores are.
        intervals: (L, H, 2) low and high, printed under the score.

    Raises:
        UserError: scores or intervals of another shape or not finite, a chosen head that is not in the grid.
    """
    values = _finite(scores, "scores", (None, None))
    layers, heads = values.shape
    layer, head = chosen
    if not (0 <= layer < layers and 0 <= head < heads):
        raise UserError(f"chosen head {chosen} is outside the grid of {layers} layers x {heads} heads")
    spans = None if intervals is None else _finite(intervals, "intervals", (layers, heads, 2))
    low, high = min(0.0, float(values.min())), max(1.0, float(values.max()))
    reach = max(high - chance, chance - low)
    norm = Normalize(chance - reach, chance + reach)

    cell_width, cell_height = (0.46, 0.32) if spans is None else (0.6, 0.42)
    at_chance = f"chance {chance:.2f}"
    left, right, bottom = 0.5, 0.66 + _width(at_chance, style.SMALL), 0.62
    heading = _Heading(title, None)
    caption = f"framed: layer {layer} head {head}, chosen"
    across, down = heads * cell_width, layers * cell_height
    tall = max(down, _width(label, style.TEXT), 0.9)
    width = max(left + across + right, heading.width + 0.3, _width(caption, style.SMALL) + 0.3)
    sheet = _Sheet(width, bottom + tall + heading.height)
    sheet.heading(heading)

    axes = sheet.axes(left, bottom + tall - down, across, down)
    axes.pcolormesh(values, cmap=style.AGAINST_CHANCE, norm=norm, edgecolors=style.PAPER, linewidth=1.2)
    axes.invert_yaxis()
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    axes.set_xticks(np.arange(heads) + 0.5, [str(number) for number in range(heads)])
    axes.set_yticks(np.arange(layers) + 0.5, [str(number) for number in range(layers)])
    axes.set_xlabel("head")
    axes.set_ylabel("layer")
    for row in range(layers):
        for column in range(heads):
            score = float(values[row, column])
            colour = style.ink_on(style.AGAINST_CHANCE(norm(score)))
            bold = "bold" if (row, column) == chosen else "normal"
            axes.text(
                column + 0.5, row + (0.5 if spans is None else 0.38), f"{score:.2f}",
                ha="center", va="center", fontsize=style.SMALL + 0.5, color=colour, fontweight=bold,
            )  # fmt: skip
            if spans is not None:
                axes.text(
                    column + 0.5, row + 0.74, "–".join(f"{bound:.2f}" for bound in spans[row, column]),
                    ha="center", va="center", fontsize=style.TINY, color=colour,
                )  # fmt: skip
    axes.add_patch(
        Rectangle((head, layer), 1, 1, fill=False, edgecolor=style.INK, linewidth=1.8, clip_on=False, zorder=4)
    )
    sheet.canvas.text(0.15, 0.1, caption, fontsize=style.SMALL, color=style.MUTED)

    bar = sheet.axes(left + across + 0.15, bottom, 0.09, tall)
    _colour_bar(bar, style.AGAINST_CHANCE, norm, label, (low, high))
    bar.axhline(chance, color=style.INK, linewidth=1.0)
    ends = [end for end in (low, high) if abs(end - chance) * tall > 0.14 * (high - low)]
    bar.set_yticks([chance, *ends], [at_chance, *(f"{end:.2g}" for end in ends)])
    return sheet.figure


@house_style()
def quad(cells: Sequence[QuadCell], title: str = "") -> Figure:
    """The m x m sentences of one block side by side: rows are cues, columns are orders, one scale of colour for all.

    A check stands where an antecedent gets more weight than every other candidate, a cross where it does not.

    Args:
        cells: m * m cells, row by row.
        title: stands above the block.

    Raises:
        UserError: a number of cells that is no square, or a cell that `pronoun_row` would refuse.
    """
    side = isqrt(len(cells))
    if not cells or side * side != len(cells):
        raise UserError(f"a block has m x m cells (1, 4, 9, ...), got {len(cells)}")
    size = style.TEXT if side <= 2 else style.SMALL
    strips = [
        _Strip(
            cell.words, cell.weights, _Roles(len(cell.words), cell.pronoun, cell.antecedents, cell.distractors), size
        )
        for cell in cells
    ]
    top = _round_up(max(float(strip.weights.max()) for strip in strips))
    margin, gutter, header, foot = 0.15, 0.3, 0.27, 0.42
    caption = "attention weight of the pronoun; under a candidate, its sum"
    inner = max((style.DOUBLE_COLUMN - 2 * margin - (side - 1) * gutter) / side, 2.0)
    lines = [strip.lines(inner, least=0.0) for strip in strips]
    inner = max(inner, *(line.length for cell in lines for line in cell))
    heights = [sum(strip.height(line) + 0.06 for line in cell) for strip, cell in zip(strips, lines, strict=True)]
    rows = [header + max(heights[row * side : (row + 1) * side]) + 0.12 for row in range(side)]
    heading = _Heading(title, strips[0].roles)
    width = max(side * inner + (side - 1) * gutter, heading.width, _scale_width(caption))
    sheet = _Sheet(width + 2 * margin, heading.height + sum(rows) + foot)
    sheet.heading(heading)

    for place, (cell, strip) in enumerate(zip(cells, strips, strict=True)):
        row, column = divmod(place, side)
        left = margin + column * (inner + gutter)
        floor = sheet.height - heading.height - sum(rows[:row]) - 0.12
        _mark(sheet.canvas, left + 0.06, floor + 0.035, strip.right())
        sheet.word(left + 0.18, floor + 0.03, cell.label, style.MUTED)
        floor -= header - 0.12
        for line in lines[place]:
            strip.draw(sheet.canvas, line, left, floor - strip.box, top)
            floor -= strip.height(line) + 0.06
    sheet.scale(margin, 0.2, top, caption)
    return sheet.figure


@house_style()
def alignment_through_training(
    steps: Sequence[int],
    scores: ArrayLike,
    chance: float,
    chosen: tuple[int, int],
    task_accuracy: ArrayLike | None = None,
    title: str = "",
) -> Figure:
    """Candidate accuracy of every head over training: one line a head, the chosen one in colour and named.

    Args:
        steps: S training steps, rising.
        scores: (S, L, H), finite.
        chance: drawn as a dotted line.
        chosen: (layer, head).
        task_accuracy: (S,), drawn as a dashed line where given.
        title: stands above the lines.

    Raises:
        UserError: shapes that do not fit, values not finite, steps that do not rise, a chosen head that does not exist.
    """
    values = _finite(scores, "scores", (len(steps), None, None))
    _, layers, heads = values.shape
    layer, head = chosen
    if not (0 <= layer < layers and 0 <= head < heads):
        raise UserError(f"chosen head {chosen} is outside {layers} layers x {heads} heads")
    if any(later <= earlier for earlier, later in pairwise(steps)):
        raise UserError(f"steps must rise, got {list(steps)}")
    task = None if task_accuracy is None else _finite(task_accuracy, "task_accuracy", (len(steps),))

    sheet = _Sheet(0.8 * style.DOUBLE_COLUMN, 2.9)
    heading = _Heading(title, None)
    sheet.heading(heading)
    room = _width("layer 00 head 00", style.SMALL, bold=True) + 0.2
    axes = sheet.axes(0.55, 0.5, sheet.width - 0.55 - room, sheet.height - 0.5 - heading.height)
    marker = "o" if len(steps) == 1 else ""
    faint = max(0.6 * min(1.0, (12 / (layers * heads)) ** 0.5), 0.15)
    for row in range(layers):
        for column in range(heads):
            if (row, column) != chosen:
                axes.plot(steps, values[:, row, column], color=style.OTHER, linewidth=0.7, alpha=faint, marker=marker,
                          markersize=3)  # fmt: skip
    axes.axhline(chance, color=style.INK, linewidth=0.8, linestyle=(0, (1, 2)), zorder=2.5)
    ends = [(chance, f"chance {chance:.2f}", style.INK, "normal")]
    if task is not None:
        axes.plot(steps, task, color=style.INK, linewidth=1.1, linestyle=(0, (5, 2)), marker=marker, markersize=4)
        ends.append((float(task[-1]), "task accuracy", style.INK, "normal"))
    axes.plot(steps, values[:, layer, head], color=style.ANTECEDENT, linewidth=2.0, marker=marker, markersize=5)
    ends.append((float(values[-1, layer, head]), f"layer {layer} head {head}", style.ANTECEDENT, "bold"))
    if layers * heads > 1:
        others = np.delete(values[-1].ravel(), layer * heads + head)
        ends.append((float(np.median(others)), "other heads", style.MUTED, "normal"))

    axes.set_ylim(min(0.0, float(values.min())), max(1.0, float(values.max())) * 1.02)
    axes.grid(axis="y")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    axes.xaxis.set_major_formatter(lambda step, _: f"{step:,.0f}")
    if len(steps) == 1:
        axes.set_xticks(list(steps))
    axes.margins(x=0)
    axes.set_xlabel("training step")
    axes.set_ylabel("candidate accuracy" if task is None else "accuracy")
    low, high = axes.get_ylim()
    gap = 0.135 / (axes.get_position().height * sheet.height) * (high - low)
    for place, (_, text, colour, weight) in zip(_spread([end[0] for end in ends], gap, low, high), ends, strict=True):
        axes.annotate(text, (1, place), xycoords=axes.get_yaxis_transform(), xytext=(5, 0), textcoords="offset points",
                      va="center", fontsize=style.SMALL, color=colour, fontweight=weight)  # fmt: skip
    return sheet.figure


@house_style()
def strata_bars(rows: Sequence[Dot], title: str = "", label: str = "accuracy") -> Figure:
    """Shares with intervals on one axis from 0 to 1, a line for every label, baselines as ticks across it.

    Args:
        rows: from the top down; rows of the same label share a line, set apart by measure.
        title: stands above the rows.
        label: what the axis shows.

    Raises:
        UserError: no rows, or a value or bound outside [0, 1].
    """
    if not rows:
        raise UserError("strata_bars needs at least one row")
    for row in rows:
        for bound in (row.value, row.low, row.high, *row.baselines.values()):
            if bound is not None and not 0 <= bound <= 1:
                raise UserError(f"row {row.label!r}: {bound} is outside [0, 1]")
    labels = list(dict.fromkeys(row.label for row in rows))
    measures = list(dict.fromkeys(row.measure for row in rows))
    baselines = list(dict.fromkeys(name for row in rows for name in row.baselines))
    lane = 0.15 * len(measures) + 0.13

    left = max(_width(drawable(text), style.TEXT) for text in labels) + 0.3
    keys = sum(_width(drawable(name), style.SMALL) + 0.31 for name in (*measures, *baselines) if name)
    across = max(style.DOUBLE_COLUMN * 0.8 - left, 2.6, keys)
    heading = _Heading(title, None)
    key = 0.26
    width = max(left + across + 0.3, heading.width + 0.3)
    sheet = _Sheet(width, heading.height + key + lane * len(labels) + 0.55)
    sheet.heading(heading)
    axes = sheet.axes(left, 0.5, across, lane * len(labels))
    axes.set(xlim=(0, 1), ylim=(len(labels), 0), xlabel=label)
    axes.set_yticks(np.arange(len(labels)) + 0.5, [drawable(text) for text in labels], fontsize=style.TEXT)
    axes.tick_params(axis="y", length=0, pad=6)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")
    for border in range(1, len(labels)):
        axes.axhline(border, color=style.HAIRLINE, linewidth=0.5)

    for row in rows:
        rank = measures.index(row.measure)
        height = labels.index(row.label) + (0.13 / 2 + 0.15 * (rank + 0.5)) / lane
        colour, shape = _MEASURES[rank % len(_MEASURES)]
        for name, value in row.baselines.items():
            axes.plot([value, value], [height - 0.076 / lane, height + 0.076 / lane], **_tick(baselines.index(name)))
        if row.low is not None and row.high is not None:
            axes.plot([row.low, row.high], [height, height], color=colour, linewidth=1.4, clip_on=False)
        axes.plot([row.value], [height], marker=shape, markersize=4.5, color=colour, markeredgecolor=style.PAPER,
                  markeredgewidth=0.6, clip_on=False, zorder=3)  # fmt: skip

    place = left
    line = sheet.height - heading.height - 0.1
    for rank, measure in enumerate(measures):
        if measure:
            colour, shape = _MEASURES[rank % len(_MEASURES)]
            sheet.canvas.plot([place + 0.04], [line], marker=shape, markersize=4.5, color=colour, linestyle="none")
            place = sheet.word(place + 0.13, line, measure, colour) + 0.18
    for rank, name in enumerate(baselines):
        sheet.canvas.plot([place + 0.04, place + 0.04], [line - 0.055, line + 0.055], **_tick(rank))
        place = sheet.word(place + 0.13, line, name, style.INK) + 0.18
    return sheet.figure


_CELLS = ((10, 0.32, 8.0), (20, 0.25, 8.0), (30, 0.2, 7.5), (10**9, 0.165, 7.0))
"""Heat maps: up to how many words, the side of a cell in inches, the type size of its labels."""
_MEASURES = ((style.INK, "o"), (style.ANTECEDENT, "D"), (style.DISTRACTOR, "s"))
_WORTH_PRINTING = 0.015
"""Weights below this have a bar but no number."""
_SCALE = 0.7
"""Length in inches of a lying colour scale."""
_NAMES = {"pronoun": style.PRONOUN, "antecedent": style.ANTECEDENT, "other candidate": style.DISTRACTOR}


class _Roles:
    """Who is who among W words."""

    def __init__(self, count: int, pronoun: int | None, antecedents: Candidates, distractors: Candidates) -> None:
        self.antecedents = [_indices(entry, count, "antecedent") for entry in antecedents]
        self.distractors = [_indices(entry, count, "distractor") for entry in distractors]
        self._of: dict[int, str] = {}
        for name, entries in (("other candidate", self.distractors), ("antecedent", self.antecedents)):
            self._of.update((index, name) for entry in entries for index in entry)
        if pronoun is not None:
            self._of[_indices(pronoun, count, "pronoun")[0]] = "pronoun"

    def of(self, index: int) -> str | None:
        """The role of the word, or None."""
        return self._of.get(index)

    def colour(self, index: int, other: str = style.OTHER) -> str:
        """The colour of the word's role, `other` where it has none."""
        return _NAMES.get(self._of.get(index, ""), other)

    def present(self) -> list[str]:
        """The roles that occur, in the order of the key."""
        return [name for name in _NAMES if name in self._of.values()]

    def runs(self) -> list[list[int]]:
        """Every unbroken stretch of words of one candidate."""
        stretches = []
        for entry in (*self.antecedents, *self.distractors):
            stretch: list[int] = []
            for index in entry:
                if stretch and index != stretch[-1] + 1:
                    stretches.append(stretch)
                    stretch = []
                stretch.append(index)
            stretches.append(stretch)
        return stretches


@dataclass(frozen=True)
class _Heading:
    """A title, and under it the key to the roles that occur."""

    title: str
    roles: _Roles | None

    @property
    def names(self) -> list[str]:
        return self.roles.present() if self.roles else []

    @property
    def width(self) -> float:
        title = max((_width(line, style.TEXT + 1, bold=True) for line in drawable(self.title).split("\n")), default=0)
        return max(title, sum(_width(name, style.SMALL) + 0.3 for name in self.names))

    @property
    def height(self) -> float:
        lines = self.title.count("\n") + 1 if self.title else 0
        return 0.1 + 0.19 * lines + (0.2 if self.names else 0.0) + 0.1


class Picture(Figure):
    """A figure that a notebook shows by itself: it belongs to no pyplot, which notebooks look for."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """As PNG, twice as fine as it is shown, with width and height in pixels."""
        pixels = 96
        buffer = io.BytesIO()
        with house_style():
            self.savefig(buffer, format="png", dpi=2 * pixels)
        width, height = (round(pixels * inches) for inches in self.get_size_inches())
        return buffer.getvalue(), {"width": width, "height": height}


class _Sheet:
    """A figure measured in inches from its lower left corner."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self.figure = Picture(figsize=(width, height))
        FigureCanvasAgg(self.figure)
        self.canvas = self.figure.add_axes((0, 0, 1, 1))
        self.canvas.set(xlim=(0, width), ylim=(0, height))
        self.canvas.set_axis_off()

    def axes(self, left: float, bottom: float, width: float, height: float) -> Axes:
        return self.figure.add_axes((left / self.width, bottom / self.height, width / self.width, height / self.height))

    def heading(self, heading: _Heading) -> None:
        line = self.height - 0.1
        for text in drawable(heading.title).split("\n") if heading.title else []:
            self.canvas.text(0.15, line - 0.125, text, fontsize=style.TEXT + 1, fontweight="bold")
            line -= 0.19
        left = 0.15
        for name in heading.names:
            _underline(self.canvas, left, left + 0.13, line - 0.1, name)
            left = self.word(left + 0.18, line - 0.1, name, _NAMES[name]) + 0.16

    def word(self, left: float, middle: float, text: str, colour: str) -> float:
        """Write a small label and return where it ends."""
        text = drawable(text)
        self.canvas.text(left, middle - 0.032, text, fontsize=style.SMALL, color=colour)
        return left + _width(text, style.SMALL)

    def scale(self, left: float, middle: float, top: float, label: str) -> None:
        """Draw a lying colour scale of weights from 0 to `top` with its label."""
        steps, length = 24, _SCALE
        for step in range(steps):
            self.canvas.add_patch(
                Rectangle((left + 0.1 + step * length / steps, middle - 0.04), length / steps, 0.08,
                          facecolor=style.WEIGHTS((step + 0.5) / steps), linewidth=0.2,
                          edgecolor=style.WEIGHTS((step + 0.5) / steps))
            )  # fmt: skip
        self.word(left, middle, "0", style.MUTED)
        end = self.word(left + 0.15 + length, middle, f"{top:g}", style.MUTED)
        self.word(end + 0.12, middle, label, style.MUTED)


@dataclass(frozen=True)
class _Line:
    """A line of a sentence: (word index, left edge, width) of each box, in inches."""

    places: list[tuple[int, float, float]]
    length: float


class _Strip:
    """A sentence as boxes of words shaded by weight, the candidates underlined."""

    def __init__(self, words: Sequence[str], weights: ArrayLike, roles: _Roles, size: float) -> None:
        self.words = [drawable(word) for word in words]
        self.weights = _weights(weights, (len(words),))
        self.roles = roles
        self.size = size
        self.box = size / 72 * 1.55
        self._runs = roles.runs()

    def right(self) -> bool:
        """Whether an antecedent has more weight than every other candidate."""
        best = max((self._mass(entry) for entry in self.roles.antecedents), default=0.0)
        return best > max((self._mass(entry) for entry in self.roles.distractors), default=0.0)

    def lines(self, available: float, least: float) -> list[_Line]:
        """Break the sentence into lines of at most `available` inches, a box being at least `least` wide.

        A candidate's words and the punctuation after a word stay together.
        """
        gap = 0.035
        widths = [
            max(_width(word, self.size, bold=self.roles.of(index) is not None) + 0.09, least)
            for index, word in enumerate(self.words)
        ]
        glued = {index for run in self._runs for index in run[1:]}
        glued |= {index for index, word in enumerate(self.words) if index and word in _CLOSING}
        units: list[list[int]] = []
        for index in range(len(self.words)):
            if index in glued and units:
                units[-1].append(index)
            else:
                units.append([index])

        lines: list[_Line] = []
        places: list[tuple[int, float, float]] = []
        left = 0.0
        for unit in units:
            if places and left + sum(widths[index] + gap for index in unit) - gap > available:
                lines.append(_Line(places, left - gap))
                places, left = [], 0.0
            for index in unit:
                places.append((index, left, widths[index]))
                left += widths[index] + gap
        return [*lines, _Line(places, left - gap)]

    def height(self, line: _Line) -> float:
        """Height in inches of the line's boxes and of what stands under them."""
        drawn = {index for index, _, _ in line.places}
        return self.box + (0.2 if any(run[0] in drawn for run in self._runs) else 0.05)

    def draw(self, canvas: Axes, line: _Line, left: float, base: float, top: float) -> None:
        """Draw one line with its lower edge at `base` inches; `top` is the weight that is darkest."""
        edges = {}
        for index, offset, width in line.places:
            shade = min(float(self.weights[index]) / top, 1.0)
            at = left + offset
            edges[index] = (at, at + width)
            paint = style.WEIGHTS(shade)
            canvas.add_patch(Rectangle((at, base), width, self.box, facecolor=paint, linewidth=0))
            role = self.roles.of(index)
            canvas.text(
                at + width / 2, base + self.box * 0.3, self.words[index], ha="center", fontsize=self.size,
                color=style.ink_on(paint), fontweight="bold" if role else "normal",
            )  # fmt: skip
            if role == "pronoun":
                canvas.add_patch(_frame(at, base, width, self.box, "pronoun", 1.4))
        for run in self._runs:
            if run[0] in edges:
                first, last = edges[run[0]][0], edges[run[-1] if run[-1] in edges else run[0]][1]
                name = self.roles.of(run[0]) or ""
                _underline(canvas, first, last, base - 0.035, name)
                canvas.text(
                    (first + last) / 2, base - 0.06, _share(self._mass(run)), ha="center", va="top",
                    fontsize=style.TINY + 0.5, color=_NAMES[name], fontweight="bold",
                )  # fmt: skip

    def _mass(self, indices: Iterable[int]) -> float:
        return float(sum(self.weights[index] for index in indices))


_CLOSING = frozenset(
    [",", ".", ";", ":", "?", "!", ")", "，", "。", "；", "：", "？", "！", "、", "”", "’", "》", "）"]
)


def _underline(canvas: Axes, left: float, right: float, height: float, name: str) -> None:
    # The antecedent's line is whole and the others' broken, so that the roles are told apart in grey too.
    if name == "pronoun":
        canvas.add_patch(_frame(left, height - 0.045, right - left, 0.09, name, 1.2))
    else:
        canvas.plot(
            [left, right], [height, height], color=_NAMES[name], linewidth=2.0,
            linestyle="-" if name == "antecedent" else (0, (1.2, 0.7)),
        )  # fmt: skip


def _scale_width(label: str) -> float:
    return _SCALE + 0.5 + _width(label, style.SMALL)


def _mark(canvas: Axes, left: float, middle: float, right: bool) -> None:
    shape = ([-0.05, -0.015, 0.055], [0.0, -0.04, 0.05])
    strokes = [shape] if right else [([-0.045, 0.045], [-0.045, 0.045]), ([-0.045, 0.045], [0.045, -0.045])]
    for xs, ys in strokes:
        canvas.plot(
            [left + x for x in xs], [middle + y for y in ys], linewidth=1.6, solid_capstyle="round",
            color=style.ANTECEDENT if right else style.DISTRACTOR,
        )  # fmt: skip


def _frame(left: float, bottom: float, width: float, height: float, role: str, line: float) -> Rectangle:
    return Rectangle(
        (left, bottom), width, height, fill=False, edgecolor=_NAMES[role], linewidth=line, clip_on=False, zorder=4,
        linestyle=(0, (1.6, 0.8)) if role == "other candidate" else "-",
    )  # fmt: skip


def _colour_bar(axes: Axes, colours: Colormap, norm: Normalize, label: str, limits: tuple[float, float]) -> None:
    low, high = limits
    edges = np.linspace(low, high, 65)
    middles = (edges[:-1] + edges[1:])[:, None] / 2
    axes.pcolormesh([0, 1], edges, middles, cmap=colours, norm=norm, edgecolors="face", linewidth=0.2)
    axes.set_xticks([])
    axes.yaxis.tick_right()
    axes.yaxis.set_label_position("right")
    axes.spines[:].set_visible(False)
    axes.set_ylim(low, high)
    axes.set_ylabel(drawable(label), labelpad=4)


def _tick(rank: int) -> dict[str, Any]:
    patterns: tuple[Any, ...] = ("-", (0, (1, 0.6)), (0, (3, 1)))
    colours = (style.INK, style.MUTED, style.OTHER)
    return {"linestyle": patterns[rank % 3], "color": colours[rank // 3 % 3], "linewidth": 1.3}


def _spread(places: list[float], gap: float, low: float, high: float) -> list[float]:
    """`places` moved apart to at least `gap`, as near their own as that allows, inside [low, high]."""
    order = sorted(range(len(places)), key=places.__getitem__)
    moved = dict(zip(order, sorted(places), strict=True))
    for _ in range(50):
        for below, above in pairwise(order):
            overlap = gap - (moved[above] - moved[below])
            if overlap > 0:
                moved[below] -= overlap / 2
                moved[above] += overlap / 2
        for rank, place in enumerate(order):
            moved[place] = min(max(moved[place], low + rank * gap), high - (len(order) - 1 - rank) * gap)
    return [moved[place] for place in range(len(places))]


def _share(weight: float) -> str:
    return f"{weight:.2f}"


def _round_up(weight: float) -> float:
    """The round number at which a scale that holds `weight` ends."""
    return next((top for top in (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0) if weight <= top), weight)


def _column_label(label: str) -> str:
    return "\n".join(label) if is_chinese(label) else label


def _height_of_column_label(label: str, size: float) -> float:
    return len(label) * size / 72 * 1.12 if is_chinese(label) else _width(label, size, bold=True)


@lru_cache(maxsize=4096)
def _width(text: str, size: float, bold: bool = False) -> float:
    """Width in inches of one line of text in the house's type."""
    face = FontProperties(family=list(families()), size=size, weight="bold" if bold else "normal")
    width, _, _ = _RULER.get_text_width_height_descent(text, face, ismath=False)  # type: ignore[no-untyped-call]
    return float(width) / _RULER_DPI


_RULER_DPI = 288
_RULER = RendererAgg(1, 1, _RULER_DPI)  # type: ignore[no-untyped-call]


def _indices(entry: int | Sequence[int], count: int, name: str) -> list[int]:
    indices = [int(entry)] if isinstance(entry, int | np.integer) else sorted(int(index) for index in entry)
    if not indices or any(not 0 <= index < count for index in indices):
        raise UserError(f"{name} {entry!r} is outside the sentence: words are counted from 0 to {count - 1}")
    return indices


def _weights(values: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.float64]:
    if not shape[0]:
        raise UserError("a sentence needs at least one word")
    weights = _finite(values, "weights", shape)
    if weights.min() < 0:
        raise UserError(f"weights must be at least 0, got {weights.min():g}")
    return weights


def _finite(values: ArrayLike, name: str, shape: tuple[int | None, ...]) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    fits = array.ndim == len(shape) and all(want in (None, has) for want, has in zip(shape, array.shape, strict=False))
    if not fits or not array.size:
        wanted = " x ".join("any" if size is None else str(size) for size in shape)
        raise UserError(
            f"{name} must have shape {wanted}, got {' x '.join(map(str, array.shape)) or 'a single number'}"
        )
    if not np.isfinite(array).all():
        raise UserError(f"{name} must be finite; {int((~np.isfinite(array)).sum())} of {array.size} are not")
    return array
