"""Sections on the chosen head's scores, on compositions and on baselines."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

from anaphora.analysis.evidence.evidence import Evidence, in_group
from anaphora.analysis.results.scores import Cell, WorstTemplate
from anaphora.analysis.results.typed_json import Interval
from anaphora.analysis.scores.measures.factors import FactorValue
from anaphora.base.translation import _, pgettext
from anaphora.report.figures import measures, pictures
from anaphora.report.numbers import NOT_MEASURED, format_count, format_number, format_p_value, format_percent
from anaphora.report.page.elements import (
    FigureElement,
    PageElement,
    PlacedSections,
    ReportRun,
    Section,
    TableElement,
    figure_with_numbers,
)
from anaphora.report.tables import level_table
from anaphora.report.wording import (
    all_groups,
    baseline_names,
    clauses,
    effect_names,
    factor_names,
    head_name,
    kind_groups,
    label,
    language_name,
    level_names,
    map_names,
    shortcut_names,
    value_label,
)

_WORST_TEMPLATES = 5
"""Maximum number of templates listed per language."""


def scoreboard_section(run: ReportRun) -> Section:
    """Return the section on task and candidate accuracy, with chance and baselines."""
    evidence = run.evidence
    elements: list[PageElement] = []
    groups = list(all_groups(evidence.scores))
    if groups:
        summary = clauses(
            [
                _("{group}: task accuracy {task} %, candidate accuracy {candidate} %, chance {chance} %").format(
                    group=group.label,
                    task=format_percent(group.cell.task_accuracy),
                    candidate=format_percent(group.cell.candidate_accuracy),
                    chance=format_percent(group.cell.chance),
                )
                for group in groups
            ]
        )
        elements.append(FigureElement(name="scoreboard", figure=pictures.scores_figure(evidence), alt=summary))
        elements += [
            TableElement(
                title=_("Main scores, 95 % intervals in brackets"),
                columns=[
                    _("language, cue"),
                    _("items"),
                    _("task accuracy, %"),
                    _("candidate accuracy, %"),
                    _("quads right, %"),
                    _("most weight of all words, %"),
                    _("weight on the antecedent, %"),
                    _("lift: times an even share"),
                ],
                rows=[[group.label, *_score_row(group.cell)] for group in groups],
                folded=True,
            ),
            TableElement(
                title=_("Further scores"),
                columns=[
                    _("language, cue"),
                    _("weight per token, %"),
                    _("reciprocal rank, 0 to 1"),
                    _("attention score (MAS), 0 to 1"),
                    _("kappa, up to 1"),
                    _("candidate accuracy the other way, %"),
                    _("p after correction"),
                ],
                rows=[[group.label, *_further_row(evidence, group.language, group.kind)] for group in groups],
                folded=True,
            ),
        ]
    return Section(
        name="scoreboard",
        title=_("What does the pronoun attend to?"),
        explanation=_(
            "Task accuracy is how often the model names the antecedent; candidate accuracy is how often the chosen "
            "head gives the antecedent more weight than every other candidate. Ticks mark what chance, the best "
            "shortcut and untrained models reach."
        ),
        elements=elements,
    )


def _score_row(cell: Cell) -> list[str]:
    names = ("task_accuracy", "candidate_accuracy", "quad_accuracy", "open_accuracy", "antecedent_mass")
    shares = [format_percent(getattr(cell, name), getattr(cell.intervals, name)) for name in names]
    return [format_count(cell.items), *shares, format_number(cell.lift, 1)]


def _further_row(evidence: Evidence, language: str, kind: str) -> list[str]:
    further = in_group(evidence.further_scores, language, kind)
    significance = in_group(evidence.significance, language, kind)
    measured = [NOT_MEASURED] * 5
    if further is not None:
        measured = [
            format_percent(further.mass_per_token),
            format_number(further.mrr, 2),
            format_number(further.mas, 2),
            format_number(further.agreement.kappa, 2),
            format_percent(further.reverse_candidate_accuracy),
        ]
    return [*measured, format_p_value(significance.p_holm if significance else None)]


def _effects_section(run: ReportRun) -> Section:
    part = run.evidence.effects
    names = effect_names()
    summary = [
        _("{group}: {text}").format(
            group=group.label,
            text=pgettext("list", ", ").join(
                f"{name} {format_number(getattr(group.cell, key).value, 2)}" for key, name in names.items()
            ),
        )
        for group in kind_groups(part)
    ]
    rows = [
        [
            group.label,
            *(format_number(effect.value, 2, effect.interval) for effect in attrgetter(*names)(group.cell)),
            format_count(group.cell.meaning.quads),
        ]
        for group in all_groups(part)
    ]
    columns = [_("language, cue"), *names.values(), _("quads")]
    return Section(
        name="effects",
        title=_("Meaning, position or a favourite word?"),
        explanation=_(
            "The weight on one candidate less that on the other, taken apart: how far it follows the right answer "
            "(meaning), whoever stands first (position), or always the same candidate (entity). 1 is the most there "
            "can be, 0 is none."
        ),
        elements=figure_with_numbers("effects", measures.effects_figure(part), summary, columns, rows),
    )


def _baselines_section(run: ReportRun) -> Section:
    evidence = run.evidence
    elements: list[PageElement] = []
    groups = list(all_groups(evidence.scores))
    names = list(dict.fromkeys(name for group in groups for name in group.cell.baselines))
    if names:
        ours = [format_percent(group.cell.candidate_accuracy) for group in groups]
        rows = [[_("candidate accuracy of the head"), *ours]]
        rows += [
            [label(baseline_names(), name), *(format_percent(group.cell.baselines.get(name)) for group in groups)]
            for name in names
        ]
        columns = [_("candidate accuracy, %"), *(group.label for group in groups)]
        elements.append(TableElement(title=_("Baselines"), columns=columns, rows=rows))
    return Section(
        name="baselines",
        title=_("What do chance and shortcuts reach?"),
        explanation=_(
            "Rules that look at no attention: the nearest candidate, the first, the subject, the words as a bag, and "
            "so on. In a balanced corpus position and favourite words get no further than chance. Where a cue picks "
            "between two of several candidates, these rules choose between the two, so their chance is higher than the "
            "head’s."
        ),
        elements=elements,
    )


def _maps_section(run: ReportRun) -> Section:
    maps = run.evidence.maps or {}
    rows = [
        [
            label(map_names(), name),
            _("whole model") if scores.head is None else head_name(scores.head.layer, scores.head.head),
            group.label,
            format_percent(group.cell.candidate_accuracy, group.cell.interval),
            format_percent(group.cell.antecedent_mass),
        ]
        for name, scores in maps.items()
        for group in kind_groups(scores.languages)
    ]
    summary = [
        _("{map}, {group}: candidate accuracy {candidate} %").format(map=name, group=group, candidate=value)
        for name, _unit, group, value, _mass in rows
    ]
    columns = [_("map"), _("unit"), _("language, cue"), _("candidate accuracy, %"), _("weight on the antecedent, %")]
    return Section(
        name="maps",
        title=_("Do other kinds of map agree?"),
        explanation=_(
            "Raw weights are the headline, fixed beforehand. The others ask the same of what is really sent, of all "
            "layers together, or of what the answer reacts to; each at the unit that did best in development, raw "
            "weights at the head of the headline. Measured on a sample of the items, so the numbers differ a little "
            "from the headline."
        ),
        elements=figure_with_numbers("maps", measures.maps_figure(maps), summary, columns, rows, texts=3),
    )


def _factors_section(run: ReportRun) -> Section:
    evidence = run.evidence
    columns = [
        _("factor"),
        _("language"),
        _("value"),
        _("items"),
        _("task accuracy, %"),
        _("candidate accuracy, %"),
        _("weight on the antecedent, %"),
        _("chance, %"),
    ]
    elements: list[PageElement] = []
    for name, figure, rows in (
        ("strata", measures.strata_figure(evidence.strata), list(_stratum_rows(evidence))),
        ("factors", measures.factors_figure(evidence.factors), list(_factor_rows(evidence))),
    ):
        summary = [
            _("{factor}, {spoken}, {value}: candidate accuracy {candidate} %").format(
                factor=factor, spoken=spoken, value=value, candidate=candidate
            )
            for factor, spoken, value, _items, _task, candidate, *_others in rows
        ]
        elements += figure_with_numbers(name, figure, summary, columns, rows, texts=3)
    worst = [row for language in evidence.languages for row in _worst_templates(evidence, language)]
    if worst:
        columns = [_("template"), _("language"), _("items"), _("task accuracy, %"), _("candidate accuracy, %")]
        title = _("The templates where the head does worst")
        elements.append(TableElement(title=title, columns=columns, rows=worst, texts=2))
    return Section(
        name="strata",
        title=_("Where does it work, and where not?"),
        explanation=_(
            "The same two accuracies by type of cue, gender, number, distance and number of candidates, and for items "
            "that the headline leaves out, such as the pronoun first, invented names, or combinations not seen in both "
            "voices."
        ),
        elements=elements,
    )


def _stratum_rows(evidence: Evidence) -> Iterator[list[str]]:
    for language, cells in evidence.strata.items():
        for name, cell in cells.items():
            where = [label(factor_names(), "stratum"), language_name(language), value_label(name)]
            yield [*where, *_accuracies(cell, cell.intervals.candidate_accuracy)]


def _factor_rows(evidence: Evidence) -> Iterator[list[str]]:
    for factor, languages in (evidence.factors or {}).items():
        for language, cells in languages.items():
            for cell in cells if factor != "template" else ():
                where = [label(factor_names(), factor), language_name(language), value_label(cell.value)]
                yield [*where, *_accuracies(cell, cell.interval)]


def _accuracies(cell: Cell | FactorValue, ends: Interval | None) -> list[str]:
    return [
        format_count(cell.items),
        format_percent(cell.task_accuracy),
        format_percent(cell.candidate_accuracy, ends),
        format_percent(cell.antecedent_mass),
        format_percent(cell.chance),
    ]


def _worst_templates(evidence: Evidence, language: str) -> list[list[str]]:
    """Return a row for each of the templates with the lowest candidate accuracy, the lowest first.

    If accuracy by template was not measured, the only row is that of the worst template in the scores.
    """
    cells = (evidence.factors or {}).get("template", {}).get(language, ())
    known = sorted(
        (cell for cell in cells if cell.candidate_accuracy is not None), key=attrgetter("candidate_accuracy")
    )
    templates: list[tuple[str, FactorValue | WorstTemplate, Interval | None]] = [
        (cell.value, cell, cell.interval) for cell in known[:_WORST_TEMPLATES]
    ]
    alone = evidence.languages[language].worst_template
    if not templates and alone is not None:
        templates.append((alone.template, alone, None))
    return [
        [
            template,
            language_name(language),
            format_count(cell.items),
            format_percent(cell.task_accuracy),
            format_percent(cell.candidate_accuracy, interval),
        ]
        for template, cell, interval in templates
    ]


def _levels_section(run: ReportRun) -> Section | None:
    """Return the section on composition levels; None if the corpus has no compositions."""
    evidence = run.evidence
    if not evidence.levels:
        return None
    table = level_table(evidence, "{accuracy}\n{name}")
    shortcuts = [
        [
            language_name(language),
            label(level_names(), name),
            label(shortcut_names(), shortcut),
            format_percent(accuracy),
        ]
        for language, levels in evidence.levels.items()
        for name, level in levels.items()
        if name != "set"
        for shortcut, accuracy in [*level.shortcuts.items(), ("rule_model", level.rule_model)]
    ]
    return Section(
        name="levels",
        title=_("Does it hold for combinations that training never showed?"),
        explanation=_(
            "In compositions the predicate, the state and the voice (active or passive; in Chinese, who comes "
            "first) together say who is meant, and no two of them do. Training showed predicate and state together "
            "in both voices, in the other voice only, or never together, though each with others. An octad, the "
            "sentences of one predicate with two states (with set cues, a quad), counts if the head is right on each "
            "of them. The best shortcut is that of a closed list, learned on the whole training split; one that is "
            "wrong more often than right repeats the answers of the other voice."
        ),
        elements=[
            table,
            TableElement(
                title=_(
                    "Every shortcut of the list, and a model of the rule, which is given predicate, state and "
                    "voice by name"
                ),
                columns=[*table.columns[:2], _("shortcut"), _("accuracy, %")],
                rows=shortcuts,
                texts=3,
                folded=True,
            ),
        ],
    )


SECTIONS: PlacedSections = {
    20: scoreboard_section,
    30: _levels_section,
    60: _effects_section,
    130: _baselines_section,
    160: _maps_section,
    170: _factors_section,
}
FIGURES = ("scoreboard", "effects", "maps", "strata", "factors")
