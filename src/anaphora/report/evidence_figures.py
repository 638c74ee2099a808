"""The figures of the evidence: one part of `metrics.json` in, a `matplotlib.figure.Figure` out.

Every function returns None where nothing of its part was measured, so that an older file still gives a report. Groups
are a language and a kind of cue; where a part does not tell kinds apart, a language alone. Shares and drops are in
[0, 1] in the data and in points of a hundred on the axes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from anaphora.errors import UserError
from anaphora.report import figures, style
from anaphora.report.figures import _Heading, _Sheet, _width
from anaphora.report.fonts import drawable
from anaphora.report.style import house_style
from anaphora.report.tables import LANGUAGES

KINDS = {"set": "set cues", "role": "role cues"}
MAPS = {
    "raw": "raw weight",
    "norm": "norm of weighted value",
    "rollout": "rollout",
    "flow": "flow",
    "value_zeroing": "value zeroing",
    "integrated_gradients": "integrated gradients",
}
EFFECTS = {"meaning": "meaning", "position": "position", "entity": "entity"}
SCOPES = {
    "head": "in the chosen head",
    "layer": "in its layer",
    "window": "in its layer ± 1",
    "everywhere": "in every head",
}
EDGES = {
    "gold": "antecedent",
    "value_zero": "antecedent, value only",
    "distractor": "other candidate",
    "cue": "cue",
    "matched_query": "matched: another word’s edge",
    "matched_heads": "matched: other heads",
    "matched_distance": "matched: same distance",
}
CONTROLS = {
    "uniform": "uniform attention",
    "frozen_query_key": "query and key frozen",
    "shuffled_labels": "shuffled labels",
    "no_positions": "no positions",
}
_EDGE_COLOURS = {"gold": style.ANTECEDENT, "value_zero": style.ANTECEDENT, "distractor": style.DISTRACTOR}


def groups(cells: Mapping[str, Mapping[str, Any] | None] | None) -> Iterator[tuple[str, str, str, Any]]:
    """(label, language, kind, cell) of every language and kind of cue; "all" where a language has no kinds."""
    for language, kinds in (cells or {}).items():
        name = LANGUAGES.get(language, language)
        present = [kind for kind in KINDS if (kinds or {}).get(kind)]
        for kind in present or ["all"]:
            if kinds and kinds.get(kind):
                yield (f"{name}, {KINDS[kind]}" if kind in KINDS else name), language, kind, kinds[kind]


def contoured_grid(
    scores: ArrayLike, chance: float, threshold: float | None, chosen: tuple[int, int], title: str
) -> Figure:
    """The layer x head grid of candidate accuracy, a broken line round the heads above what untrained models reach.

    Args:
        scores: (L, H), finite.
        chance: the score that is white.
        threshold: the 95th percentile over untrained models of the head that each chose; None draws no line.
        chosen: (layer, head), framed.
        title: stands above the grid.

    Raises:
        UserError: as `figures.head_grid`.
    """
    said = "" if threshold is None else f"\nbroken line: above 95 % of untrained models ({threshold:.2f})"
    figure = figures.head_grid(scores, chance, chosen, title + said)
    if threshold is not None:
        above = np.pad(np.asarray(scores, dtype=np.float64) > threshold, 1)
        axes = figure.axes[1]
        ways: dict[str, Any] = {
            "color": style.INK, "linewidth": 1.1, "linestyle": (0, (3.0, 1.6)), "clip_on": False, "zorder": 3,
        }  # fmt: skip
        for row, column in np.argwhere(above[:, 1:] != above[:, :-1]):
            axes.plot([column, column], [row - 1, row], **ways)
        for row, column in np.argwhere(above[1:, :] != above[:-1, :]):
            axes.plot([column - 1, column], [row, row], **ways)
    return figure


@house_style()
def effects(part: Mapping[str, Any] | None) -> Figure | None:
    """Meaning, position and entity of every group, with intervals: the headline figure."""
    named = list(groups(part))
    marks = {
        (label, EFFECTS[name]): [_mark(cell[name], "value", style.ANTECEDENT if name == "meaning" else style.INK)]
        for label, _, _, cell in named
        for name in EFFECTS
        if _has(cell.get(name), "value")
    }
    if not marks:
        return None
    return _panels(
        "What moves the pronoun’s attention between two candidates?",
        [(label, False) for label, *_ in named],
        list(EFFECTS.values()),
        marks,
        "difference of attention weight",
        _limits(marks, -0.25, 1.0),
        references=(0.0,),
    )


@house_style()
def knock_out(part: Mapping[str, Any] | None) -> Figure | None:
    """Points of task accuracy lost when an edge is cut, for every group, scope and edge."""
    rows: list[tuple[str, bool]] = []
    marks: _Marks = {}
    for label, _, _, cell in groups((part or {}).get("languages")):
        found = {scope: edges for scope, edges in (cell.get("knock_out") or {}).items() if scope in SCOPES and edges}
        edges = [edge for edge in EDGES if any(_has(cuts.get(edge), "drop") for cuts in found.values())]
        if not edges:
            continue
        rows.append((label, True))
        for edge in edges:
            name = f"{label}/{EDGES[edge]}"
            rows.append((name, False))
            for scope, cuts in found.items():
                if _has(cuts.get(edge), "drop"):
                    colour = _EDGE_COLOURS.get(edge, style.OTHER)
                    form = "hollow bar" if edge == "value_zero" else "bar"
                    marks[name, SCOPES[scope]] = [_mark(cuts[edge], "drop", colour, form)]
    if not marks:
        return None
    scopes = [name for name in SCOPES.values() if any(panel == name for _, panel in marks)]
    return _panels(
        "How much worse does the model answer when one edge of the pronoun is cut?",
        rows,
        scopes,
        marks,
        "task accuracy lost (points)",
        _limits(marks, -0.05, 0.3),
        references=(0.0,),
        points=True,
    )


@house_style()
def ablation(part: Mapping[str, Any] | None) -> Figure | None:
    """Accuracy lost as more and more heads are silenced, the best first, against as many random heads."""
    panels = []
    for label, _, _, cell in groups((part or {}).get("languages")):
        steps = [one for one in (cell.get("heads") or {}).get("cumulative") or [] if _has(one, "drop")]
        if steps:
            lines = [_Line([one["k"] for one in steps], [one["drop"] for one in steps], style.ANTECEDENT)]
            drawn = [(one["k"], one["random"]) for one in steps if _has(one.get("random"), "median")]
            if drawn:
                lines.append(
                    _Line(
                        [k for k, _ in drawn],
                        [random["median"] for _, random in drawn],
                        style.MUTED,
                        "broken",
                        [random.get("lowest", random["median"]) for _, random in drawn],
                        [random.get("highest", random["median"]) for _, random in drawn],
                    )
                )
            panels.append((label, lines))
    if not panels:
        return None
    return _curves(
        "How much worse does the model answer when heads are silenced?",
        panels,
        [("antecedent heads, best first", style.ANTECEDENT, "line"),
         ("random heads of the same layers: median, lowest to highest", style.MUTED, "broken")],
        "heads silenced",
        "task accuracy lost (points)",
    )  # fmt: skip


@house_style()
def patch(part: Mapping[str, Any] | None) -> Figure | None:
    """The share of right twins whose answer flips when the pronoun's row comes from the twin, by heads patched."""
    panels = []
    with_layer = False
    for label, _, _, cell in groups((part or {}).get("languages")):
        found = cell.get("patch") or {}
        lines = []
        steps = [one for one in found.get("cumulative") or [] if _has(one, "flipped")]
        if steps:
            lines.append(_Line([one["k"] for one in steps], [one["flipped"] for one in steps], style.ANTECEDENT))
        if _has(found.get("head"), "flipped"):
            low, high = found["head"].get("interval") or (None, None)
            lines.append(
                _Line([1], [found["head"]["flipped"]], style.ANTECEDENT, "dot", [low], [high])
            )  # the chosen head alone
        if _has(found.get("layer"), "flipped"):
            with_layer = True
            lines.append(_Line([], [found["layer"]["flipped"]], style.INK, "level"))
        if lines:
            panels.append((label, lines))
    if not panels:
        return None
    key = [("heads patched, best first (point: the chosen head)", style.ANTECEDENT, "line")]
    key += [("all heads of its layer", style.INK, "broken")] if with_layer else []
    key += [("half: what the verdict asks of the layer", style.MUTED, "dotted")]
    title = "How often does the answer flip when only the pattern is taken from the twin?"
    return _curves(title, panels, key, "heads patched", "answers flipped (%)", top=1.0, reference=0.5)


@house_style()
def dose_response(part: Mapping[str, Any] | None) -> Figure | None:
    """How well each kind of map foretells what cutting an edge costs: Spearman's rho for every group."""
    marks: _Marks = {}
    panels = []
    for label, _, _, cell in groups((part or {}).get("languages")):
        found = {name: one for name, one in (cell.get("dose_response") or {}).items() if _has(one, "rho")}
        if found:
            panels.append(label)
        for name, one in found.items():
            marks[MAPS.get(name, name), label] = [_mark(one, "rho", style.ANTECEDENT)]
    if not marks:
        return None
    rows = [*MAPS.values(), *(row for row, _ in marks if row not in MAPS.values())]
    return _panels(
        "Does a larger score mean a larger loss when the edge is cut?",
        [(row, False) for row in dict.fromkeys(rows) if any(row == name for name, _ in marks)],
        panels,
        marks,
        "Spearman’s rho of score and loss of logit",
        (min(-0.25, _limits(marks, 0, 0)[0]), 1.0),
        references=(0.0,),
    )


@house_style()
def maps(part: Mapping[str, Any] | None) -> Figure | None:
    """Candidate accuracy and antecedent mass under every kind of map, each at the unit chosen in development."""
    marks: _Marks = {}
    panels: dict[str, None] = {}
    for name, one in (part or {}).items():
        cells = {
            language: kinds
            for language, kinds in (one or {}).items()
            if isinstance(kinds, Mapping) and language != "head"
        }
        for label, _, _, cell in groups(cells):
            panels[label] = None
            row = MAPS.get(name, name)
            drawn = []
            if cell.get("antecedent_mass") is not None:
                drawn.append(_Mark(cell["antecedent_mass"], None, None, style.INK, "o"))
            if cell.get("candidate_accuracy") is not None:
                drawn.append(_mark(cell, "candidate_accuracy", style.ANTECEDENT, "D"))
            if drawn:
                marks[row, label] = drawn
    if not marks:
        return None
    rows = list(dict.fromkeys(row for row, _ in marks))
    return _panels(
        "The same question asked of other kinds of map",
        [(row, False) for row in rows],
        list(panels),
        marks,
        "share (%)",
        (0.0, 1.0),
        points=True,
        key=[("candidate accuracy", style.ANTECEDENT, "D"), ("mass on the antecedent", style.INK, "o")],
    )


@house_style()
def controls(part: Mapping[str, Any] | None, metrics: Mapping[str, Any]) -> Figure | None:
    """Task and candidate accuracy of the run and of the trained controls, with chance, for every group."""
    marks: _Marks = {}
    panels: dict[str, None] = {}
    run = {"this run": {"languages": metrics.get("languages")}} if any((part or {}).values()) else {}
    for name, one in {**run, **{CONTROLS.get(name, name): one for name, one in (part or {}).items()}}.items():
        for label, _, _, cell in groups((one or {}).get("languages")):
            panels[label] = None
            found = _accuracies(cell)
            if found:
                marks[name, label] = found
    if not marks:
        return None
    rows = list(dict.fromkeys(row for row, _ in marks))
    return _panels(
        "The run beside models of the same data, steps and stopping that cannot or need not attend",
        [(row, False) for row in rows],
        list(panels),
        marks,
        "accuracy (%)",
        (0.0, 1.0),
        points=True,
        key=_ACCURACY_KEY,
    )


@house_style()
def strata(part: Mapping[str, Any] | None) -> Figure | None:
    """Task and candidate accuracy of the strata that stand apart from the main items."""
    marks: _Marks = {}
    for language, cells in (part or {}).items():
        for name, cell in (cells or {}).items():
            found = _accuracies(cell or {})
            if found:
                marks[name.replace("_", " "), LANGUAGES.get(language, language)] = found
    if not marks:
        return None
    return _panels(
        "Items that stand apart from the headline",
        [(row, False) for row in dict.fromkeys(row for row, _ in marks)],
        list(dict.fromkeys(panel for _, panel in marks)),
        marks,
        "accuracy (%)",
        (0.0, 1.0),
        points=True,
        key=_ACCURACY_KEY,
    )


@house_style()
def factors(part: Mapping[str, Any] | None, leave_out: Sequence[str] = ("template",)) -> Figure | None:
    """Task and candidate accuracy by each value of each factor; factors of many values are left to a table."""
    rows: list[tuple[str, bool]] = []
    marks: _Marks = {}
    for factor, languages in (part or {}).items():
        if factor in leave_out:
            continue
        named: dict[str, None] = {}
        for language, cells in (languages or {}).items():
            for cell in cells or []:
                found = _accuracies(cell)
                if found:
                    row = f"{factor}/{str(cell['value']).replace('_', ' ')}"
                    named[row] = None
                    marks[row, LANGUAGES.get(language, language)] = found
        if named:
            rows += [(factor, True), *((row, False) for row in named)]
    if not marks:
        return None
    return _panels(
        "Where it works and where it does not",
        rows,
        list(dict.fromkeys(panel for _, panel in marks)),
        marks,
        "accuracy (%)",
        (0.0, 1.0),
        points=True,
        key=_ACCURACY_KEY,
    )


@dataclass(frozen=True)
class _Mark:
    """A number with its interval, drawn as a "bar", a "hollow bar", a "tick" or a matplotlib marker."""

    value: float
    low: float | None
    high: float | None
    colour: str
    form: str = "o"


@dataclass(frozen=True)
class _Line:
    """A curve over a count of heads: a "line" with points, a "broken" line with a band, a "dot", or a "level"."""

    places: Sequence[float]
    values: Sequence[float]
    colour: str
    form: str = "line"
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()


_Marks = dict[tuple[str, str], list[_Mark]]
_Key = Sequence[tuple[str, str, str]]
_ACCURACY_KEY: _Key = (
    ("task accuracy of the model", style.INK, "o"),
    ("candidate accuracy of the head", style.ANTECEDENT, "D"),
    ("chance", style.MUTED, "tick"),
)
_LINE = 0.185
"""Height in inches of one row of marks."""


def _has(cell: Mapping[str, Any] | None, name: str) -> bool:
    return bool(cell) and cell is not None and cell.get(name) is not None


def _mark(cell: Mapping[str, Any], name: str, colour: str, form: str = "o") -> _Mark:
    bounds = cell.get("interval")
    if bounds is None and isinstance(cell.get("intervals"), Mapping):
        bounds = cell["intervals"].get(name)
    low, high = bounds or (None, None)
    return _Mark(float(cell[name]), low, high, colour, form)


def _accuracies(cell: Mapping[str, Any]) -> list[_Mark]:
    found = []
    if cell.get("chance") is not None:
        found.append(_Mark(cell["chance"], None, None, style.MUTED, "tick"))
    if cell.get("task_accuracy") is not None:
        found.append(_Mark(cell["task_accuracy"], None, None, style.INK, "o"))
    if cell.get("candidate_accuracy") is not None:
        found.append(_mark(cell, "candidate_accuracy", style.ANTECEDENT, "D"))
    return found if len(found) > 1 or (found and found[0].form != "tick") else []


def _limits(marks: _Marks, low: float, high: float) -> tuple[float, float]:
    """The axis that holds every mark and interval, and at least `low` to `high`."""
    ends = [
        end for drawn in marks.values() for one in drawn for end in (one.value, one.low, one.high) if end is not None
    ]
    return min([low, *ends]), max([high, *ends])


def _panels(
    title: str,
    rows: Sequence[tuple[str, bool]],
    panels: Sequence[str],
    marks: _Marks,
    label: str,
    limits: tuple[float, float],
    references: Sequence[float] = (),
    points: bool = False,
    key: _Key = (),
) -> Figure:
    """Columns of axes that share their rows. A row is (name, whether it is a heading); of "a/b" only b is printed."""
    if not rows or not panels:
        raise UserError("a figure of panels needs at least one row and one panel")
    shown = [drawable(name if heading else name.rpartition("/")[2]) for name, heading in rows]
    left = 0.15 + max(_width(text, style.TEXT, bold=head) for text, (_, head) in zip(shown, rows, strict=True)) + 0.12
    gap = 0.24
    widest = max(_width(drawable(panel), style.TEXT, bold=True) for panel in panels)
    each = max((style.DOUBLE_COLUMN - left - 0.2 - gap * (len(panels) - 1)) / len(panels), widest, 1.0)
    each = min(each, 3.2)
    heading = _Heading(title, None)
    head = heading.height + (0.24 if key else 0.0) + 0.2
    line = _LINE * (1.4 if max(map(len, marks.values()), default=0) > 3 else 1.0)
    tall = line * len(rows) + 0.08
    width = max(left + each * len(panels) + gap * (len(panels) - 1) + 0.2, heading.width + 0.3)
    sheet = _Sheet(width, head + tall + 0.5)
    sheet.heading(heading)
    if key:
        _draw_key(sheet, sheet.height - heading.height - 0.08, key)

    base = sheet.height - head - tall
    for number, text in enumerate(shown):
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
            axes.xaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f}")
        sheet.canvas.text(left + column * (each + gap), base + tall + 0.06, drawable(panel), fontsize=style.TEXT,
                          fontweight="bold")  # fmt: skip
        for reference in references:
            axes.axvline(reference, color=style.INK, linewidth=0.8, zorder=1.5)
        for number, (name, _) in enumerate(rows):
            drawn = marks.get((name, panel), [])
            measured = [one for one in drawn if one.form != "tick"]
            apart = min(0.38, 0.76 / max(1, len(measured) - 1))
            for one in drawn:
                # The measures of one row stand a little apart, so that none hides another or leaves the row.
                aside = 0.0 if one.form == "tick" else apart * (measured.index(one) - (len(measured) - 1) / 2)
                _draw_mark(axes, one, number + 0.5 + aside)
    across = each * len(panels) + gap * (len(panels) - 1)
    sheet.canvas.text(left + across / 2, 0.1, drawable(label), ha="center", fontsize=style.TEXT, color=style.MUTED)
    return sheet.figure


def _draw_mark(axes: Axes, mark: _Mark, height: float) -> None:
    if mark.form == "tick":
        axes.plot([mark.value] * 2, [height - 0.34, height + 0.34], color=mark.colour, linewidth=1.4)
        return
    if mark.form.endswith("bar"):
        hollow = mark.form == "hollow bar"
        axes.barh(
            [height], [mark.value], height=0.62, color=style.PAPER if hollow else mark.colour, edgecolor=mark.colour,
            linewidth=0.9 if hollow else 0.0, zorder=2,
        )  # fmt: skip
        if mark.low is not None and mark.high is not None:
            axes.plot([mark.low, mark.high], [height, height], color=style.INK, linewidth=1.0, zorder=3)
        return
    if mark.low is not None and mark.high is not None:
        axes.plot([mark.low, mark.high], [height, height], color=mark.colour, linewidth=1.4, clip_on=False, zorder=2)
    axes.plot(
        [mark.value], [height], marker=mark.form, markersize=4.2, color=mark.colour, markeredgecolor=style.PAPER,
        markeredgewidth=0.6, clip_on=False, zorder=3,
    )  # fmt: skip


def _curves(
    title: str,
    panels: Sequence[tuple[str, Sequence[_Line]]],
    key: _Key,
    across_label: str,
    label: str,
    top: float = 0.3,
    reference: float | None = None,
) -> Figure:
    """Small axes side by side on one scale of points, at most four in a line."""
    columns = min(len(panels), 4)
    lines = -(-len(panels) // columns)
    left, gap, tall, foot = 0.6, 0.28, 1.45, 0.52
    widest = max(_width(drawable(name), style.TEXT, bold=True) for name, _ in panels)
    each = min(max((style.DOUBLE_COLUMN - left - 0.2 - gap * (columns - 1)) / columns, widest), 3.0)
    heading = _Heading(title, None)
    keys = max(sum(_width(drawable(name), style.SMALL) + 0.46 for name, *_ in key), 0.0)
    head = heading.height + 0.24
    width = max(left + each * columns + gap * (columns - 1) + 0.2, heading.width + 0.3, keys + 0.3)
    sheet = _Sheet(width, head + lines * (tall + 0.22 + foot))
    sheet.heading(heading)
    _draw_key(sheet, sheet.height - heading.height - 0.08, key)
    ends = [end for _, drawn in panels for line in drawn for end in (*line.values, *line.low, *line.high)]
    low, high = min(0.0, *(end for end in ends if end is not None)), max(top, *(end for end in ends if end is not None))
    most = max((place for _, drawn in panels for line in drawn for place in line.places), default=1)
    for number, (name, drawn) in enumerate(panels):
        line_number, column = divmod(number, columns)
        base = sheet.height - head - line_number * (tall + 0.22 + foot) - 0.2 - tall
        start = left + column * (each + gap)
        axes = sheet.axes(start, base, each, tall)
        sheet.canvas.text(start, base + tall + 0.07, drawable(name), fontsize=style.TEXT, fontweight="bold")
        room = 0.04 * (high - low)
        axes.set(xlim=(0.6, most + 0.4), ylim=(low - room, high + room), xlabel=across_label)
        axes.grid(axis="y")
        axes.xaxis.set_major_locator(MaxNLocator(nbins=max(3, int(each / 0.22)), integer=True))
        axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f}")
        if column:
            axes.tick_params(axis="y", labelleft=False, length=0)
        else:
            axes.set_ylabel(label)
        if reference is not None:
            axes.axhline(reference, color=style.MUTED, linewidth=1.0, linestyle=(0, (1, 2)))
        for line in drawn:
            _draw_line(axes, line)
    return sheet.figure


def _draw_line(axes: Axes, line: _Line) -> None:
    if line.form == "level":
        axes.axhline(line.values[0], color=line.colour, linewidth=1.1, linestyle=(0, (5, 2)))
        return
    if line.form == "broken":
        low, high = ([float(end) for end in ends if end is not None] for ends in (line.low, line.high))
        if len(line.places) > 1:
            axes.fill_between(line.places, low, high, color=line.colour, alpha=0.18, linewidth=0)
        else:
            axes.plot([line.places[0]] * 2, [low[0], high[0]], color=line.colour, linewidth=4, alpha=0.18)
        axes.plot(line.places, line.values, color=line.colour, linewidth=1.1, linestyle=(0, (5, 2)),
                  marker="" if len(line.places) > 1 else "o", markersize=3.5)  # fmt: skip
        return
    if line.form == "dot" and line.low[0] is not None and line.high[0] is not None:
        axes.plot([line.places[0]] * 2, [line.low[0], line.high[0]], color=line.colour, linewidth=1.4)
    size = 5.5 if line.form == "dot" else 3.0
    axes.plot(line.places, line.values, color=line.colour, linewidth=1.6, marker="o", markersize=size,
              markeredgecolor=style.PAPER, markeredgewidth=0.5)  # fmt: skip


def _draw_key(sheet: _Sheet, middle: float, key: _Key) -> None:
    left = 0.15
    for name, colour, form in key:
        if form in ("line", "broken", "dotted"):
            patterns: dict[str, Any] = {"line": "-", "broken": (0, (5, 2)), "dotted": (0, (1, 2))}
            sheet.canvas.plot([left, left + 0.2], [middle] * 2, color=colour, linewidth=1.4, linestyle=patterns[form])
            left += 0.12
        elif form == "tick":
            sheet.canvas.plot([left + 0.05] * 2, [middle - 0.055, middle + 0.055], color=colour, linewidth=1.4)
        else:
            sheet.canvas.plot([left + 0.05], [middle], marker=form, markersize=4.5, color=colour, linestyle="none")
        left = sheet.word(left + 0.15, middle, name, style.INK) + 0.19
