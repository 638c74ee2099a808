"""Sections of the report on the scores of the chosen head, baselines, and other attention maps such as rollout.

Further sections are on factors (attributes of items by which results are grouped) and on composition levels. An item of
the cue type `composition` combines a predicate ("rescued") with a state ("was weak"); its level says whether training
had this combination in both voices (active and passive), in one, or in neither.
"""

from __future__ import annotations

from operator import attrgetter

from anaphora.analysis.evidence.evidence import Evidence, in_group
from anaphora.analysis.results.scores import Cell, ScoreIntervals, WorstTemplate
from anaphora.analysis.results.typed_json import Interval
from anaphora.analysis.scores.measures.factors import FactorValue
from anaphora.analysis.scores.measures.further import Agreement, FurtherScores
from anaphora.base.translation import _, pgettext
from anaphora.report.figures import measures, pictures
from anaphora.report.numbers import format_count, format_number, format_p_value, format_percent, left_out_note
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
from anaphora.report.tables import level_table
from anaphora.report.wording import (
    Group,
    all_groups,
    baseline_names,
    clauses,
    effect_names,
    factor_names,
    head_name,
    joined_sentences,
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
_NO_FURTHER_SCORES = FurtherScores(
    mrr=None,
    mas=None,
    mass_per_token=None,
    reverse_candidate_accuracy=None,
    agreement=Agreement(kappa=None, interval=None),
)


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
        main = [_score_row(group) for group in groups]
        further = [_further_row(evidence, group) for group in groups]
        elements.append(table_of(main, _("Main scores, 95 % intervals in brackets"), folded=True))
        elements.append(table_of(further, _("Further scores"), folded=True))
    explanations = [
        _(
            "Task accuracy is how often the model names the antecedent; candidate accuracy is how often the chosen "
            "head gives the antecedent more weight than every other candidate. Ticks mark what chance, the best "
            "shortcut and untrained models reach."
        )
    ]
    if note := left_out_note(span for group in groups for span in _shown_intervals(group.cell.intervals)):
        explanations.append(note)
    return Section(
        name="scoreboard",
        title=_("What does the pronoun attend to?"),
        explanation=joined_sentences(explanations),
        elements=elements,
    )


def _shown_intervals(ends: ScoreIntervals) -> tuple[Interval | None, ...]:
    """Return the intervals that the table of main scores shows for a group of items."""
    return ends.task_accuracy, ends.candidate_accuracy, ends.quad_accuracy, ends.open_accuracy, ends.antecedent_mass


def _score_row(group: Group[Cell]) -> dict[str, str]:
    cell, ends = group.cell, group.cell.intervals
    return {
        _("language, cue"): group.label,
        _("items"): format_count(cell.items),
        _("task accuracy, %"): format_percent(cell.task_accuracy, ends.task_accuracy),
        _("candidate accuracy, %"): format_percent(cell.candidate_accuracy, ends.candidate_accuracy),
        _("quads right, %"): format_percent(cell.quad_accuracy, ends.quad_accuracy),
        _("most weight of all words, %"): format_percent(cell.open_accuracy, ends.open_accuracy),
        _("weight on the antecedent, %"): format_percent(cell.antecedent_mass, ends.antecedent_mass),
        _("lift: times an even share"): format_number(cell.lift, 1),
    }


def _further_row(evidence: Evidence, group: Group[Cell]) -> dict[str, str]:
    further = in_group(evidence.further_scores, group.language, group.kind) or _NO_FURTHER_SCORES
    significance = in_group(evidence.significance, group.language, group.kind)
    return {
        _("language, cue"): group.label,
        _("weight per token, %"): format_percent(further.mass_per_token),
        _("reciprocal rank, 0 to 1"): format_number(further.mrr, 2),
        _("attention score (MAS), 0 to 1"): format_number(further.mas, 2),
        _("kappa, up to 1"): format_number(further.agreement.kappa, 2),
        _("candidate accuracy the other way, %"): format_percent(further.reverse_candidate_accuracy),
        _("p after correction"): format_p_value(significance.p_holm if significance else None),
    }


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
    rows = []
    for group in all_groups(part):
        effects = {name: getattr(group.cell, key) for key, name in names.items()}
        rows.append(
            {
                _("language, cue"): group.label,
                **{name: format_number(effect.value, 2, effect.interval) for name, effect in effects.items()},
                _("quads"): format_count(group.cell.meaning.quads),
            }
        )
    return Section(
        name="effects",
        title=_("Meaning, position or a favourite word?"),
        explanation=_(
            "The weight on one candidate minus that on the other, in three parts: how far it follows the "
            "right answer (meaning), whoever comes first (position), or always the same candidate (entity). 1 "
            "is the maximum, 0 is none."
        ),
        elements=figure_with_numbers("effects", measures.effects_figure(part), summary, rows),
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
            "Rules that use no attention: the nearest candidate, the first, the subject, the bag of words, "
            "and so on. In a balanced corpus, position and favourite words get no further than chance. If a "
            "cue picks between two of several candidates, these rules choose between the two, so their chance "
            "is higher than the head’s."
        ),
        elements=elements,
    )


def _maps_section(run: ReportRun) -> Section:
    maps = run.evidence.maps or {}
    whole = _("whole model")
    rows = [
        {
            _("map"): label(map_names(), name),
            _("unit"): whole if scores.head is None else head_name(scores.head.layer, scores.head.head),
            _("language, cue"): group.label,
            _("candidate accuracy, %"): format_percent(group.cell.candidate_accuracy, group.cell.interval),
            _("weight on the antecedent, %"): format_percent(group.cell.antecedent_mass),
        }
        for name, scores in maps.items()
        for group in kind_groups(scores.languages)
    ]
    summary = [
        _("{map}, {group}: candidate accuracy {candidate} %").format(map=name, group=group, candidate=value)
        for name, _unit, group, value, _mass in map(dict.values, rows)
    ]
    return Section(
        name="maps",
        title=_("Do other kinds of map agree?"),
        explanation=_(
            "Raw weights are the headline, fixed beforehand. The other maps put the same question to what is "
            "really sent, to all layers together, or to what the answer reacts to; each at the unit that did "
            "best on the development split, raw weights at the head of the headline. Measured on a sample of "
            "the items, so the numbers differ a little from the headline."
        ),
        elements=figure_with_numbers("maps", measures.maps_figure(maps), summary, rows, texts=3),
    )


def _factors_section(run: ReportRun) -> Section:
    evidence = run.evidence
    strata = [
        _factor_row("stratum", language, name, cell, cell.intervals.candidate_accuracy)
        for language, cells in evidence.strata.items()
        for name, cell in cells.items()
    ]
    factors = [
        _factor_row(factor, language, cell.value, cell, cell.interval)
        for factor, languages in (evidence.factors or {}).items()
        for language, cells in languages.items()
        for cell in (cells if factor != "template" else ())
    ]
    elements: list[PageElement] = []
    for name, figure, rows in (
        ("strata", measures.strata_figure(evidence.strata), strata),
        ("factors", measures.factors_figure(evidence.factors), factors),
    ):
        summary = [
            _("{factor}, {spoken}, {value}: candidate accuracy {candidate} %").format(
                factor=factor, spoken=spoken, value=value, candidate=candidate
            )
            for factor, spoken, value, _items, _task, candidate, *_others in map(dict.values, rows)
        ]
        elements += figure_with_numbers(name, figure, summary, rows, texts=3)
    worst = [row for language in evidence.languages for row in _worst_templates(evidence, language)]
    elements += with_rows(table_of(worst, _("The templates where the head does worst"), texts=2))
    return Section(
        name="strata",
        title=_("Where does it work, and where not?"),
        explanation=_(
            "The same two accuracies by type of cue, gender, number, distance and number of candidates, and "
            "for items that the headline leaves out, such as those with the pronoun first, invented names, or "
            "combinations not seen in both voices."
        ),
        elements=elements,
    )


def _factor_row(
    factor: str, language: str, value: str, cell: Cell | FactorValue, ends: Interval | None
) -> dict[str, str]:
    return {
        _("factor"): label(factor_names(), factor),
        _("language"): language_name(language),
        _("value"): value_label(value),
        _("items"): format_count(cell.items),
        _("task accuracy, %"): format_percent(cell.task_accuracy),
        _("candidate accuracy, %"): format_percent(cell.candidate_accuracy, ends),
        _("weight on the antecedent, %"): format_percent(cell.antecedent_mass),
        _("chance, %"): format_percent(cell.chance),
    }


def _worst_templates(evidence: Evidence, language: str) -> list[dict[str, str]]:
    """Return one table row for each of the templates with the lowest candidate accuracy, the lowest first.

    Without accuracies by template, there is one row: the worst template stored with the scores of the language.
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
        {
            _("template"): template,
            _("language"): language_name(language),
            _("items"): format_count(cell.items),
            _("task accuracy, %"): format_percent(cell.task_accuracy),
            _("candidate accuracy, %"): format_percent(cell.candidate_accuracy, interval),
        }
        for template, cell, interval in templates
    ]


def _levels_section(run: ReportRun) -> Section | None:
    """Return the section on combinations of predicate and state, by whether training had them; None without scores."""
    evidence = run.evidence
    if not evidence.levels:
        return None
    shortcuts = [
        {
            _("language"): language_name(language),
            _("in training"): label(level_names(), name),
            _("shortcut"): label(shortcut_names(), shortcut),
            _("accuracy, %"): format_percent(accuracy),
        }
        for language, levels in evidence.levels.items()
        for name, level in levels.items()
        if name != "set"
        for shortcut, accuracy in [*level.shortcuts.items(), ("rule_model", level.rule_model)]
    ]
    return Section(
        name="levels",
        title=_("Does it hold for combinations that never occurred in training?"),
        explanation=_(
            "In compositions the predicate, the state and the voice (active or passive; in Chinese, who comes "
            "first) together say who is meant, and no two of them do. In training, predicate and state "
            "occurred together in both voices, in the other voice only, or never, though each occurred with "
            "others. An octad, the sentences of one predicate with two states (with set cues, a quad), counts "
            "if the head is right on each of them. The best shortcut comes from a closed list, learned on "
            "the whole training split; one that is wrong more often than right repeats the answers of the "
            "other voice."
        ),
        elements=[
            level_table(evidence, "{accuracy}\n{name}"),
            table_of(
                shortcuts,
                _(
                    "Every shortcut of the list, and a model of the rule, which is given predicate, state and "
                    "voice by name"
                ),
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
