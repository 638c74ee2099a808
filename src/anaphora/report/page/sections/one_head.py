"""Section on the effects of the chosen head alone, and on other words that attend to the antecedent."""

from __future__ import annotations

from dataclasses import replace

from anaphora.base.locale.translation import _
from anaphora.report.figures import causal
from anaphora.report.page.elements import FigureElement, PageElement, PlacedSections, ReportRun, Section
from anaphora.report.tables import dose_table, freed_table, one_head_table, specificity_table
from anaphora.report.wording import clauses


def one_head_section(run: ReportRun) -> Section:
    """Return the section on the chosen head alone: its effects, equal doses and redistributed weight."""
    evidence = run.evidence
    doses = dose_table(evidence)
    figure = causal.equal_doses_figure(evidence.causal_cells)
    elements: list[PageElement] = [
        table for table in (one_head_table(evidence), specificity_table(evidence)) if table.rows
    ]
    if figure:
        summary = [
            _(
                "{group}, {mass} % of the weight removed: {antecedent} points lost on the antecedent’s edge, "
                "{others} on all others"
            ).format(group=group, mass=mass, antecedent=antecedent, others=others)
            for group, mass, _items, antecedent, others in doses.rows
        ]
        elements.append(FigureElement(name="equal_doses", figure=figure, alt=clauses(summary)))
    removed = (replace(doses, folded=figure is not None), freed_table(evidence))
    elements += [table for table in removed if table.rows]
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
