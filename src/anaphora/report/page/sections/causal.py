"""Sections of the report on causal tests, tests of the chosen head alone, trained controls and perturbed inputs.

A trained control is a model trained like the run but with one change that should keep heads from picking antecedents.
"""

from __future__ import annotations

from dataclasses import replace

from anaphora.analysis.evidence.evidence import VERDICT_SCOPE, Evidence
from anaphora.analysis.evidence.plan import CONTROLS
from anaphora.analysis.results.causal import Knockout
from anaphora.base.translation import _
from anaphora.report.figures import causal, measures
from anaphora.report.numbers import NOT_MEASURED, format_count, format_number, format_percent, format_range
from anaphora.report.page.elements import (
    FigureElement,
    PageElement,
    PlacedSections,
    ReportRun,
    Section,
    TableElement,
    figure_with_numbers,
    table_of,
    with_rows,
)
from anaphora.report.stored import observed_text, stored_sentence
from anaphora.report.tables import dose_table, freed_table, one_head_table, specificity_table
from anaphora.report.wording import clauses, control_names, edge_names, kind_groups, label, map_names, scope_names


def _knockout_section(run: ReportRun) -> Section:
    cells = run.evidence.causal_cells
    summary: list[str] = []
    rows: list[dict[str, str]] = []
    for group in kind_groups(cells):
        for scope, where in scope_names().items():
            if (knockout := group.cell.knockout.get(scope)) is not None:
                rows += _knockout_rows(group.label, where, knockout)
                gold = knockout.edges.get("gold")
                if scope in ("head", VERDICT_SCOPE) and gold is not None and gold.drop is not None:
                    summary.append(
                        _(
                            "{group}, {scope}: antecedent {points} points, {more} more than the matched edge that "
                            "hurts most"
                        ).format(
                            group=group.label,
                            scope=where,
                            points=format_percent(gold.drop),
                            more=format_percent(knockout.gold_minus_matched.value),
                        )
                    )
    title = _("The numbers, with the weight that each knockout removes")
    return Section(
        name="knockout",
        title=_("Does the answer depend on that edge?"),
        explanation=_(
            "One edge from the pronoun is knocked out and the model answers again. If it uses the edge to the "
            "antecedent, knocking out that one costs much and knocking out edges as strong or as near costs "
            "little. Each loss is over the items that have such an edge: if the pronoun itself is the cue, "
            "there is no edge to the cue. Points are the losses and lines are 95 % intervals; there is no "
            "line if all items with such an edge come from one template, or if the interval is a single "
            "point."
        ),
        elements=figure_with_numbers("knockout", causal.knockout_figure(cells), summary, rows, 3, title),
    )


def _knockout_rows(group: str, where: str, knockout: Knockout) -> list[dict[str, str]]:
    def row(edge: str, items: str, lost: str, removed: str) -> dict[str, str]:
        return {
            _("language, cue"): group,
            _("where"): where,
            _("edge knocked out"): label(edge_names(), edge),
            _("items"): items,
            _("task accuracy lost, points"): lost,
            _("weight removed, %"): removed,
        }

    rows = [
        row(edge, format_count(lost.items), format_percent(lost.drop, lost.interval), format_percent(lost.mass_removed))
        for edge in causal.EDGES
        if (lost := knockout.edges.get(edge)) is not None
    ]
    difference = knockout.gold_minus_matched
    if difference.value is not None:
        rows.append(row("gold_minus_matched", "", format_percent(difference.value, difference.interval), ""))
    return rows


def ablation_section(run: ReportRun) -> Section:
    """Return the section on how much task accuracy is lost when heads are ablated."""
    cells = run.evidence.causal_cells
    groups = list(kind_groups(cells))
    summary = [
        (
            _("{group}: {points} points with {count:head|heads}, random heads {random}")
            if last.random
            else _("{group}: {points} points with {count:head|heads}")
        ).format(
            group=group.label,
            points=format_percent(last.drop),
            count=last.k,
            random=format_percent(last.random.median if last.random else None),
        )
        for group in groups
        for last in group.cell.head_ablation.cumulative[-1:]
    ]
    rows = [
        {
            _("language, cue"): group.label,
            _("heads ablated"): format_count(step.k),
            _("layer.head"): ", ".join(f"{layer}.{head}" for layer, head in step.heads),
            _("lost, points"): format_percent(step.drop),
            _("random, median"): format_percent(step.random.median if step.random else None),
            _("random, lowest to highest"): format_range(step.random.lowest, step.random.highest)
            if step.random
            else NOT_MEASURED,
        }
        for group in groups
        for step in group.cell.head_ablation.cumulative
    ]
    elements = figure_with_numbers("ablation", causal.ablation_figure(cells), summary, rows)
    modes = {"zero": _("zero"), "mean": _("mean"), "resample": _("resample"), "uniform": _("uniform")}
    singles = [
        {
            _("language, cue"): group.label,
            _("layer.head"): f"{step.layer}.{step.head}",
            _("replaced by"): label(modes, step.mode),
            _("task accuracy lost, points"): format_percent(step.drop, step.interval),
        }
        for group in groups
        for step in group.cell.head_ablation.single
    ]
    elements += with_rows(table_of(singles, _("One head at a time"), texts=3, folded=True))
    return Section(
        name="ablation",
        title=_("Does the model need those heads?"),
        explanation=_(
            "Heads are ablated one after the other, the best first. A model may have spare heads that step "
            "in, so the curve is compared with that of as many random heads of the same layers. If these "
            "layers have no other heads, there is nothing to compare with (–)."
        ),
        elements=elements,
    )


def _patching_section(run: ReportRun) -> Section:
    cells = run.evidence.causal_cells
    flipped_by = _("flipped by {heads}, %")
    rows = []
    for group in kind_groups(cells):
        patching = group.cell.pattern_patching
        used = patching.used
        by_heads = {_("the chosen head"): used.head, _("its layer"): used.layer, _("all heads"): patching.all_layers}
        rows.append(
            {
                _("language, cue"): group.label,
                _("items patched"): format_count(used.pairs),
                _("left out"): format_count(patching.pairs + patching.skipped - used.pairs),
                **{
                    flipped_by.format(heads=heads): format_percent(patched.flipped, patched.interval)
                    for heads, patched in by_heads.items()
                },
            }
        )
    summary = [
        _("{group}: {head} % by the chosen head, {layer} % by its layer, {every} % by all").format(
            group=group, head=head, layer=layer, every=every
        )
        for group, _used, _left_out, head, layer, every in map(dict.values, rows)
    ]
    return Section(
        name="pattern-patching",
        title=_("Does the pattern alone carry the decision?"),
        explanation=_(
            "The pronoun’s weights are replaced by those it has in the other sentence of its minimal pair, where the "
            "other candidate is right; nothing else is touched. The answer should then become that sentence’s."
        ),
        elements=figure_with_numbers("pattern_patching", causal.patching_figure(cells), summary, rows),
    )


def _dose_response_section(run: ReportRun) -> Section:
    cells = run.evidence.causal_cells
    rows = [
        {
            _("language, cue"): group.label,
            _("map"): label(map_names(), name),
            _("Spearman’s rho"): format_number(correlation.rho, 2, correlation.interval),
        }
        for group in kind_groups(cells)
        for name, correlation in group.cell.dose_response.items()
    ]
    summary = [
        _("{group}, {map}: {rho}").format(group=group, map=name, rho=value)
        for group, name, value in map(dict.values, rows)
    ]
    return Section(
        name="dose-response",
        title=_("Is a stronger edge a more important edge?"),
        explanation=_(
            "For every edge that was knocked out: does a larger score go with a larger loss? A map that explains the "
            "model should say yes."
        ),
        elements=figure_with_numbers("dose_response", causal.dose_response_figure(cells), summary, rows, 2),
    )


def _controls_section(run: ReportRun) -> Section:
    evidence = run.evidence
    controls = evidence.controls or {}
    results = {True: _("as expected"), False: _("not as expected"), None: NOT_MEASURED}
    rows = []
    for name in dict.fromkeys([*CONTROLS, *controls]):
        control = controls.get(name)
        rows.append(
            {
                _("control"): label(control_names(), name),
                _("result"): results[control.as_expected] if control else _("not run yet"),
                _("what should happen"): stored_sentence(control.expected) if control else "",
                _("what happened"): observed_text(control.observed) if control else "",
            }
        )
    elements: list[PageElement] = []
    if figure := measures.controls_figure(evidence):
        summary = [
            _("{group}: {text}").format(group=name, text=observed or result)
            for name, result, _expected, observed in map(dict.values, rows)
        ]
        elements.append(FigureElement(name="controls", figure=figure, alt=clauses(summary)))
    elements.append(table_of(rows, _("Trained controls"), texts=4))
    elements += with_rows(_perturbation_table(evidence))
    return Section(
        name="controls",
        title=_("What would a model do that cannot use its attention?"),
        explanation=_(
            "Models with the same data, steps and stopping rule, but with one thing taken away. If a control "
            "does as well as the run, the claim that attention matters rests on the other tests alone."
        ),
        elements=elements,
    )


def _perturbation_table(evidence: Evidence) -> TableElement:
    names = {
        "cue_masked": _("the cue’s words"),
        "context_removed": _("all but pronoun and candidates"),
        "names_replaced": _("the candidates’ names (other names)"),
        "no_positions": _("positions"),
    }
    rows = [
        {
            _("taken away at test time"): label(names, name),
            _("language, cue"): group.label,
            _("task accuracy, %"): format_percent(group.cell.task_accuracy),
            _("candidate accuracy, %"): format_percent(group.cell.candidate_accuracy, group.cell.interval),
            _("chance, %"): format_percent(group.cell.chance),
        }
        for name, languages in (evidence.perturbations or {}).items()
        for group in kind_groups(languages)
    ]
    return table_of(
        rows, _("The same model on a sample of the items, with the deciding words or positions removed"), texts=2
    )


def _one_head_section(run: ReportRun) -> Section:
    evidence = run.evidence
    doses = dose_table(evidence)
    figure = causal.equal_doses_figure(evidence.causal_cells)
    elements = with_rows(one_head_table(evidence), specificity_table(evidence))
    if figure:
        summary = [
            _(
                "{group}, {mass} % of the weight removed: {antecedent} points lost on the antecedent’s edge, "
                "{others} on all others"
            ).format(group=group, mass=mass, antecedent=antecedent, others=others)
            for group, mass, _items, antecedent, others in doses.rows
        ]
        elements.append(FigureElement(name="equal_doses", figure=figure, alt=clauses(summary)))
    elements += with_rows(replace(doses, folded=figure is not None), freed_table(evidence))
    return Section(
        name="one-head",
        title=_("Is one head enough, and does it do this only for the pronoun?"),
        explanation=_(
            "The chosen head alone. First: what the model loses when the head takes nothing along its edge "
            "from the pronoun to the antecedent, what it loses when the head takes nothing along any other "
            "edge from the pronoun, how many right answers flip when its row comes from the other sentence of "
            "the minimal pair, and how many when the antecedent and the strongest distractor exchange their "
            "weights: a patch of the paths from the names. Then: the weight on the antecedent from the "
            "pronoun, and from the other word of the sentence that gives it most. A head that points there "
            "from every word says little about pronouns. Last: what it costs to take the same weight from the "
            "antecedent’s edge or from all others (an item with less weight on either side is left out, so "
            "larger doses have fewer items), and where the weight of a forbidden edge goes."
        ),
        elements=elements,
    )


SECTIONS: PlacedSections = {
    70: _knockout_section,
    80: _one_head_section,
    90: ablation_section,
    100: _patching_section,
    110: _dose_response_section,
    120: _controls_section,
}
FIGURES = ("knockout", "equal_doses", "ablation", "pattern_patching", "dose_response", "controls")
