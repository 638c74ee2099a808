"""Top of the report page: verdict, main result, figure and properties of a run, or a comparison of several runs."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from anaphora.analysis.evidence.comparison import GroupSpread, RowDivergence
from anaphora.analysis.evidence.evidence import Evidence, Verdict
from anaphora.analysis.evidence.verdict import NOT_CONTROLLED, NOT_SUPPORTED, SUPPORTED
from anaphora.analysis.results.scores import Groups
from anaphora.base.translation import _, pgettext, spoken_language
from anaphora.report.figures.maps import pronoun_row_figure
from anaphora.report.figures.style import DOUBLE_COLUMN, PHONE
from anaphora.report.headline import group_name, headline_sentence
from anaphora.report.numbers import NOT_MEASURED, format_number, format_spread
from anaphora.report.page.elements import FigureElement, ReportRun, Section, TableElement, table_of, with_rows
from anaphora.report.page.explorer import pronoun_row
from anaphora.report.titles import attention_title
from anaphora.report.wording import (
    Group,
    clauses,
    group_label,
    head_choice_names,
    head_name,
    kind_groups,
    label,
    language_name,
    listed,
    short_measure_names,
    split_names,
)


def comparison_section(
    runs: Sequence[ReportRun], spreads: Sequence[GroupSpread] = (), divergences: Sequence[RowDivergence] = ()
) -> Section:
    """Return the section that compares runs by their verdicts, their measures, and their heads' attention rows.

    The explanation of the section says whether the runs have the same settings apart from the seed.
    """
    tables = []
    for title, parts in (
        (_("Verdicts on the layer"), [run.evidence.verdict for run in runs]),
        (_("Verdicts on the one head"), [run.evidence.verdict_at_head for run in runs]),
    ):
        verdicts = [{group.label: _(group.cell.verdict) for group in kind_groups(one)} for one in parts]
        names = dict.fromkeys(name for by_group in verdicts for name in by_group)
        rows = [[name, *(by_group.get(name, NOT_MEASURED) for by_group in verdicts)] for name in names]
        columns = [_("language, cue"), *(run.name for run in runs)]
        tables.append(TableElement(title=title, columns=columns, rows=rows, texts=len(runs) + 1))
    measures = short_measure_names()
    tables += [
        TableElement(
            title=_("Median over runs, and in brackets the lowest and the highest, in %"),
            columns=[_("language, cue"), *measures.values()],
            rows=[
                [group_label(row.language, row.kind), *(format_spread(row.measures[measure]) for measure in measures)]
                for row in spreads
            ],
        ),
        table_of(
            [
                {
                    _("runs"): f"{row.run} – {row.other}",
                    _("language"): language_name(row.language),
                    _("bits"): format_number(row.divergence, 2, row.interval),
                }
                for row in divergences
            ],
            _("How far apart the rows of the chosen heads are (Jensen-Shannon): 0 is the same, 1 no word in common"),
            texts=2,
        ),
    ]
    recipes = [run.recipe for run in runs]
    is_one = recipes[0] is not None and all(recipe == recipes[0] for recipe in recipes)
    difference = (
        _("Runs differ in their random start and order of data, and in nothing else.")
        if is_one
        else _(
            "These runs differ in their settings or data, not in their random start alone: a difference "
            "between them has no single cause, and a median over them mixes different models."
        )
    )
    return Section(
        name="runs",
        title=_("{count} runs side by side").format(count=len(runs)),
        explanation=_(
            "{difference} Their heads do not correspond, so only scores are combined here, never head numbers."
        ).format(difference=difference),
        elements=with_rows(*tables),
    )


def run_headline(evidence: Evidence) -> str:
    """Return the main result of a run in words; "" if no main items (`Example.is_main`) were scored."""
    return headline_sentence(evidence) if evidence.languages else ""


def runs_by_verdict(runs: Sequence[ReportRun]) -> list[tuple[str, str]]:
    """Return the verdicts on several runs, each with the names of its runs; runs without a verdict are left out."""
    names: dict[str, list[str]] = {}
    for run in runs:
        names.setdefault(verdict_sentence(run.evidence), []).append(run.name)
    return [(listed(of_verdict), verdict) for verdict, of_verdict in names.items() if verdict]


def verdict_sentence(evidence: Evidence) -> str:
    """Return the verdicts on a run in one sentence; empty if there are no verdicts."""
    of_layer, of_head = (_groups_by_verdict(part) for part in (evidence.verdict, evidence.verdict_at_head))
    if of_layer == of_head:
        scopes = [(_("for the layer and for the head alone"), of_layer)]
    else:
        scopes = [(_("for the layer"), of_layer), (_("for the head alone"), of_head)]
    scopes = [(scope, by_verdict) for scope, by_verdict in scopes if by_verdict]
    if len(scopes) == 1 and len(scopes[0][1]) == 1:
        scope, by_verdict = scopes[0]
        ((result, groups),) = by_verdict.items()
        text = {
            SUPPORTED: _(
                "Supported in {groups}, {scope}: pronouns attend to their antecedents, and the model’s answer depends "
                "on it."
            ),
            NOT_SUPPORTED: _(
                "Not supported in {groups}, {scope}: the claim that pronouns attend to their antecedents and that the "
                "model’s answer depends on it does not meet every rule."
            ),
            NOT_CONTROLLED: _(
                "Not yet controlled in {groups}, {scope}: the claim that pronouns attend to their antecedents and that "
                "the model’s answer depends on it has not been compared with control models yet."
            ),
        }[result]
        return text.format(groups=listed(groups), scope=scope)
    texts = {
        SUPPORTED: _("supported in {groups}"),
        NOT_SUPPORTED: _("not supported in {groups}"),
        NOT_CONTROLLED: _("not yet controlled in {groups}"),
    }
    verdicts = [
        _("{verdicts}, {scope}").format(
            scope=scope,
            verdicts=pgettext("clauses", ", ").join(
                texts[result].format(groups=listed(groups)) for result, groups in by_verdict.items()
            ),
        )
        for scope, by_verdict in scopes
    ]
    if not verdicts:
        return ""
    sentence = _(
        "{verdicts}: the claim that pronouns attend to their antecedents and that the model’s answer depends on it."
    ).format(verdicts=clauses(verdicts))
    return sentence[0].upper() + sentence[1:]


def _groups_by_verdict(verdicts: Groups[Verdict] | None) -> dict[str, list[str]]:
    """Return the names of groups of items, keyed by verdict, such as "supported".

    A group is a whole language if all of its cue categories have the same verdict, otherwise one cue category of the
    language.
    """
    groups: dict[str, list[str]] = {}
    for language, kinds in (verdicts or {}).items():
        results = {kind: cell.verdict for kind, cell in kinds.items()}
        if len(set(results.values())) == 1:
            results = {"all": next(iter(results.values()))}
        for kind, result in results.items():
            groups.setdefault(result, []).append(group_name(Group(language, kind, None)))
    return groups


def control_commands(run: ReportRun) -> list[str]:
    """Return the commands that train the missing controls of a run and write its report again.

    Without missing controls, or for a model without a run directory, the list is empty.
    """
    evidence = run.evidence
    verdicts = [
        group.cell.verdict for part in (evidence.verdict, evidence.verdict_at_head) for group in kind_groups(part)
    ]
    if not run.argument or NOT_CONTROLLED not in verdicts:
        return []
    arguments = [f"run={run.argument}", *([] if evidence.split == "test" else [f"split={evidence.split}"])]
    return [shlex.join(["anaphora", command, *arguments]) for command in ("controls", "report")]


def cue_kinds(runs: Sequence[ReportRun]) -> str:
    """Return sentences that define set cues and role cues; empty if no run has separate scores for these cues."""
    kinds = {group.kind for run in runs for group in kind_groups(run.evidence.scores)}
    if not kinds & {"set", "role"}:
        return ""
    return _(
        "Set cues: gender, number or meaning of a word decides who is meant, whatever the order of the words. Role "
        "cues: who did what to whom decides."
    )


def opening_pictures(run: ReportRun) -> list[FigureElement]:
    """Draw the pronoun's attention row in the chosen head for one sentence, for a wide screen and for a phone.

    The sentence is the run's first one in the language of the page, or the first in any language. The list is empty if
    there is no sentence, or if the sentence has no map of raw weights.
    """
    sentences = sorted(run.sentences, key=lambda sentence: sentence["language"] != spoken_language())
    if not sentences or "raw" not in sentences[0]["maps"]:
        return []
    first, head = sentences[0], run.evidence.head
    words, weights = first["words"], pronoun_row(first, head.position)
    roles = first["pronoun"], first["antecedents"], first["distractors"]
    title = attention_title(words, weights, *roles, head.position)
    return [
        FigureElement(
            name=name,
            figure=pronoun_row_figure(words, weights, *roles, title, room=room),
            alt=_("{title}: {text}").format(title=title, text=first["text"]),
        )
        for name, room in (("on-screen", DOUBLE_COLUMN), ("on-phone", PHONE))
    ]


def run_facts(run: ReportRun) -> list[tuple[str, str]]:
    """Return the known properties of a run, such as its seed, as (name, value)."""
    evidence = run.evidence
    items = sum(whole.items for whole in evidence.languages.values())
    left_out = [
        _("{items} ({reason})").format(items=f"{count:,}", reason=_(reason))
        for reason, count in evidence.dropped.items()
        if count
    ]
    seconds = evidence.train_seconds
    facts = {
        _("run"): run.name,
        _("seed"): evidence.seed,
        _("split"): label(split_names(), evidence.split),
        _("items"): f"{items:,}" if items else None,
        pgettext("fact", "left out"): pgettext("list", ", ").join(left_out) or None,
        _("not in the vocabulary"): _(
            "of {all:item|items}, {items:has|have} a pronoun or candidate with {words}"
        ).format(items=f"{run.unread.items:,}", all=f"{run.unread.of:,}", words=run.unread.listed)
        if run.unread
        else None,
        _("equal scores"): _("{items:item|items}; of k equal answers each counts 1/k").format(
            items=f"{evidence.undecided:,}"
        )
        if evidence.undecided
        else None,
        _("head"): _("{head}, {choice}").format(
            head=head_name(evidence.head.layer, evidence.head.head),
            choice=label(head_choice_names(), evidence.head.chosen_on),
        ),
        pgettext("number of", "untrained models"): evidence.untrained_models,
        _("training"): _("{minutes} min").format(minutes=f"{seconds / 60:.{0 if seconds >= 600 else 1}f}")
        if seconds
        else None,
    }
    return [(name, str(value)) for name, value in facts.items() if value is not None]
