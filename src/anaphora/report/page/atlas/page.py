"""HTML page that compares the heads of several models on the same items (atlas), with sections for each corpus."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from matplotlib.figure import Figure

from anaphora.analysis.evidence.evidence import Evidence
from anaphora.analysis.results.scores import ALL, Cell
from anaphora.base.translation import _, pgettext
from anaphora.report.figures import style
from anaphora.report.figures.heads import HeadGrid, head_grids_figure
from anaphora.report.figures.panels import Marks, marks_of, panel_figure
from anaphora.report.figures.style import figure_style
from anaphora.report.numbers import NOT_MEASURED, format_count, format_p_value, format_percent
from anaphora.report.page.atlas.entries import AtlasEntry, corpus_names, findings, task_accuracy
from anaphora.report.page.atlas.tasks import antecedent_elements, name_elements
from anaphora.report.page.elements import (
    FigureElement,
    NoteElement,
    PageElement,
    Section,
    TableElement,
    figures_of,
    table_of,
    with_rows,
)
from anaphora.report.page.offline import write_page
from anaphora.report.page.write import inline_figure
from anaphora.report.tables import causal_table, level_table
from anaphora.report.wording import Group, all_groups, baseline_names, label, language_name, split_names


def write_atlas(path: Path, entries: Sequence[AtlasEntry], split: str) -> dict[str, Figure]:
    """Write the page that compares several models, in the language set by `spoken_in`; return its figures by name.

    The first section is about the corpus of the first entry.
    """
    corpora = {
        name: [entry for entry in entries if entry.corpus == name]
        for name in dict.fromkeys(entry.corpus for entry in entries)
    }
    sections = [
        *(section for of_corpus in corpora.values() for section in _corpus_sections(of_corpus)),
        _reading_section(entries),
    ]
    figures = figures_of(sections)
    first = corpora[entries[0].corpus]
    write_page(
        path,
        "single.html.j2",
        title=(
            _("Atlas: {count} models and their heads") if len(first) > 1 else _("Atlas: one model and its heads")
        ).format(count=len(first)),
        lead=_(
            "Which head of each model attends from a pronoun to its antecedent, how often, and does the answer "
            "depend on it? All models read the same sentences."
        ),
        openings=[one for of_corpus in corpora.values() for one in findings(of_corpus)],
        facts=[
            (_("models"), pgettext("list", ", ").join(entry.model for entry in first)),
            (_("data"), pgettext("list", ", ").join(label(corpus_names(), name) for name in corpora)),
            (_("measured on"), label(split_names(), split)),
            (_("untrained models of each"), format_count(min(e.evidence.untrained_models for e in entries))),
        ],
        sections=sections,
        pictures={(0, name): inline_figure(figure, f"{name}-") for name, figure in figures.items()},
    )
    return figures


def atlas_rows(entries: Sequence[AtlasEntry]) -> list[dict[str, str]]:
    """Return the scores of each model's chosen head and of its baselines, one row per model, corpus and language."""
    return [
        {
            _("model"): entry.model,
            _("data"): label(corpus_names(), entry.corpus),
            _("language"): group.label,
            **_numbers(entry, group),
        }
        for entry in entries
        for group in all_groups(entry.evidence.scores)
        if group.kind == ALL
    ]


def _without_empty_columns(rows: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """Return table rows without columns in which nothing was measured, such as quad accuracy on public corpora."""
    kept = [name for name in rows[0] if any(row[name] != NOT_MEASURED for row in rows)]
    return [{name: row[name] for name in kept} for row in rows]


def _corpus_sections(entries: Sequence[AtlasEntry]) -> Iterator[Section]:
    """Yield the sections of the page on one corpus; `entries` has the results of each model on this corpus."""
    corpus = entries[0].corpus
    yield _section(
        "rows",
        corpus,
        _("{corpus}: how often the chosen head finds the antecedent"),
        _(
            "The head is chosen on development sentences and measured on others. It is written layer.head, "
            "both counted from 0. If there are several kinds of cue, the corrected p is the largest one."
        ),
        _row_elements(entries, corpus),
    )
    if antecedents := antecedent_elements(entries):
        yield _section(
            "antecedents",
            corpus,
            _("{corpus}: a head as an antecedent selector"),
            _(
                "Clark et al. 2019, section 4.3: the word that a mention’s head word attends to most is right "
                "if it is the head word of an antecedent. Heads are chosen on development texts, for each "
                "kind of mention and each set of words to choose from, and measured on others. Rules and “a "
                "mention before it” choose among the same words; “any word of the text” is the protocol of "
                "the paper."
            ),
            antecedents,
        )
    if names := name_elements(entries):
        yield _section(
            "names",
            corpus,
            _("{corpus}: name decisions, and whether they favour a gender"),
            _(
                "Webster et al. 2018: does the pronoun refer to this name, and to that one? The chosen head "
                "says yes to the name with more of the pronoun’s attention; “or neither” says yes only if "
                "that attention reaches the threshold that was best on the development split. F1 counts the "
                "decisions on both names of all items, including those in which neither is right. Nothing is "
                "fine-tuned here."
            ),
            names,
        )
    yield _section(
        "grids",
        corpus,
        _("{corpus}: every head of every model"),
        _(
            "Candidate accuracy on development sentences, where heads are chosen, all on one scale: white is chance, "
            "blue above it, brown below. The chosen head is framed; the best of many heads is good partly by chance, "
            "so its number here tends to be higher than the one above."
        ),
        _grid_elements(entries, corpus),
    )
    levels = _of_each_model(entries, level_table)
    if levels.rows:
        title = _("{corpus}: combinations seen in training, and others")
        named = title.format(corpus=label(corpus_names(), corpus))
        explanation = _("Compositions by level, as in the report.")
        yield _section("levels", corpus, title, explanation, [replace(levels, title=named)])
    if causal := _causal_elements(entries):
        yield _section(
            "causal",
            corpus,
            _("{corpus}: does the answer depend on the head?"),
            _(
                "Correct answers lost, in points, when the pronoun’s edge to its antecedent is cut, in the "
                "chosen head and in all heads of its layer, or when nothing is taken along it; and answers "
                "that follow the row of the minimal pair’s other sentence."
            ),
            causal,
        )


def _section(name: str, corpus: str, title: str, explanation: str, elements: Sequence[PageElement]) -> Section:
    return Section(
        name=f"{corpus}-{name}",
        title=title.format(corpus=label(corpus_names(), corpus)),
        explanation=explanation,
        elements=elements,
        missing=_("Nothing was measured here."),
    )


def _row_elements(entries: Sequence[AtlasEntry], corpus: str) -> list[PageElement]:
    def rows(are_whole: bool) -> list[dict[str, str]]:
        return [
            {_("model"): entry.model, _("language"): group.label, **_numbers(entry, group)}
            for entry in entries
            for group in all_groups(entry.evidence.scores)
            if (group.kind == ALL) is are_whole
        ]

    figure = rows_figure(entries)
    elements: list[PageElement] = [
        FigureElement(name=f"rows-{corpus}", figure=figure, alt=" ".join(findings(entries))),
        table_of(_without_empty_columns(rows(True)), _("The chosen head of each model, shares in %"), texts=2),
    ]
    if kinds := rows(False):
        elements.append(table_of(_without_empty_columns(kinds), _("By kind of cue"), texts=2, folded=True))
    return elements


@figure_style()
def rows_figure(entries: Sequence[AtlasEntry]) -> Figure:
    """Draw the accuracies of each model's answers and chosen head, with baselines; each language has its own panel."""
    marks: Marks = {}
    for entry in entries:
        for code, whole in entry.evidence.languages.items():
            shortcut = whole.best_shortcut.accuracy if whole.best_shortcut else None
            marks[entry.model, language_name(code)] = marks_of(
                (whole.chance, None, style.MUTED, "tick"),
                (shortcut, None, style.DISTRACTOR, "dotted tick"),
                (whole.candidate_accuracy, whole.intervals.candidate_accuracy, style.ANTECEDENT, "D"),
                (task_accuracy(entry.evidence, code, ALL), None, style.INK, "o"),
            )
    answered = any(mark.form == "o" for row_marks in marks.values() for mark in row_marks)
    return panel_figure(
        _("How often the antecedent is the strongest candidate"),
        [(entry.model, False) for entry in entries],
        (),
        marks,
        _("% of the items, with 95 % intervals over templates or texts"),
        (0.0, 1.0),
        points=True,
        key=(
            (_("chosen head"), style.ANTECEDENT, "D"),
            *([(_("the model’s answers"), style.INK, "o")] if answered else []),
            (pgettext("atlas", "chance"), style.MUTED, "tick"),
            (_("best shortcut"), style.DISTRACTOR, "dotted tick"),
        ),
    )


def _grid_elements(entries: Sequence[AtlasEntry], corpus: str) -> list[PageElement]:
    elements: list[PageElement] = []
    for code in dict.fromkeys(code for entry in entries for code in entry.evidence.languages):
        spoken = [entry for entry in entries if code in entry.heads]
        if not spoken:
            continue
        grids = []
        for entry in spoken:
            scores, chosen = entry.heads[code], (entry.evidence.head.layer, entry.evidence.head.head)
            share = format_percent(float(scores[chosen]))
            note = _("chosen head {head}: {share} %").format(head=entry.head, share=share)
            grids.append(HeadGrid(entry.model, note, scores, chosen))
        chance = next(e.evidence.languages[code].chance for e in entries if code in e.evidence.languages) or 0.5
        name = language_name(code)
        figure = head_grids_figure(
            grids,
            chance,
            _("{spoken}: candidate accuracy of every head, %").format(spoken=name),
            _("candidate accuracy, %"),
            (_("layer"), _("head")),
        )
        alt = "; ".join(f"{grid.name}: {grid.note}" for grid in grids)
        elements.append(FigureElement(name=f"grids-{corpus}-{code}", figure=figure, alt=f"{name}. {alt}"))
    return elements


def _of_each_model(entries: Sequence[AtlasEntry], make: Callable[[Evidence], TableElement]) -> TableElement:
    """Call `make` for each model and join the tables that it returns; the first column of the result is the model."""
    tables = [(entry.model, make(entry.evidence)) for entry in entries]
    columns = next((table.columns for _model, table in tables if table.rows), ())
    rows = [[model, *row] for model, table in tables for row in table.rows]
    first = tables[0][1]
    return replace(first, columns=[_("model"), *columns], rows=rows, texts=first.texts + 1)


def _causal_elements(entries: Sequence[AtlasEntry]) -> list[PageElement]:
    elements = with_rows(_of_each_model(entries, causal_table))
    untested = [entry.model for entry in entries if entry.untested]
    if untested:
        elements.append(
            NoteElement(
                text=_("Not tested, because they give no answers: {models}.").format(
                    models=pgettext("list", ", ").join(untested)
                )
            )
        )
    return elements


def _reading_section(entries: Sequence[AtlasEntry]) -> Section:
    texts = [
        _(
            "Each model has one head chosen, on development sentences of all languages together. Heads of different "
            "models are not the same heads: only their scores are compared."
        ),
        _(
            "Untrained models have the same shape and random weights, and choose their head in the same way: "
            "what they reach is chance. A head matters only if it is above them, above chance and above every "
            "shortcut."
        ),
        _(
            "Masked language models answer at a mask in the pronoun’s place, and skip items whose cue is the "
            "pronoun; decoders complete a prompt; runs answer with their prediction head. Models from "
            "elsewhere answer only the items of the causal tests. Answers of different kinds are not compared "
            "with each other."
        ),
        _("A verdict needs trained controls, which models from elsewhere do not have."),
    ]
    if decoders := list(dict.fromkeys(entry.model for entry in entries if entry.is_decoder)):
        text = _("In {models}, a pronoun sees only what comes before it: what follows is not visible to it.")
        texts.append(text.format(models=pgettext("list", ", ").join(decoders)))
    for entry in entries:
        if entry.unread is not None:
            text = _(
                "{model}, {corpus}: of {all:item|items}, {items:has|have} a pronoun or candidate with parts that are "
                "not in the "
                "model’s vocabulary ({words}). The model reads its unknown token there, or nothing."
            )
            about = {"items": entry.unread.items, "all": entry.unread.of, "words": entry.unread.listed}
            corpus = label(corpus_names(), entry.corpus)
            texts.append(text.format(model=entry.model, corpus=corpus, **about))
    return Section(
        name="reading",
        title=_("How to read this page"),
        explanation=_("What the numbers can show and what they cannot."),
        elements=[NoteElement(text=text) for text in texts],
    )


def _numbers(entry: AtlasEntry, group: Group[Cell]) -> dict[str, str]:
    cell, best = group.cell, group.cell.best_shortcut
    shortcut = f"{format_percent(best.accuracy)} ({label(baseline_names(), best.name)})" if best else NOT_MEASURED
    return {
        _("items"): format_count(cell.items),
        _("layer.head"): entry.head,
        _("candidate accuracy [95 %]"): format_percent(cell.candidate_accuracy, cell.intervals.candidate_accuracy),
        _("quad accuracy"): format_percent(cell.quad_accuracy),
        _("weight on the antecedent"): format_percent(cell.antecedent_mass),
        pgettext("atlas", "chance"): format_percent(cell.chance),
        _("best shortcut"): shortcut,
        _("untrained models"): format_percent(cell.baselines.get("random_init")),
        _("corrected p"): format_p_value(_corrected_p(entry.evidence, group.language, group.kind)),
        _("answers right"): format_percent(task_accuracy(entry.evidence, group.language, group.kind)),
    }


def _corrected_p(evidence: Evidence, code: str, kind: str) -> float | None:
    """Return the Holm-corrected p-value of the chosen head for a language and a cue category ("set", "role" or "all").

    A category without a p-value of its own, such as "all", gets the largest p-value of the language's categories. The
    result is None if there are no p-values.
    """
    by_kind = (evidence.significance or {}).get(code, {})
    chosen = [by_kind[kind]] if kind in by_kind else list(by_kind.values())
    known = [one.p_holm for one in chosen if one.p_holm is not None]
    return max(known, default=None)
