"""The sections on all heads: the choice of one, its quads, its training, and what the others do."""

from __future__ import annotations

import numpy as np

from anaphora.analysis.results.evidence import Evidence
from anaphora.analysis.results.scores import HeadRoles
from anaphora.report.figures import heads, maps, pictures
from anaphora.report.numbers import format_percent, with_minus
from anaphora.report.page.elements import (
    FigureElement,
    HeadRolesElement,
    NoteElement,
    PageElement,
    ReportRun,
    Section,
)
from anaphora.report.wording import group_label, head_name, heads_listed, label, language_name, phrase


def heads_section(run: ReportRun) -> Section:
    """All heads on the development split."""
    elements: list[PageElement] = []
    evidence = run.evidence
    chosen = (evidence.head.layer, evidence.head.head)
    for language, scores in run.heads.items():
        cell = evidence.languages.get(language)
        threshold = cell.baselines.get("random_init_95") if cell else None
        chance = run.heads_chance[language]
        values = np.asarray(scores, dtype=np.float64)
        name = language_name(language)
        title = pictures.heads_title(values, chance, threshold, language, evidence)
        figure = heads.contoured_head_grid(values, chance, threshold, chosen, title, evidence.head.chosen_on)
        share = format_percent(float(values[chosen]))
        if threshold is None:
            summary = phrase("heads", "alt", texts=name, share=share)
        else:
            limit = heads.head_threshold(threshold, chance)
            count = int((values > limit).sum())
            summary = phrase(
                "heads",
                "alt_above" if threshold >= chance else "alt_above_chance",
                texts=name,
                share=share,
                count=count,
                heads=values.size,
                threshold=format_percent(limit),
            )
        elements.append(FigureElement(name=f"heads_{language}", figure=figure, alt=summary))
    if evidence.heads_on_development and evidence.protocol:
        p, alpha = evidence.heads_on_development.p, evidence.protocol.alpha
        better = [(layer, head) for layer, row in enumerate(p) for head, value in enumerate(row) if value < alpha]
        name, count = "significant" if better else "none_significant", sum(map(len, p))
        elements.append(NoteElement(text=phrase("heads", name, alpha=alpha, count=count, heads=heads_listed(better))))
    explanation = "explanation" if evidence.is_of_held_out_items else "explanation_not_held_out"
    return Section(
        name="heads", title=phrase("heads", "title"), explanation=phrase("heads", explanation), elements=elements
    )


def quads_section(run: ReportRun) -> Section:
    """Quads, one for each kind of cue."""
    elements: list[PageElement] = []
    for language, kind, cells in run.quads:
        sentences = " ".join(f"“{' '.join(cell.words)}”" for cell in cells)
        summary = phrase("joined", "of_group", group=group_label(language, kind), text=sentences)
        title = pictures.quad_title(cells, language, kind, run.evidence.head.position)
        name = f"quad_{language}_{kind}"
        elements.append(FigureElement(name=name, figure=maps.quad_figure(cells, title), alt=summary))
    return Section(
        name="quads",
        title=phrase("quads", "title"),
        explanation=phrase("quads", "explanation"),
        elements=elements,
        missing=phrase("quads", "missing"),
    )


def alignment_section(run: ReportRun) -> Section:
    """The heads through training."""
    elements: list[PageElement] = []
    head = run.evidence.head.position
    if run.chance is not None and run.validations:
        name = f"attention_candidate_accuracy/layer_{head.layer}_head_{head.head}"
        figure = pictures.alignment_through_training(run.validations, head, run.chance)
        if figure:
            first, last = run.validations[0], run.validations[-1]
            summary = phrase(
                "alignment",
                "alt",
                head=head_name(head.layer, head.head),
                first=format_percent(first.get(name)),
                first_step=f"{first['step']:,.0f}",
                last=format_percent(last.get(name)),
                last_step=f"{last['step']:,.0f}",
            )
            elements.append(FigureElement(name="alignment_through_training", figure=figure, alt=summary))
    return Section(
        name="alignment",
        title=phrase("alignment", "title"),
        explanation=phrase("alignment", "explanation"),
        elements=elements,
    )


def roles_section(evidence: Evidence) -> Section:
    """What each head attends to."""
    by_head = {(roles.layer, roles.head): roles for roles in evidence.head_roles or ()}
    elements: list[PageElement] = []
    if by_head:
        chosen = (evidence.head.layer, evidence.head.head)
        numbers = sorted({head for _, head in by_head})
        rows = [
            (
                layer,
                [
                    (roles.roles, _role_numbers(roles), (layer, head) == chosen)
                    for head in numbers
                    if (roles := by_head.get((layer, head))) is not None
                ],
            )
            for layer in sorted({layer for layer, _ in by_head})
        ]
        elements.append(HeadRolesElement(heads=numbers, rows=rows))
    return Section(
        name="roles", title=phrase("roles", "title"), explanation=phrase("roles", "explanation"), elements=elements
    )


def _role_numbers(roles: HeadRoles) -> str:
    parts = []
    if roles.positional.share is not None:
        offset = roles.positional.offset or 0
        where = "ahead" if offset > 0 else "back" if offset else "on_itself"
        parts.append(phrase("roles", where, share=format_percent(roles.positional.share), tokens=abs(offset)))
    for name, share in (("special", roles.special), ("cue", roles.cue)):
        if share is not None:
            parts.append(f"{label('head_roles', name)} {format_percent(share)} %")
    lead = roles.antecedent.accuracy_over_best_baseline
    if lead is not None:
        parts.append(phrase("roles", "antecedent_lead", points=with_minus(f"{100 * lead:+.0f}")))
    return " · ".join(parts)
