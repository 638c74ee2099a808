"""Figures of the causal tests: edge knockout, head ablation, pattern patching, removal of weight, and dose-response.

An edge is the attention from a query token, usually the pronoun, to another token. A group of items has one language
and one cue category ("set" or "role"). Each function returns None if nothing was measured.
"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from anaphora.analysis.results.causal import CausalCell
from anaphora.analysis.results.scores import Groups
from anaphora.analysis.results.typed_json import Interval
from anaphora.base.translation import _
from anaphora.report.figures import style
from anaphora.report.figures.panels import Curve, Mark, Marks, axis_limits, curve_figure, panel_figure, row_below
from anaphora.report.figures.style import figure_style
from anaphora.report.wording import edge_names, kind_groups, label, map_names, scope_names

EDGES = (
    *("gold", "value_zeroing", "value_zeroing_others", "distractor", "cue"),
    *("matched_query", "matched_heads", "matched_distance"),
)
"""Keys of the edges that are knocked out or value-zeroed, in the order of the figure and the table."""

_EDGE_COLOURS = {"gold": style.ANTECEDENT, "value_zeroing": style.ANTECEDENT, "distractor": style.DISTRACTOR}


@figure_style()
def knockout_figure(cells: Groups[CausalCell]) -> Figure | None:
    """Draw the drop in task accuracy if an edge is knocked out or value-zeroed.

    There is a bar for each group of items, edge (such as pronoun to antecedent) and set of heads (such as the chosen
    head or all heads of its layer).
    """
    rows: list[tuple[str, bool]] = []
    marks: Marks = {}
    for group in kind_groups(cells):
        losses = {
            (edge, scope): loss
            for scope, knockout in group.cell.knockout.items()
            for edge, loss in knockout.edges.items()
            if loss.drop is not None
        }
        edges = [edge for edge in EDGES if any(edge == known for known, _ in losses)]
        if edges:
            rows.append((group.label, True))
        for edge in edges:
            name = row_below(group.label, label(edge_names(), edge))
            rows.append((name, False))
            for scope, title in scope_names().items():
                loss = losses.get((edge, scope))
                if loss is not None and loss.drop is not None:
                    colour = _EDGE_COLOURS.get(edge, style.OTHER)
                    form = "hollow bar" if edge.startswith("value_zeroing") else "bar"
                    marks[name, title] = [Mark(loss.drop, loss.interval, colour, form)]
                elif scope in group.cell.knockout:
                    marks[name, title] = [Mark(0.0, None, style.MUTED, "not measured")]
    if not marks:
        return None
    unmeasured = any(mark.form == "not measured" for row_marks in marks.values() for mark in row_marks)
    return panel_figure(
        _("How much task accuracy is lost when an edge is knocked out, or its value is zeroed?"),
        rows,
        [title for title in scope_names().values() if any(panel == title for _, panel in marks)],
        marks,
        _("task accuracy lost (points)"),
        axis_limits(marks, -0.05, 0.3),
        references=(0.0,),
        points=True,
        key=[(_("not measured"), style.MUTED, "not measured")] if unmeasured else (),
    )


@figure_style()
def ablation_figure(cells: Groups[CausalCell]) -> Figure | None:
    """Draw the drop in task accuracy over the number of ablated heads.

    In one curve, heads are ablated in order of candidate accuracy, the best first. In the other, random heads of the
    same layers are ablated.
    """
    panels = []
    compared = False
    for group in kind_groups(cells):
        steps = group.cell.head_ablation.cumulative
        best = [(step.k, step.drop) for step in steps if step.drop is not None]
        if best:
            lines = [Curve([k for k, _ in best], [drop for _, drop in best], style.ANTECEDENT)]
            spreads = [(step.k, step.random) for step in steps if step.random]
            if spreads:
                compared = True
                counts, medians = [k for k, _ in spreads], [spread.median for _, spread in spreads]
                ends = [spread.lowest for _, spread in spreads], [spread.highest for _, spread in spreads]
                lines.append(Curve(counts, medians, style.MUTED, "broken", *ends))
            panels.append((group.label, lines))
    if not panels:
        return None
    key = [(_("antecedent heads, best first"), style.ANTECEDENT, "line")]
    if compared:
        key.append((_("random heads of the same layers: median, lowest to highest"), style.MUTED, "broken"))
    return curve_figure(
        _("How much worse does the model answer when heads are ablated?"),
        panels,
        key,
        _("heads ablated"),
        _("task accuracy lost (points)"),
    )


@figure_style()
def patching_figure(cells: Groups[CausalCell]) -> Figure | None:
    """Draw the share of correct answers that flip when heads are patched.

    A patched head gets the pronoun's attention row from the other sentence of the minimal pair. An answer flips if it
    becomes the answer to that sentence. The curve shows the share over the number of patched heads; a horizontal line
    shows the share if all heads of the chosen head's layer are patched.
    """
    panels = []
    with_layer = False
    for group in kind_groups(cells):
        patching = group.cell.pattern_patching
        lines = []
        steps = [(step.k, step.flipped) for step in patching.cumulative if step.flipped is not None]
        if steps:
            lines.append(Curve([k for k, _ in steps], [flipped for _, flipped in steps], style.ANTECEDENT))
        head, layer = patching.used.head, patching.used.layer
        if head.flipped is not None:
            low, high = head.interval or (None, None)
            lines.append(Curve([1], [head.flipped], style.ANTECEDENT, "dot", [low], [high]))
        if layer.flipped is not None:
            with_layer = True
            lines.append(Curve([], [layer.flipped], style.INK, "level"))
        if lines:
            panels.append((group.label, lines))
    if not panels:
        return None
    key = [(_("heads patched, best first (point: the chosen head)"), style.ANTECEDENT, "line")]
    key += [(_("all heads of its layer"), style.INK, "broken")] if with_layer else []
    key += [(_("half: what the verdict requires of the layer"), style.MUTED, "dotted")]
    title = _("How often does the answer flip when only the pattern is taken from the minimal pair’s other sentence?")
    across, axis = _("heads patched"), _("answers flipped (%)")
    return curve_figure(title, panels, key, across, axis, top=1.0, reference=0.5)


@figure_style()
def equal_doses_figure(cells: Groups[CausalCell]) -> Figure | None:
    """Draw the drop in task accuracy over the weight removed from edges of the chosen head.

    The weight is removed from the pronoun's edge to the antecedent, or from all its other edges together.
    """
    panels = []
    for group in kind_groups(cells):
        doses = group.cell.head_level.doses if group.cell.head_level else ()
        antecedent = [(dose.mass, dose.antecedent_points, dose.antecedent_interval) for dose in doses]
        others = [(dose.mass, dose.other_edges_points, dose.other_edges_interval) for dose in doses]
        sides = ((others, style.MUTED, "broken"), (antecedent, style.ANTECEDENT, "line"))  # the last is on top
        lines = [curve for losses, colour, form in sides if (curve := _dose_curve(losses, colour, form))]
        if lines:
            panels.append((group.label, lines))
    if not panels:
        return None
    return curve_figure(
        _("Does the same weight matter more on the antecedent’s edge than on all others of the head?"),
        panels,
        [
            (_("taken from the antecedent’s edge"), style.ANTECEDENT, "line"),
            (_("taken from all its other edges"), style.MUTED, "broken"),
        ],
        _("weight removed (%)"),
        _("task accuracy lost (points)"),
    )


def _dose_curve(losses: Sequence[tuple[float, float | None, Interval | None]], colour: str, form: str) -> Curve | None:
    """Return a curve of the drop in task accuracy over the removed weight; None if no drop was measured.

    Each element of `losses` is (removed weight in [0, 1], drop in percentage points, interval of the drop).
    """
    known = [(100 * mass, points / 100, ends) for mass, points, ends in losses if points is not None]
    if not known:
        return None
    masses, values, intervals = zip(*known, strict=True)
    lows, highs = ([ends and ends[side] / 100 for ends in intervals] for side in (0, 1))
    return Curve(masses, values, colour, form, lows, highs)


@figure_style()
def dose_response_figure(cells: Groups[CausalCell]) -> Figure | None:
    """Draw the correlation between an edge's score in an attention map and the effect of knocking out this edge.

    An edge leads from a pronoun to a candidate. The effect is the decrease of the logit of the model's answer if the
    edge is knocked out in every head. The correlation is Spearman's rho over all edges, for each group of items and
    type of attention map, such as raw weights or rollout.
    """
    marks: Marks = {}
    for group in kind_groups(cells):
        for name, correlation in group.cell.dose_response.items():
            if correlation.rho is not None:
                mark = Mark(correlation.rho, correlation.interval, style.ANTECEDENT)
                marks[label(map_names(), name), group.label] = [mark]
    if not marks:
        return None
    known = list(map_names().values())
    rows = [*known, *(row for row, _ in marks if row not in known)]
    return panel_figure(
        _("Does a larger score mean a larger loss when the edge is knocked out?"),
        [(row, False) for row in dict.fromkeys(rows) if any(row == name for name, _ in marks)],
        (),
        marks,
        _("Spearman’s rho of score and loss of logit"),
        (min(-0.25, axis_limits(marks, 0, 0)[0]), 1.0),
        references=(0.0,),
    )
