"""Elements shared by all figures: layout in inches, headings, colour scales, legends and the roles of words.

W is the number of words of a sentence. pyplot is not used.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.colors import Colormap, Normalize
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from numpy.typing import ArrayLike, NDArray

from anaphora.base.errors import UserError
from anaphora.base.language import lines_within
from anaphora.base.translation import _
from anaphora.data.grouping import portions
from anaphora.report.figures import style
from anaphora.report.figures.fonts import drawable_text, font_families
from anaphora.report.figures.style import figure_style
from anaphora.report.wording import label

MEASURE_MARKERS = ((style.INK, "o"), (style.ANTECEDENT, "D"), (style.DISTRACTOR, "s"))
TITLE_LINE = 0.19
"""Line height of a title in inches."""
_NOTE_LINE = 0.17
"""Line height of a heading's note in inches."""
_COLOUR_SCALE_LENGTH = 0.7
"""Length in inches of a horizontal colour scale."""
ROLE_COLOURS = {
    "pronoun": style.PRONOUN,
    "attending word": style.PRONOUN,  # query word of a sentence without a marked pronoun
    "antecedent": style.ANTECEDENT,
    "other candidate": style.DISTRACTOR,
    "candidate": style.DISTRACTOR,  # candidate in a sentence without a known antecedent
}
FRAMED_ROLES = ("pronoun", "attending word")
MIN_PRINTED_WEIGHT = 0.015
"""Minimum attention weight that is printed as a number."""

CandidateWords = Sequence[int | Sequence[int]]
"""Candidates with the same role: for each, the index of its word, or the indices of all its words."""


@dataclass(frozen=True)
class Heading:
    """Heading of a figure: title, grey note below it, and legend of the word roles in the figure; sizes in inches."""

    title: str
    roles: WordRoles | None
    note: str = ""

    @property
    def names(self) -> list[str]:
        return self.roles.present() if self.roles else []

    @property
    def width(self) -> float:
        title = max(text_width(line, style.TEXT + 1, bold=True) for line in drawable_text(self.title).split("\n"))
        note = max(text_width(line, style.TEXT) for line in drawable_text(self.note).split("\n"))
        return max(title, note, sum(text_width(label(_role_names(), name), style.SMALL) + 0.3 for name in self.names))

    @property
    def height(self) -> float:
        lines = self.title.count("\n") + 1 if self.title else 0
        note_lines = self.note.count("\n") + 1 if self.note else 0
        return 0.1 + TITLE_LINE * lines + _NOTE_LINE * note_lines + (0.2 if self.names else 0.0) + 0.1


class NotebookFigure(Figure):
    """Figure that notebooks display without pyplot.

    `title` includes line breaks; `title_lines` are the matplotlib artists of its lines, from top to bottom.
    """

    title: str = ""
    title_lines: Sequence[Text] = ()

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """Return the figure as PNG at twice the display resolution, with width and height in pixels."""
        pixels = 96
        buffer = io.BytesIO()
        with figure_style():
            self.savefig(buffer, format="png", dpi=2 * pixels)
        width, height = (round(pixels * inches) for inches in self.get_size_inches())
        return buffer.getvalue(), {"width": width, "height": height}


class Sheet:
    """Figure with a heading, in which positions are given in inches from the lower left corner."""

    def __init__(self, width: float, height: float, heading: Heading) -> None:
        self.width, self.height = width, height
        self.figure = NotebookFigure(figsize=(width, height))
        FigureCanvasAgg(self.figure)
        self.canvas = self.figure.add_axes((0, 0, 1, 1))
        self.canvas.set(xlim=(0, width), ylim=(0, height))
        self.canvas.set_axis_off()
        self._draw_heading(heading)

    def axes(self, left: float, bottom: float, width: float, height: float) -> Axes:
        return self.figure.add_axes((left / self.width, bottom / self.height, width / self.width, height / self.height))

    def _draw_heading(self, heading: Heading) -> None:
        line = self.height - 0.1
        lines = []
        for text in drawable_text(heading.title).split("\n") if heading.title else []:
            lines.append(self.canvas.text(0.15, line - 0.125, text, fontsize=style.TEXT + 1, fontweight="bold"))
            line -= TITLE_LINE
        self.figure.title, self.figure.title_lines = heading.title, lines
        for text in drawable_text(heading.note).split("\n") if heading.note else []:
            self.canvas.text(0.15, line - 0.115, text, fontsize=style.TEXT, color=style.MUTED)
            line -= _NOTE_LINE
        left = 0.15
        for name in heading.names:
            draw_underline(self.canvas, left, left + 0.13, line - 0.1, name)
            left = self.draw_label(left + 0.18, line - 0.1, label(_role_names(), name), ROLE_COLOURS[name]) + 0.16

    def draw_label(self, left: float, middle: float, text: str, colour: str) -> float:
        """Draw a small label and return the position of its right end, in inches."""
        text = drawable_text(text)
        self.canvas.text(left, middle - 0.032, text, fontsize=style.SMALL, color=colour)
        return left + text_width(text, style.SMALL)

    def draw_scale(self, left: float, middle: float, top: float, label: str) -> None:
        """Draw a horizontal colour scale of weights from 0 to `top`, with its label."""
        steps, length = 24, _COLOUR_SCALE_LENGTH
        for step in range(steps):
            self.canvas.add_patch(
                Rectangle((left + 0.1 + step * length / steps, middle - 0.04), length / steps, 0.08,
                          facecolor=style.WEIGHTS((step + 0.5) / steps), linewidth=0.2,
                          edgecolor=style.WEIGHTS((step + 0.5) / steps))
            )  # fmt: skip
        self.draw_label(left, middle, "0", style.MUTED)
        end = self.draw_label(left + 0.15 + length, middle, f"{top:g}", style.MUTED)
        self.draw_label(end + 0.12, middle, label, style.MUTED)


def scale_width(label: str) -> float:
    """Return the width in inches of a colour scale with its label."""
    return _COLOUR_SCALE_LENGTH + 0.5 + text_width(label, style.SMALL)


def role_frame(left: float, bottom: float, width: float, height: float, role: str, line: float) -> Rectangle:
    """Return a frame in the colour of a word's role; `line` is the line width in points."""
    return Rectangle(
        (left, bottom), width, height, fill=False, edgecolor=ROLE_COLOURS[role], linewidth=line, clip_on=False,
        zorder=4, linestyle=(0, (1.6, 0.8)) if "candidate" in role else "-",
    )  # fmt: skip


def draw_colour_bar(axes: Axes, colours: Colormap, norm: Normalize, label: str, limits: tuple[float, float]) -> None:
    """Draw a vertical colour scale over the values from `limits[0]` to `limits[1]`, with its label on the right."""
    low, high = limits
    edges = np.linspace(low, high, 65)
    middles = (edges[:-1] + edges[1:])[:, None] / 2
    axes.pcolormesh([0, 1], edges, middles, cmap=colours, norm=norm, edgecolors="face", linewidth=0.2)
    axes.set_xticks([])
    axes.yaxis.tick_right()
    axes.yaxis.set_label_position("right")
    axes.spines[:].set_visible(False)
    axes.set_ylim(low, high)
    axes.set_ylabel(drawable_text(label), labelpad=4)


def tick_style(rank: int) -> dict[str, Any]:
    """Return the line style of the ticks that mark the baseline with index `rank`; styles repeat after 12 baselines."""
    patterns: tuple[Any, ...] = ("-", (0, (1, 0.6)), (0, (3, 1)), (0, (2.2, 0.7, 0.6, 0.7)))
    colours = (style.INK, style.MUTED, style.OTHER)
    return {"linestyle": patterns[rank % 4], "color": colours[rank // 4 % 3], "linewidth": 1.3}


def spread_labels(heights: list[float], gap: float, low: float, high: float) -> list[float]:
    """Move label positions apart to distances of at least `gap`, within [low, high] and in the same order."""
    order = sorted(range(len(heights)), key=heights.__getitem__)
    moved = dict(zip(order, sorted(heights), strict=True))
    for _round in range(50):
        for below, above in pairwise(order):
            overlap = gap - (moved[above] - moved[below])
            if overlap > 0:
                moved[below] -= overlap / 2
                moved[above] += overlap / 2
        for rank, index in enumerate(order):
            moved[index] = min(max(moved[index], low + rank * gap), high - (len(order) - 1 - rank) * gap)
    return [moved[index] for index in range(len(heights))]


def scale_end(greatest: float) -> float:
    """Return the upper end of a colour scale: 1, or the greatest weight if it is greater than 1.

    A weight thus has the same colour in all figures without weights above 1. Weights exceed 1 only in matrices whose
    rows do not sum to 1.
    """
    return max(1.0, greatest)


NARROWEST_TITLE = 3.4
"""Minimum width of a title in inches; above a smaller figure, the title is wider than the figure."""


def wrapped_title(title: str, room: float = style.DOUBLE_COLUMN - 0.3, least: float = NARROWEST_TITLE) -> str:
    """Wrap a title at spaces or between Chinese characters, in lines of at most max(`room`, `least`) inches.

    Each sentence, which is a line of `title`, is wrapped into lines of similar length, to avoid a single word on the
    last line.
    """
    lines = []
    for sentence in title.split("\n"):
        width = max(room, least)
        of_sentence = lines_within(sentence, width, _title_width)
        while len(of_sentence) > 1 and len(narrower := lines_within(sentence, width - 0.1, _title_width)) == len(
            of_sentence
        ):
            of_sentence, width = narrower, width - 0.1
        lines += of_sentence
    return "\n".join(lines)


def _title_width(text: str) -> float:
    return text_width(drawable_text(text), style.TEXT + 1, bold=True)


def legend_lines(names: Mapping[str, str], symbol_width: float, room: float) -> list[list[str]]:
    """Return the keys of a legend's entries, divided into lines; without entries, there is one empty line.

    Args:
        names: text of each entry, by key.
        symbol_width: width of an entry's symbol with its gaps, in inches.
        room: maximum width of a line in inches; a wider entry gets a line of its own.
    """
    widths = [text_width(drawable_text(text), style.SMALL) + symbol_width for text in names.values()]
    return [[list(names)[index] for index in line] for line in portions(widths, room) or [[]]]


@lru_cache(maxsize=4096)
def text_width(text: str, size: float, bold: bool = False) -> float:
    """Return the width in inches of one line of text in the figures' font."""
    face = FontProperties(family=list(font_families()), size=size, weight="bold" if bold else "normal")
    width, _height, _descent = _RULER.get_text_width_height_descent(text, face, ismath=False)  # type: ignore[no-untyped-call]
    return float(width) / _RULER_DPI


_RULER_DPI = 288
_RULER = RendererAgg(1, 1, _RULER_DPI)  # type: ignore[no-untyped-call]


def checked_indices(entry: int | Sequence[int], count: int, name: str) -> list[int]:
    """Return one or more word indices as a sorted list.

    Raises:
        UserError: there is no index, or an index is outside 0 to `count` - 1.
    """
    indices = [int(entry)] if isinstance(entry, int | np.integer) else sorted(int(index) for index in entry)
    if not indices or any(not 0 <= index < count for index in indices):
        raise UserError(f"{name} {entry!r} is outside the sentence: words are counted from 0 to {count - 1}")
    return indices


def finite_array(values: ArrayLike, name: str, shape: tuple[int | None, ...]) -> NDArray[np.float64]:
    """Return values as a float array after checking its shape; None in `shape` allows any size.

    Raises:
        UserError: the values do not have this shape, there are no values, or a value is not finite.
    """
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


class WordRoles:
    """Roles of the W words of a sentence: pronoun, antecedent or other candidate.

    If a word has several roles, the pronoun takes precedence over the antecedent, and the antecedent over other
    candidates.

    Args:
        pronoun: index of the pronoun (or of another query word), or indices of all its words; None to mark none.
        antecedents, distractors: word indices of each correct candidate, and of each other candidate.
        attending: role name of the query word, one of `FRAMED_ROLES`.

    Raises:
        UserError: an index is outside the sentence, or a candidate has no words.
    """

    def __init__(
        self,
        count: int,
        pronoun: int | Sequence[int] | None,
        antecedents: CandidateWords,
        distractors: CandidateWords,
        attending: str = "pronoun",
    ) -> None:
        self.attending = attending
        self.antecedents = [checked_indices(entry, count, "antecedent") for entry in antecedents]
        self.distractors = [checked_indices(entry, count, "distractor") for entry in distractors]
        self._of: dict[int, str] = {}
        other = "other candidate" if self.antecedents else "candidate"
        for name, entries in ((other, self.distractors), ("antecedent", self.antecedents)):
            self._of.update((index, name) for entry in entries for index in entry)
        if pronoun is not None:
            self._of.update((index, attending) for index in checked_indices(pronoun, count, "pronoun"))

    def of(self, index: int) -> str | None:
        """Return the role of the word with this index; None if the word has no role."""
        return self._of.get(index)

    def colour(self, index: int, other: str = style.OTHER) -> str:
        """Return the colour of the role of a word; `other` if the word has no role."""
        return ROLE_COLOURS.get(self._of.get(index, ""), other)

    def present(self) -> list[str]:
        """Return the roles that occur, in the order of `ROLE_COLOURS`."""
        return [name for name in ROLE_COLOURS if name in self._of.values()]

    def runs(self) -> list[list[int]]:
        """Return the word indices of every candidate, divided into contiguous runs."""
        return [
            run.tolist()
            for entry in (*self.antecedents, *self.distractors)
            for run in np.split(entry, np.flatnonzero(np.diff(entry) != 1) + 1)
        ]


def draw_underline(canvas: Axes, left: float, right: float, height: float, name: str) -> None:
    """Draw a line in the colour of the role `name`, or a small frame if the role is one of `FRAMED_ROLES`."""
    # The antecedent's line is solid and other candidates' lines are dashed, so that roles differ in greyscale too.
    if name in FRAMED_ROLES:
        canvas.add_patch(role_frame(left, height - 0.045, right - left, 0.09, name, 1.2))
    else:
        canvas.plot(
            [left, right], [height, height], color=ROLE_COLOURS[name], linewidth=2.0,
            linestyle="-" if name == "antecedent" else (0, (1.2, 0.7)),
        )  # fmt: skip


def _role_names() -> dict[str, str]:
    return {
        "pronoun": _("pronoun"),
        "attending word": _("attending word"),
        "antecedent": _("antecedent"),
        "other candidate": _("other candidate"),
        "candidate": _("candidate"),
    }
