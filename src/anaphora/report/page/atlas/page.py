"""The page of the atlas and its sections on every corpus: chosen heads, all heads, levels and causal tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from matplotlib.figure import Figure

from anaphora.analysis.results.evidence import Evidence, every_group
from anaphora.analysis.results.scores import ALL, Cell
from anaphora.base.files import write_text
from anaphora.report.causal_summary import causal_columns, causal_rows
from anaphora.report.figures import style
from anaphora.report.figures.heads import HeadGrid, head_grids_figure
from anaphora.report.figures.panels import Mark, Marks, panel_figure
from anaphora.report.figures.style import figure_style
from anaphora.report.levels import level_columns, level_rows
from anaphora.report.numbers import NOT_MEASURED, format_count, format_p_value, format_percent
from anaphora.report.page.atlas.entry import AtlasEntry, task_accuracy
from anaphora.report.page.atlas.findings import findings
from anaphora.report.page.atlas.tasks import antecedent_elements, name_elements
from anaphora.report.page.elements import FigureElement, NoteElement, PageElement, Section, TableElement
from anaphora.report.page.offline import font_placeholder, read_asset, template_environment, with_fonts
from anaphora.report.page.write import inline_figure
from anaphora.report.wording import group_label, label, language_name, phrase

_COLUMNS = ("items", "head", "candidate", "quad", "mass", "chance", "shortcut", "untrained", "p", "task")


def write_atlas(path: Path, entries: Sequence[AtlasEntry], split: str) -> dict[str, Figure]:
    """Write the page on some models and corpora, in the language of `wording.spoken_in`.

    Args:
        path: of the file.
        entries: every model on every corpus, the corpus of the first one in front.
        split: what was measured.

    Returns:
        The figures by name.
    """
    corpora = {
        name: [entry for entry in entries if entry.corpus == name]
        for name in dict.fromkeys(entry.corpus for entry in entries)
    }
    sections = [
        *(section for of_corpus in corpora.values() for section in _corpus_sections(of_corpus)),
        _reading_section(entries),
    ]
    figures = {
        element.name: element.figure
        for section in sections
        for element in section.elements
        if isinstance(element, FigureElement)
    }
    first = corpora[entries[0].corpus]
    html = template_environment().get_template("single.html.j2").render(
        title=phrase("atlas", "title" if len(first) > 1 else "title_of_one", count=len(first)),
        lead=phrase("atlas", "lead"),
        openings=[one for of_corpus in corpora.values() for one in findings(of_corpus)],
        facts=[
            (phrase("atlas", "models"), ", ".join(entry.model for entry in first)),
            (phrase("atlas", "corpora"), ", ".join(label("corpora", name) for name in corpora)),
            (phrase("atlas", "split"), label("splits", split)),
            (phrase("atlas", "control"), format_count(min(e.evidence.untrained_models for e in entries))),
        ],
        sections=sections,
        pictures={(0, name): inline_figure(figure, f"{name}-") for name, figure in figures.items()},
        style=read_asset("report.css"),
        font_mark=font_placeholder(),
    )  # fmt: skip
    write_text(path, with_fonts(html, html, (400, 700)))
    return figures


def atlas_rows(entries: Sequence[AtlasEntry]) -> TableElement:
    """A row for each model, corpus and language: the chosen head and what it is compared with."""
    return TableElement(
        title=phrase("atlas", "table"),
        columns=[
            *(phrase("atlas", name) for name in ("model", "corpus", "language")),
            *(phrase("atlas", f"column_{name}") for name in _COLUMNS),
        ],
        rows=[
            [
                *(entry.model, label("corpora", entry.corpus), language_name(code)),
                *_numbers(entry, code, ALL, cell),
            ]
            for entry in entries
            for code, kind, cell in every_group(entry.evidence.scores)
            if kind == ALL
        ],
        texts=3,
    )


def _without_empty_columns(table: TableElement) -> TableElement:
    """The same without columns of numbers that hold none: public corpora have no quads, and not every model answers."""
    kept = [
        number
        for number in range(len(table.columns))
        if number < table.texts or any(row[number] != NOT_MEASURED for row in table.rows)
    ]
    return replace(
        table,
        columns=[table.columns[number] for number in kept],
        rows=[[row[number] for number in kept] for row in table.rows],
    )


def _corpus_sections(entries: Sequence[AtlasEntry]) -> Iterator[Section]:
    """The sections on one corpus, all of whose models are given."""
    corpus = entries[0].corpus
    yield _section("rows", corpus, _row_elements(entries, corpus))
    if antecedents := antecedent_elements(entries):
        yield _section("antecedents", corpus, antecedents)
    if names := name_elements(entries):
        yield _section("names", corpus, names)
    yield _section("grids", corpus, _grid_elements(entries, corpus))
    levels = [[entry.model, *row] for entry in entries for row in level_rows(entry.evidence)]
    if levels:
        columns = [phrase("atlas", "model"), *level_columns()]
        title = phrase("atlas", "levels_title", corpus=label("corpora", corpus))
        table = TableElement(title=title, columns=columns, rows=levels, texts=3)
        yield _section("levels", corpus, [table])
    if causal := _causal_elements(entries):
        yield _section("causal", corpus, causal)


def _section(name: str, corpus: str, elements: Sequence[PageElement]) -> Section:
    return Section(
        name=f"{corpus}-{name}",
        title=phrase("atlas", f"{name}_title", corpus=label("corpora", corpus)),
        explanation=phrase("atlas", f"{name}_explanation"),
        elements=elements,
        missing=phrase("atlas", "missing"),
    )


def _row_elements(entries: Sequence[AtlasEntry], corpus: str) -> list[PageElement]:
    kinds = [
        [entry.model, group_label(code, kind), *_numbers(entry, code, kind, cell)]
        for entry in entries
        for code, kind, cell in every_group(entry.evidence.scores)
        if kind != ALL
    ]
    table = atlas_rows(entries)
    columns = [table.columns[0], *table.columns[2:]]
    rows = [[row[0], *row[2:]] for row in table.rows]
    figure = rows_figure(entries)
    elements: list[PageElement] = [
        FigureElement(name=f"rows-{corpus}", figure=figure, alt=" ".join(findings(entries))),
        _without_empty_columns(TableElement(title=table.title, columns=columns, rows=rows, texts=2)),
    ]
    if kinds:
        title = phrase("atlas", "by_kind")
        by_kind = TableElement(title=title, columns=columns, rows=kinds, texts=2, folded=True)
        elements.append(_without_empty_columns(by_kind))
    return elements


@figure_style()
def rows_figure(entries: Sequence[AtlasEntry]) -> Figure:
    """A row a model, a panel a language: the chosen head's candidate accuracy beside chance and the best shortcut."""
    marks: Marks = {}
    for entry in entries:
        for code, whole in entry.evidence.languages.items():
            of_language = marks.setdefault((entry.model, language_name(code)), [])
            shortcut = whole.best_shortcut.accuracy if whole.best_shortcut else None
            for value, colour, form in (
                (whole.chance, style.MUTED, "tick"),
                (shortcut, style.DISTRACTOR, "dotted tick"),
            ):
                if value is not None:
                    of_language.append(Mark(value, None, colour, form))
            if whole.candidate_accuracy is not None:
                ends = whole.intervals.candidate_accuracy
                of_language.append(Mark(whole.candidate_accuracy, ends, style.ANTECEDENT, "D"))
            if (task := task_accuracy(entry.evidence, code, ALL)) is not None:
                of_language.append(Mark(task, None, style.INK, "o"))
    answered = any(mark.form == "o" for row_marks in marks.values() for mark in row_marks)
    return panel_figure(
        phrase("atlas", "rows_figure"),
        [(entry.model, False) for entry in entries],
        list(dict.fromkeys(panel for _, panel in marks)),
        marks,
        phrase("atlas", "rows_axis"),
        (0.0, 1.0),
        points=True,
        key=(
            (phrase("atlas", "key_candidate"), style.ANTECEDENT, "D"),
            *([(phrase("atlas", "key_task"), style.INK, "o")] if answered else []),
            (phrase("atlas", "key_chance"), style.MUTED, "tick"),
            (phrase("atlas", "key_shortcut"), style.DISTRACTOR, "dotted tick"),
        ),
    )


def _grid_elements(entries: Sequence[AtlasEntry], corpus: str) -> list[PageElement]:
    elements: list[PageElement] = []
    for code in dict.fromkeys(code for entry in entries for code in entry.evidence.languages):
        spoken = [entry for entry in entries if code in entry.heads]
        if not spoken:
            continue
        grids = [
            HeadGrid(
                entry.model,
                phrase("atlas", "grid_note", head=entry.head, share=format_percent(_at_head(entry, code))),
                entry.heads[code],
                (entry.evidence.head.layer, entry.evidence.head.head),
            )
            for entry in spoken
        ]
        chance = next(e.evidence.languages[code].chance for e in entries if code in e.evidence.languages) or 0.5
        name = language_name(code)
        figure = head_grids_figure(
            grids,
            chance,
            phrase("atlas", "grid_figure", spoken=name),
            phrase("atlas", "grid_label"),
            (phrase("atlas", "layer"), phrase("atlas", "head")),
        )
        alt = "; ".join(f"{grid.name}: {grid.note}" for grid in grids)
        elements.append(FigureElement(name=f"grids-{corpus}-{code}", figure=figure, alt=f"{name}. {alt}"))
    return elements


def _causal_elements(entries: Sequence[AtlasEntry]) -> list[PageElement]:
    rows = [[entry.model, *row] for entry in entries for row in causal_rows(entry.evidence)]
    elements: list[PageElement] = []
    if rows:
        columns = [phrase("atlas", "model"), *causal_columns()]
        title = phrase("causal_summary", "table")
        elements.append(TableElement(title=title, columns=columns, rows=rows, texts=2))
    untested = [entry.model for entry in entries if entry.untested]
    if untested:
        elements.append(NoteElement(text=phrase("atlas", "untested", models=", ".join(untested))))
    return elements


def _reading_section(entries: Sequence[AtlasEntry]) -> Section:
    names = ["chosen", "control", "answers", "verdict"]
    notes = [NoteElement(text=phrase("atlas", f"note_{name}")) for name in names]
    decoders = list(dict.fromkeys(entry.model for entry in entries if entry.is_decoder))
    if decoders:
        notes.append(NoteElement(text=phrase("atlas", "note_decoder", models=", ".join(decoders))))
    for entry in entries:
        if entry.unread is not None:
            text = phrase(
                "atlas",
                "unread",
                model=entry.model,
                corpus=entry.corpus,
                items=entry.unread.items,
                all=entry.unread.of,
                words=entry.unread.listed,
            )
            notes.append(NoteElement(text=text))
    return Section(
        name="reading",
        title=phrase("atlas", "reading_title"),
        explanation=phrase("atlas", "reading_explanation"),
        elements=notes,
    )


def _numbers(entry: AtlasEntry, code: str, kind: str, cell: Cell) -> list[str]:
    shortcut = cell.best_shortcut
    return [
        format_count(cell.items),
        entry.head,
        format_percent(cell.candidate_accuracy, cell.intervals.candidate_accuracy),
        format_percent(cell.quad_accuracy),
        format_percent(cell.antecedent_mass),
        format_percent(cell.chance),
        NOT_MEASURED
        if shortcut is None
        else f"{format_percent(shortcut.accuracy)} ({label('baselines', shortcut.name)})",
        format_percent(cell.baselines.get("random_init")),
        format_p_value(_corrected_p(entry.evidence, code, kind)),
        format_percent(task_accuracy(entry.evidence, code, kind)),
    ]


def _corrected_p(evidence: Evidence, code: str, kind: str) -> float | None:
    """Of a language that tells kinds of cue apart the largest of theirs."""
    by_kind = (evidence.significance or {}).get(code, {})
    chosen = [by_kind[kind]] if kind in by_kind else list(by_kind.values())
    known = [one.p_holm for one in chosen if one.p_holm is not None]
    return max(known, default=None)


def _at_head(entry: AtlasEntry, code: str) -> float:
    head = entry.evidence.head
    return float(entry.heads[code][head.layer, head.head])
