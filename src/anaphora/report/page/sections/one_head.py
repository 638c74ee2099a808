"""The section on what one head carries, and on other words of the sentence that attend to the antecedent too."""

from __future__ import annotations

from anaphora.base.locale.translation import _
from anaphora.report.figures import causal
from anaphora.report.page.elements import FigureElement, PageElement, PlacedSections, ReportRun, Section, TableElement
from anaphora.report.tables import (
    dose_columns,
    dose_rows,
    freed_columns,
    freed_rows,
    one_head_columns,
    one_head_rows,
    specificity_columns,
    specificity_rows,
)
from anaphora.report.wording import clauses

_DOSES = 2
"""The place of the table of equal doses, which has a figure."""


def one_head_section(run: ReportRun) -> Section:
    """What it carries, what equal doses cost and where cut weight goes; each where it was measured."""
    evidence = run.evidence
    tables = (
        (_("The chosen head alone"), one_head_columns(), list(one_head_rows(evidence))),
        (
            _("Weight on the antecedent from the pronoun, and from the other word that gives it most"),
            specificity_columns(),
            list(specificity_rows(evidence)),
        ),
        (
            _("Points of task accuracy lost when the same weight is taken away on either side"),
            dose_columns(),
            list(dose_rows(evidence)),
        ),
        (
            _("Where the weight goes when the antecedent’s edge is forbidden, %"),
            freed_columns(evidence),
            list(freed_rows(evidence)),
        ),
    )
    elements: list[PageElement] = []
    for number, (title, columns, rows) in enumerate(tables):
        figure = causal.equal_doses_figure(evidence.causal_cells) if number == _DOSES else None
        if figure:
            summary = [
                _(
                    "{group}, {mass} % of the weight removed: {antecedent} points lost on the antecedent’s edge, "
                    "{others} on all others"
                ).format(group=group, mass=mass, antecedent=antecedent, others=others)
                for group, mass, _items, antecedent, others in rows
            ]
            elements.append(FigureElement(name="equal_doses", figure=figure, alt=clauses(summary)))
        if rows:
            elements.append(TableElement(title=title, columns=columns, rows=rows, folded=figure is not None))
    return Section(
        name="one-head",
        title=_("Does one head carry it, and for the pronoun alone?"),
        explanation=_(
            "The chosen head alone. First: what the model loses when the head takes nothing along its edge from the "
            "pronoun to the antecedent, what it loses when the head takes nothing along any other edge from the "
            "pronoun, how many right answers flip when its row comes from the other sentence of the minimal pair, and "
            "how many when the antecedent and the strongest distractor take each other’s weight: a patch of the paths "
            "from the names. Then: the weight on the antecedent from the pronoun, and from the other word of the "
            "sentence that gives it most. A head that points there from every word says little about pronouns. Last: "
            "what equal weights cost that are taken from the antecedent’s edge and from all others (an item with less "
            "weight on either side is left out, so larger doses have fewer items), and where the weight of a forbidden "
            "edge goes."
        ),
        elements=elements,
    )


SECTIONS: PlacedSections = {80: one_head_section}
FIGURES = ("equal_doses",)
