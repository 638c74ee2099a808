"""Sections on interventions, the chosen head alone, control models and perturbed inputs."""

from __future__ import annotations

from dataclasses import replace

from anaphora.analysis.evidence.evidence import VERDICT_SCOPE, Evidence
from anaphora.analysis.evidence.verdict import NONE_TRAINED
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
)
from anaphora.report.stored import observed_text, stored_sentence
from anaphora.report.tables import dose_table, freed_table, one_head_table, specificity_table
from anaphora.report.wording import clauses, control_names, edge_names, kind_groups, label, map_names, scope_names


def _knockout_section(run: ReportRun) -> Section:
    cells = run.evidence.causal_cells
    summary: list[str] = []
    rows: list[list[str]] = []
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
    columns = [
        _("language, cue"),
        _("where"),
        _("edge knocked out"),
        _("items"),
        _("task accuracy lost, points"),
        _("weight removed, %"),
    ]
    title = _("The numbers, with the weight that each knockout removes")
    return Section(
        name="knockout",
        title=_("Does the answer depend on that edge?"),
        explanation=_(
            "One edge from the pronoun is knocked out and the model answers again. If it uses the edge to the "
            "antecedent, knocking out that one costs much and knocking out edges as strong or as near costs little. "
            "Each loss is over the items that have such an edge: where the pronoun itself is the cue, there is no edge "
            "to the cue. Points are the losses and lines are 95 % intervals; there is no line where all items with "
            "such an edge come from one template, or where the interval is a single point."
        ),
        elements=figure_with_numbers("knockout", causal.knockout_figure(cells), summary, columns, rows, 3, title),
    )


def _knockout_rows(group: str, where: str, knockout: Knockout) -> list[list[str]]:
    rows = [
        [
            group,
            where,
            label(edge_names(), edge),
            format_count(loss.items),
            format_percent(loss.drop, loss.interval),
            format_percent(loss.mass_removed),
        ]
        for edge in causal.EDGES
        if (loss := knockout.edges.get(edge)) is not None
    ]
    difference = knockout.gold_minus_matched
    if difference.value is not None:
        lost = format_percent(difference.value, difference.interval)
        rows.append([group, where, label(edge_names(), "gold_minus_matched"), "", lost, ""])
    return rows


def ablation_section(run: ReportRun) -> Section:
    """Return the section on head ablation."""
    cells = run.evidence.causal_cells
    groups = list(kind_groups(cells))
    summary = [
        (
            _("{group}: {points} points with {count} heads, random heads {random}")
            if last.random
            else _("{group}: {points} points with {count} heads")
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
        [
            group.label,
            format_count(step.k),
            ", ".join(f"{layer}.{head}" for layer, head in step.heads),
            format_percent(step.drop),
            format_percent(step.random.median if step.random else None),
            format_range(step.random.lowest, step.random.highest) if step.random else NOT_MEASURED,
        ]
        for group in groups
        for step in group.cell.head_ablation.cumulative
    ]
    columns = [
        _("language, cue"),
        _("heads ablated"),
        _("layer.head"),
        _("lost, points"),
        _("random, median"),
        _("random, lowest to highest"),
    ]
    elements = figure_with_numbers("ablation", causal.ablation_figure(cells), summary, columns, rows)
    modes = {"zero": _("zero"), "mean": _("mean"), "resample": _("resample"), "uniform": _("uniform")}
    singles = [
        [group.label, f"{step.layer}.{step.head}", label(modes, step.mode), format_percent(step.drop, step.interval)]
        for group in groups
        for step in group.cell.head_ablation.single
    ]
    if singles:
        columns = [_("language, cue"), _("layer.head"), _("replaced by"), _("task accuracy lost, points")]
        title = _("One head at a time")
        elements.append(TableElement(title=title, columns=columns, rows=singles, texts=3, folded=True))
    return Section(
        name="ablation",
        title=_("Does the model need those heads?"),
        explanation=_(
            "Heads are ablated one after the other, the best first. A model may keep spare heads that step in, so the "
            "curve is read against as many random heads of the same layers. If these layers have no other heads, there "
            "is nothing to compare with (–)."
        ),
        elements=elements,
    )


def _patching_section(run: ReportRun) -> Section:
    cells = run.evidence.causal_cells
    rows = []
    for group in kind_groups(cells):
        patching = group.cell.pattern_patching
        flipped = [
            format_percent(patched.flipped, patched.interval)
            for patched in (patching.used.head, patching.used.layer, patching.all_layers)
        ]
        left_out = patching.pairs + patching.skipped - patching.used.pairs
        rows.append([group.label, format_count(patching.used.pairs), format_count(left_out), *flipped])
    summary = [
        _("{group}: {head} % by the chosen head, {layer} % by its layer, {every} % by all").format(
            group=group, head=head, layer=layer, every=every
        )
        for group, _used, _left_out, head, layer, every in rows
    ]
    flipped_by = [
        _("flipped by {heads}, %").format(heads=heads)
        for heads in (_("the chosen head"), _("its layer"), _("all heads"))
    ]
    columns = [_("language, cue"), _("items patched"), _("left out"), *flipped_by]
    return Section(
        name="pattern-patching",
        title=_("Does the pattern alone carry the decision?"),
        explanation=_(
            "The pronoun’s weights are replaced by those it has in the other sentence of its minimal pair, where the "
            "other candidate is right; nothing else is touched. The answer should then become that sentence’s."
        ),
        elements=figure_with_numbers("pattern_patching", causal.patching_figure(cells), summary, columns, rows),
    )


def _dose_response_section(run: ReportRun) -> Section:
    cells = run.evidence.causal_cells
    rows = [
        [group.label, label(map_names(), name), format_number(correlation.rho, 2, correlation.interval)]
        for group in kind_groups(cells)
        for name, correlation in group.cell.dose_response.items()
    ]
    summary = [_("{group}, {map}: {rho}").format(group=group, map=name, rho=value) for group, name, value in rows]
    columns = [_("language, cue"), _("map"), _("Spearman’s rho")]
    return Section(
        name="dose-response",
        title=_("Is a stronger edge a more important edge?"),
        explanation=_(
            "For every edge that was knocked out: does a larger score go with a larger loss? A map that explains the "
            "model should say yes."
        ),
        elements=figure_with_numbers("dose_response", causal.dose_response_figure(cells), summary, columns, rows, 2),
    )


def _controls_section(run: ReportRun) -> Section:
    evidence = run.evidence
    controls = evidence.controls or {}
    results = {True: _("as expected"), False: _("not as expected"), None: NOT_MEASURED}
    rows = []
    for name in dict.fromkeys([*NONE_TRAINED, *controls]):
        control, title = controls.get(name), label(control_names(), name)
        rows.append(
            [title, _("not run yet"), "", ""]
            if control is None
            else [
                *(title, results[control.as_expected]),
                *(stored_sentence(control.expected), observed_text(control.observed)),
            ]
        )
    elements: list[PageElement] = []
    if figure := measures.controls_figure(evidence):
        summary = [
            _("{group}: {text}").format(group=name, text=observed or result)
            for name, result, _expected, observed in rows
        ]
        elements.append(FigureElement(name="controls", figure=figure, alt=clauses(summary)))
    columns = [_("control"), _("result"), _("what should happen"), _("what happened")]
    elements.append(TableElement(title=_("Trained controls"), columns=columns, rows=rows, texts=4))
    perturbed = _perturbation_table(evidence)
    if perturbed.rows:
        elements.append(perturbed)
    return Section(
        name="controls",
        title=_("What would a model do that cannot use its attention?"),
        explanation=_(
            "Models of the same data, steps and stopping with one thing taken away. Where a control does as well as "
            "the run, the claim that attention matters rests on the other tests alone."
        ),
        elements=elements,
    )


def _perturbation_table(evidence: Evidence) -> TableElement:
    names = {
        "cue_masked": _("the cue’s words"),
        "context_removed": _("all but pronoun and candidates"),
        "names_replaced": _("the candidates’ names, for others"),
        "no_positions": _("positions"),
    }
    rows = [
        [
            label(names, name),
            group.label,
            format_percent(group.cell.task_accuracy),
            format_percent(group.cell.candidate_accuracy, group.cell.interval),
            format_percent(group.cell.chance),
        ]
        for name, languages in (evidence.perturbations or {}).items()
        for group in kind_groups(languages)
    ]
    columns = [
        _("taken away at test time"),
        _("language, cue"),
        _("task accuracy, %"),
        _("candidate accuracy, %"),
        _("chance, %"),
    ]
    title = _("The same model on a sample of the items, without what decides")
    return TableElement(title=title, columns=columns, rows=rows, texts=2)


def _one_head_section(run: ReportRun) -> Section:
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


SECTIONS: PlacedSections = {
    70: _knockout_section,
    80: _one_head_section,
    90: ablation_section,
    100: _patching_section,
    110: _dose_response_section,
    120: _controls_section,
}
FIGURES = ("knockout", "equal_doses", "ablation", "pattern_patching", "dose_response", "controls")
