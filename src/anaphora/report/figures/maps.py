"""Figures of attention in sentences: heat map, the pronoun's row, and quads.

A quad combines each of two cues (words that decide which candidate is meant) with both orders of the two candidates:
four sentences. With m candidates, there are m cues and m orders.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike, NDArray

from anaphora.analysis.scores.heads import TIE
from anaphora.base.errors import UserError
from anaphora.base.language import is_right_to_left, stays_with_previous
from anaphora.base.translation import _
from anaphora.report.figures import style
from anaphora.report.figures.fonts import drawable_text, is_chinese
from anaphora.report.figures.sheet import (
    FRAMED_ROLES,
    MIN_PRINTED_WEIGHT,
    NARROWEST_TITLE,
    ROLE_COLOURS,
    CandidateWords,
    Heading,
    Sheet,
    WordRoles,
    checked_indices,
    draw_colour_bar,
    draw_underline,
    finite_array,
    role_frame,
    scale_end,
    scale_width,
    text_width,
    wrapped_title,
)
from anaphora.report.figures.style import figure_style


@dataclass(frozen=True, kw_only=True)
class QuadCell:
    """Sentence of a quad (cues combined with candidate orders) with the pronoun's attention in one head, (W,).

    The pronoun and each candidate are given by the indices of their words.
    """

    words: Sequence[str]
    weights: ArrayLike
    pronoun: int | Sequence[int]
    antecedents: CandidateWords
    distractors: CandidateWords
    label: str = ""
    text: str = ""  # the sentence as written

    def antecedent_is_strongest(self) -> bool:
        """Return whether an antecedent gets more weight, summed over its words, than every other candidate."""
        weights = np.asarray(self.weights, dtype=np.float64)
        roles = WordRoles(len(self.words), self.pronoun, self.antecedents, self.distractors)
        best = max((weights[entry].sum() for entry in roles.antecedents), default=0.0)
        # As in the candidate accuracy, weights that only rounding separates count as tied.
        return bool(best * (1 - TIE) > max((weights[entry].sum() for entry in roles.distractors), default=0.0))


@figure_style()
def heat_map_figure(
    words: Sequence[str],
    weights: ArrayLike,
    title: str,
    pronoun: int | Sequence[int] | None = None,
    antecedents: CandidateWords = (),
    distractors: CandidateWords = (),
    attending: str = "pronoun",
) -> Figure:
    """Draw the attention map of one head: each row is a query word, and each column is a word attended to.

    Args:
        words: W words, Chinese or English.
        weights: (W, W), finite and at least 0; the colour scale ends at 1, or at the largest weight if that is higher.
        pronoun: index or indices of the words whose rows are framed; None frames no row.
        antecedents, distractors: word indices of each correct candidate, and of each incorrect candidate.
        attending: role of the word whose row is framed, one of `FRAMED_ROLES`.

    Raises:
        UserError: there are no words, the weights are invalid, or an index is outside the sentence.
    """
    count = len(words)
    values = _weights(weights, (count, count))
    roles = WordRoles(count, pronoun, antecedents, distractors, attending)
    labels = [drawable_text(word) for word in words]
    cell, size = next((cell, size) for most, cell, size in _CELL_SIZES if count <= most)
    top = scale_end(float(values.max()))

    wide = max(text_width(label, size, bold=True) for label in labels)
    tall = max(_column_label_height(label, size) for label in labels)
    side = count * cell
    left, right, bottom = wide + 0.42, 0.75, 0.2
    heading = Heading(wrapped_title(title, left + side + right - 0.3), roles)
    width = max(left + side + right, heading.width + 0.3)
    long = max(side, text_width(_("attending word"), style.TEXT), 0.9)
    sheet = Sheet(width, bottom + long + tall + 0.32 + heading.height, heading)

    axes = sheet.axes(left, bottom + long - side, side, side)
    norm = Normalize(0, top)
    axes.pcolormesh(values, cmap=style.WEIGHTS, norm=norm, edgecolors=style.PAPER, linewidth=min(0.8, 2.2 * cell))
    axes.invert_yaxis()
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, pad=3)
    centres = np.arange(count) + 0.5
    axes.set_yticks(centres, labels, fontsize=size)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    # Chinese words, and single digits and punctuation marks beside them, are stacked upright; other words are rotated.
    upright = [is_chinese(label) or (len(label) == 1 and any(map(is_chinese, labels))) for label in labels]
    stacked = ["\n".join(label) if is_upright else label for label, is_upright in zip(labels, upright, strict=True)]
    axes.set_xticks(centres, stacked, fontsize=size)
    for index, (row, column) in enumerate(zip(axes.get_yticklabels(), axes.get_xticklabels(), strict=True)):
        column.set(rotation=0 if upright[index] else 90, linespacing=1.0)
        for tick in (row, column):
            tick.set(color=roles.colour(index, style.INK), fontweight="bold" if roles.of(index) else "normal")
    axes.set_xlabel(_("attended word"), labelpad=5, color=style.MUTED)
    axes.set_ylabel(_("attending word"), labelpad=5, color=style.MUTED)

    if pronoun is not None:
        rows = checked_indices(pronoun, count, "pronoun")
        first, framed = rows[0], rows[-1] - rows[0] + 1
        axes.add_patch(role_frame(0, first, count, framed, "pronoun", 1.2))
        for run in roles.runs():
            axes.add_patch(role_frame(run[0], first, len(run), framed, roles.of(run[0]) or "pronoun", 1.8))

    bar = sheet.axes(left + side + 0.15, bottom, 0.09, long)
    draw_colour_bar(bar, style.WEIGHTS, norm, _("attention weight"), (0, top))
    return sheet.figure


@figure_style()
def pronoun_row_figure(
    words: Sequence[str],
    weights: ArrayLike,
    pronoun: int | Sequence[int],
    antecedents: CandidateWords,
    distractors: CandidateWords,
    title: str,
    attending: str = "pronoun",
    room: float = style.DOUBLE_COLUMN,
) -> Figure:
    """Draw a sentence whose words are shaded by the pronoun's attention, with a bar above each word for its weight.

    The weight is printed at the bar unless it is below `MIN_PRINTED_WEIGHT`. Below each candidate, the sum of its
    words' weights is printed; the bar of a candidate with a single word has no number. Long sentences wrap.

    Args:
        words: W words, Chinese or English.
        weights: (W,), finite and at least 0.
        pronoun: index of the pronoun, or the indices of all its words.
        antecedents, distractors: word indices of each correct candidate, and of each incorrect candidate.
        attending: role of the word whose attention row is drawn, one of `FRAMED_ROLES`.
        room: maximum width of the figure in inches, beyond which the sentence wraps.

    Raises:
        UserError: there are no words, the weights are invalid, or an index is outside the sentence.
    """
    roles = WordRoles(len(words), pronoun, antecedents, distractors, attending)
    strip = _SentenceStrip(words, weights, roles, style.TEXT + 1)
    margin, tallest, foot = 0.15, 0.45, 0.42
    caption = (
        _("attention weight of the pronoun (shading, bars); below each candidate, the sum over its words")
        if attending == "pronoun" and (antecedents or distractors) and room > style.PHONE
        else _("attention weight (shading, bars)")
    )
    lines = strip.lines(room - 2 * margin, least=0.27)
    top = scale_end(float(strip.weights.max()))
    rises = [max(float(strip.weights[index]) for index, _, _ in line.places) / top * tallest + 0.2 for line in lines]
    content = max(*(line.length for line in lines), scale_width(caption))
    heading = Heading(wrapped_title(title, content, min(NARROWEST_TITLE, room - 2 * margin)), strip.roles)
    width = max(content, heading.width)
    height = heading.height + sum(rises) + sum(strip.height(line) for line in lines) + foot
    sheet = Sheet(width + 2 * margin, height, heading)

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
            if weight >= MIN_PRINTED_WEIGHT and index not in alone:
                sheet.canvas.text(
                    margin + offset + box / 2, floor + bar + 0.025, f"{weight:.2f}", ha="center", va="bottom",
                    fontsize=style.TINY, color=style.MUTED,
                )  # fmt: skip
        floor -= strip.height(line)
    sheet.draw_scale(margin, 0.2, top, caption)
    return sheet.figure


@figure_style()
def quad_figure(cells: Sequence[QuadCell], title: str = "") -> Figure:
    """Draw the sentences of a quad on one colour scale, in a grid whose rows are cues and columns candidate orders.

    A quad has m cues (words that decide which candidate is meant) and m candidate orders, with m usually 2. `cells`
    lists the m x m sentences cue by cue. A sentence has a check mark if an antecedent gets more of the pronoun's weight
    than every other candidate, otherwise a cross.

    Raises:
        UserError: the number of sentences is not a square, a sentence has no words or invalid weights, the pronoun or
            a candidate has no index, or an index is outside its sentence.
    """
    side = isqrt(len(cells))
    if not cells or side * side != len(cells):
        raise UserError(f"a quad figure needs m x m sentences (1, 4, 9, ...), got {len(cells)}")
    size = style.TEXT if side <= 2 else style.SMALL
    strips = [
        _SentenceStrip(
            cell.words, cell.weights, WordRoles(len(cell.words), cell.pronoun, cell.antecedents, cell.distractors), size
        )
        for cell in cells
    ]
    top = scale_end(max(float(strip.weights.max()) for strip in strips))
    margin, gutter, header, foot = 0.15, 0.3, 0.27, 0.42
    caption = _("attention weight of the pronoun; below each candidate, the sum over its words")
    inner = max((style.DOUBLE_COLUMN - 2 * margin - (side - 1) * gutter) / side, 2.0)
    lines = [strip.lines(inner, least=0.0) for strip in strips]
    inner = max(inner, *(line.length for cell in lines for line in cell))
    heights = [sum(strip.height(line) + 0.06 for line in cell) for strip, cell in zip(strips, lines, strict=True)]
    rows = [header + max(heights[row * side : (row + 1) * side]) + 0.12 for row in range(side)]
    content = max(side * inner + (side - 1) * gutter, scale_width(caption))
    heading = Heading(wrapped_title(title, content), strips[0].roles)
    width = max(content, heading.width)
    sheet = Sheet(width + 2 * margin, heading.height + sum(rows) + foot, heading)

    for place, (cell, strip) in enumerate(zip(cells, strips, strict=True)):
        row, column = divmod(place, side)
        left = margin + column * (inner + gutter)
        floor = sheet.height - heading.height - sum(rows[:row]) - 0.12
        _draw_verdict_mark(sheet.canvas, left + 0.06, floor + 0.035, cell.antecedent_is_strongest())
        sheet.draw_label(left + 0.18, floor + 0.03, cell.label, style.MUTED)
        floor -= header - 0.12
        for line in lines[place]:
            strip.draw(sheet.canvas, line, left, floor - strip.box, top)
            floor -= strip.height(line) + 0.06
    sheet.draw_scale(margin, 0.2, top, caption)
    return sheet.figure


_CELL_SIZES = ((10, 0.32, 8.0), (20, 0.25, 8.0), (30, 0.2, 7.5), (10**9, 0.165, 7.0))
"""Heat map sizes: maximum number of words, side of a cell in inches, font size of the labels in points."""


@dataclass(frozen=True)
class _TextLine:
    """Line of a sentence, drawn as one box per word; all sizes are in inches.

    `places` has (word index, left edge, width) for each box; `length` is the length of the whole line.
    """

    places: list[tuple[int, float, float]]
    length: float


class _SentenceStrip:
    """Sentence as a strip of boxes, one per word, which are shaded by weight; candidates are underlined."""

    def __init__(self, words: Sequence[str], weights: ArrayLike, roles: WordRoles, size: float) -> None:
        self.words = [drawable_text(word) for word in words]
        self._attached = stays_with_previous(words)  # needs the original marks, before quotes become straight
        self._is_right_to_left = is_right_to_left(words)
        if self._is_right_to_left:  # the font does not mirror a single bracket
            self.words = [word.translate(_MIRRORED) if len(word) == 1 else word for word in self.words]
        self.weights = _weights(weights, (len(words),))
        self.roles = roles
        self.size = size
        self.box = size / 72 * 1.55
        self._runs = roles.runs()

    def lines(self, available: float, least: float) -> list[_TextLine]:
        """Break the sentence into lines of at most `available` inches, with boxes at least `least` inches wide.

        The words of a candidate stay on one line. No line begins with a closing punctuation mark or ends with an
        opening one. In a right-to-left script, the first word of each line is at its right end.
        """
        gap = 0.035
        widths = [
            max(text_width(word, self.size, bold=self.roles.of(index) is not None) + 0.09, least)
            for index, word in enumerate(self.words)
        ]
        attached = list(self._attached)
        for run in self._runs:
            for index in run[1:]:
                attached[index] = True
        units: list[list[int]] = []
        for index, is_attached in enumerate(attached):
            if is_attached:
                units[-1].append(index)
            else:
                units.append([index])

        lines: list[_TextLine] = []
        places: list[tuple[int, float, float]] = []
        left = 0.0
        for unit in units:
            if places and left + sum(widths[index] + gap for index in unit) - gap > available:
                lines.append(_TextLine(places, left - gap))
                places, left = [], 0.0
            for index in unit:
                places.append((index, left, widths[index]))
                left += widths[index] + gap
        lines.append(_TextLine(places, left - gap))
        return _mirrored(lines) if self._is_right_to_left else lines

    def height(self, line: _TextLine) -> float:
        """Return the height of a line of the sentence in inches, with room for the weights printed under candidates."""
        on_line = {index for index, _, _ in line.places}
        return self.box + (0.2 if any(run[0] in on_line for run in self._runs) else 0.05)

    def draw(self, canvas: Axes, line: _TextLine, left: float, base: float, top: float) -> None:
        """Draw one line of the sentence, with its lower edge at `base` inches; weight `top` has the darkest colour."""
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
                color=style.text_colour_on(paint), fontweight="bold" if role else "normal",
            )  # fmt: skip
            if role in FRAMED_ROLES:
                canvas.add_patch(role_frame(at, base, width, self.box, "pronoun", 1.4))
        for run in self._runs:
            if run[0] in edges:
                last_edges = edges[run[-1] if run[-1] in edges else run[0]]
                first, last = min(edges[run[0]][0], last_edges[0]), max(edges[run[0]][1], last_edges[1])
                name = self.roles.of(run[0]) or ""
                draw_underline(canvas, first, last, base - 0.035, name)
                canvas.text(
                    (first + last) / 2, base - 0.06, f"{self.weights[run].sum():.2f}", ha="center", va="top",
                    fontsize=style.TINY, color=ROLE_COLOURS[name], fontweight="bold",
                )  # fmt: skip


_MIRRORED = str.maketrans("()[]{}<>«»‹›", ")(][}{><»«›‹")


def _mirrored(lines: Sequence[_TextLine]) -> list[_TextLine]:
    """Mirror the words of each line for a right-to-left script, and align the lines on the right."""
    length = max(line.length for line in lines)
    turned = [[(index, length - left - width, width) for index, left, width in line.places] for line in lines]
    return [_TextLine(places, length) for places in turned]


def _draw_verdict_mark(canvas: Axes, left: float, middle: float, right: bool) -> None:
    shape = ([-0.05, -0.015, 0.055], [0.0, -0.04, 0.05])
    strokes = [shape] if right else [([-0.045, 0.045], [-0.045, 0.045]), ([-0.045, 0.045], [0.045, -0.045])]
    for xs, ys in strokes:
        canvas.plot(
            [left + x for x in xs], [middle + y for y in ys], linewidth=1.6, solid_capstyle="round",
            color=style.ANTECEDENT if right else style.DISTRACTOR,
        )  # fmt: skip


def _column_label_height(label: str, size: float) -> float:
    return len(label) * size / 72 * 1.12 if is_chinese(label) else text_width(label, size, bold=True)


def _weights(values: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.float64]:
    if not shape[0]:
        raise UserError("a sentence needs at least one word")
    weights = finite_array(values, "weights", shape)
    if weights.min() < 0:
        raise UserError(f"weights must be at least 0, got {weights.min():g}")
    return weights
