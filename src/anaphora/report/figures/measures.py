"""Figures of effects on attention, other attention maps, trained controls, and accuracy by attributes of the items.

A group of items has one language and one cue category ("set" or "role"). A trained control is a model trained like the
run but with one change that should keep heads from picking antecedents. Each function returns None if nothing was
measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from anaphora.analysis.evidence.evidence import Control, Evidence
from anaphora.analysis.results.scores import AccuracyCell, Cell, Groups
from anaphora.analysis.scores.measures.effects import Effects
from anaphora.analysis.scores.measures.factors import FactorValue, value_order
from anaphora.analysis.scores.measures.maps import MapScores
from anaphora.base.translation import _
from anaphora.report.figures import style
from anaphora.report.figures.panels import Mark, Marks, axis_limits, marks_of, measured_marks, panel_figure, row_below
from anaphora.report.figures.style import figure_style
from anaphora.report.wording import (
    control_names,
    effect_names,
    factor_names,
    kind_groups,
    label,
    language_name,
    map_names,
    value_label,
)


@figure_style()
def effects_figure(part: Groups[Effects] | None) -> Figure | None:
    """Draw the effects of meaning, position and entity on the pronoun's attention, with intervals.

    Each effect is a mean difference between the weights on two candidates A and B, over the sentences of a quad (each
    of two cues with both candidate orders). The differences are antecedent minus other candidate (meaning) and first
    minus second candidate in the sentence (position). The effect of entity is the absolute mean of A minus B.
    """
    groups = list(kind_groups(part))
    marks: Marks = {}
    for group in groups:
        for name, title in effect_names().items():
            effect = getattr(group.cell, name)
            if effect.value is not None:
                colour = style.ANTECEDENT if name == "meaning" else style.INK
                marks[group.label, title] = [Mark(effect.value, effect.interval, colour)]
    if not marks:
        return None
    return panel_figure(
        _("What moves the pronoun’s attention between two candidates?"),
        [(group.label, False) for group in groups],
        list(effect_names().values()),
        marks,
        _("difference of attention weight"),
        axis_limits(marks, -0.25, 1.0),
        references=(0.0,),
    )


@figure_style()
def maps_figure(part: Mapping[str, MapScores] | None) -> Figure | None:
    """Draw candidate accuracy and weight on the antecedent for each type of attention map, such as rollout.

    A head or layer is chosen separately for each type, unless there is one map for the whole model.
    """
    marks: Marks = {}
    panels: dict[str, None] = {}
    for name, scores in (part or {}).items():
        for group in kind_groups(scores.languages):
            panels[group.label] = None
            row_marks = marks_of(
                (group.cell.antecedent_mass, None, style.INK, "o"),
                (group.cell.candidate_accuracy, group.cell.interval, style.ANTECEDENT, "D"),
            )
            if row_marks:
                marks[label(map_names(), name), group.label] = row_marks
    if not marks:
        return None
    return panel_figure(
        _("The same question for other kinds of map"),
        (),
        list(panels),
        marks,
        _("share (%)"),
        (0.0, 1.0),
        points=True,
        key=[(_("candidate accuracy"), style.ANTECEDENT, "D"), (_("weight on the antecedent"), style.INK, "o")],
    )


@figure_style()
def controls_figure(evidence: Evidence) -> Figure | None:
    """Draw task accuracy, candidate accuracy and chance for a run and its controls, by language and cue category."""
    trained: dict[str, Control] = {name: each for name, each in (evidence.controls or {}).items() if each}
    if not trained:
        return None
    by_row: dict[str, Mapping[str, Mapping[str, Cell | AccuracyCell]]] = {_("this run"): evidence.scores}
    by_row |= {label(control_names(), name): control.languages for name, control in trained.items()}
    marks: Marks = {}
    panels: dict[str, None] = {}
    for row, languages in by_row.items():
        for group in kind_groups({language: dict(kinds) for language, kinds in languages.items()}):
            panels[group.label] = None
            if cell_marks := _accuracy_marks(group.cell):
                marks[row, group.label] = cell_marks
    title = _("The run and its controls: the same data, steps and stopping rule, with one change each")
    return _accuracy_figure(title, marks, panels=list(panels))


@figure_style()
def strata_figure(part: Groups[Cell]) -> Figure | None:
    """Draw task accuracy and candidate accuracy for each stratum that the main results leave out (`Example.is_main`).

    A stratum is a group of items built in the same way.
    """
    marks: Marks = {}
    for language, cells in part.items():
        for name, cell in cells.items():
            if cell_marks := _accuracy_marks(cell):
                marks[value_label(name), language_name(language)] = cell_marks
    return _accuracy_figure(_("Items that do not count in the headline"), marks)


@figure_style()
def factors_figure(part: Mapping[str, Mapping[str, Sequence[FactorValue]]] | None) -> Figure | None:
    """Draw task accuracy and candidate accuracy for each value of each factor, except "template".

    A factor is an attribute of an item, such as the distance to the antecedent; "template" has too many values.
    """
    rows: list[tuple[str, bool]] = []
    marks: Marks = {}
    for factor, languages in (part or {}).items():
        if factor == "template":
            continue
        values: set[str] = set()
        for language, cells in languages.items():
            for cell in cells:
                if cell_marks := _accuracy_marks(cell):
                    values.add(cell.value)
                    marks[row_below(factor, value_label(cell.value)), language_name(language)] = cell_marks
        if values:
            ordered = sorted(values, key=value_order)  # over all languages, since a language may lack values
            rows.append((label(factor_names(), factor), True))
            rows += [(row_below(factor, value_label(value)), False) for value in ordered]
    return _accuracy_figure(_("Where it works and where it does not"), marks, rows)


def _accuracy_marks(cell: Cell | AccuracyCell) -> list[Mark]:
    """Return marks for chance, task accuracy and candidate accuracy; none if neither accuracy was measured."""
    ends = cell.intervals.candidate_accuracy if isinstance(cell, Cell) else cell.interval
    marks = marks_of(
        (cell.chance, None, style.MUTED, "tick"),
        (cell.task_accuracy, None, style.INK, "o"),
        (cell.candidate_accuracy, ends, style.ANTECEDENT, "D"),
    )
    return marks if measured_marks(marks) else []


def _accuracy_figure(
    title: str, marks: Marks, rows: Sequence[tuple[str, bool]] = (), panels: Sequence[str] = ()
) -> Figure | None:
    """Draw accuracies and chance on an axis from 0 to 100 %; return None if there are no marks."""
    if not marks:
        return None
    key = (
        (_("task accuracy of the model"), style.INK, "o"),
        (_("candidate accuracy of the head"), style.ANTECEDENT, "D"),
        (_("chance"), style.MUTED, "tick"),
    )
    return panel_figure(title, rows, panels, marks, _("accuracy (%)"), (0.0, 1.0), points=True, key=key)
