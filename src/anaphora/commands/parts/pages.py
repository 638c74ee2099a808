"""Report pages with figures and tables, for runs and for external models."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.causal.subjects import Subject
from anaphora.analysis.evidence.comparison import RowDivergence, compare_runs, divergences
from anaphora.analysis.evidence.evidence import Evidence
from anaphora.analysis.evidence.example_sentences import example_sentences, first_quad, maps_of_run
from anaphora.analysis.evidence.headline import Measurement
from anaphora.analysis.evidence.measurement import RunEvidence
from anaphora.analysis.evidence.other_models import evidence_from_records
from anaphora.analysis.evidence.plan import Protocol
from anaphora.analysis.evidence.storage import metrics_path
from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.results.scores import ALL, KINDS
from anaphora.analysis.scores.cells import by_language
from anaphora.analysis.scores.heads import head_accuracy, mean_chance
from anaphora.base.checks import FIGURE_FORMATS
from anaphora.base.console import say
from anaphora.base.errors import UserError
from anaphora.base.files import locked_directory, write_csv, write_json
from anaphora.base.translation import _, spoken_in
from anaphora.commands.parts.shared import holds_other_run
from anaphora.data.example import Example
from anaphora.data.tokens.words import UnreadMentions
from anaphora.report.figures import pictures
from anaphora.report.figures.files import save_figure
from anaphora.report.page.elements import ReportRun, SentenceEntry
from anaphora.report.page.explorer import explorer_entries
from anaphora.report.page.offline import other_pages, page_names, page_suffixes, remove_translation
from anaphora.report.page.sections import FIGURES
from anaphora.report.page.write import write_report
from anaphora.report.tables import divergence_rows, every_table
from anaphora.report.wording import language_name
from anaphora.runs.directory import Run, training_record

if TYPE_CHECKING:
    from anaphora.commands.report import Report


def page_folder(runs: Sequence[Run], settings: Report) -> Path:
    """Return the folder of the report page.

    This is the setting `output` if it is given. Otherwise the folder is the run directory if there is one run, and the
    folder `report` beside the first run directory if there are several runs.
    """
    own = runs[0].directory if len(runs) == 1 else runs[0].directory.parent / "report"
    return Path(settings.output) if settings.output else own


def write_pages(evidence: Sequence[RunEvidence], settings: Report) -> list[Path]:
    """Write the report on one or several runs, with figures and tables, as an HTML page in each requested language.

    Outdated tables and figures are removed. The paths of the pages, which link to one another, are returned.
    """
    for of_run in evidence:
        _write_tables(of_run.folder, of_run.evidence, settings.split)
    folder = page_folder([of_run.headline.run for of_run in evidence], settings)
    suffixes = page_suffixes(settings.interface_language)
    stem = page_stem(settings.split)
    pages = page_names(stem, suffixes)
    sentences = [
        explorer_entries(example_sentences(headline, settings.sentences, maps_of_run(headline)))
        for headline in (of_run.headline for of_run in evidence)
    ]
    apart = _divergences(evidence)
    spreads = compare_runs([of_run.evidence for of_run in evidence]) if len(evidence) > 1 else []
    training = [training_record(of_run.headline.run.files.directory) for of_run in evidence]
    names = ", ".join(of_run.headline.run.name for of_run in evidence)
    drawn: set[Path] = set()
    of_split = "" if settings.split == "test" else f"{stem}_"
    for language, page in pages.items():
        translations = other_pages(pages, language)
        with spoken_in(language):
            runs = [
                report_run(
                    of_run.headline.run.name, of_run.headline, of_run.evidence, record, entries,
                    repr(replace(of_run.headline.run.config, name=None, output="", resume=None, seed=0)), argument,
                    of_run.headline.unread,
                )
                for of_run, record, entries, argument in zip(
                    evidence, training, sentences, settings.models, strict=True
                )
            ]  # fmt: skip
            title = _("Pronouns and antecedents: {names}").format(names=names)
            figures = write_report(folder / page, runs, title, spreads, apart, translations)
        for name, of_page in figures.items():
            inside = folder / "figures" / (name if len(runs) > 1 else "")
            for figure_name, figure in of_page.items():
                path = inside / f"{of_split}{figure_name}"
                save_figure(figure, path.with_name(f"{path.name}{suffixes[language]}"), settings.formats)
                drawn.add(path)
    if len(pages) == 1:
        remove_translation(folder, stem, drawn)
    _remove_outdated_figures(drawn, of_split)
    _write_or_remove(folder / "tables" / f"divergence_{settings.split}.csv", divergence_rows(apart))
    return [folder / page for page in pages.values()]


def report_on_records(
    folder: Path,
    name: str,
    development: Sequence[AttentionRecord],
    measured: Sequence[AttentionRecord],
    *,
    answers: Sequence[int] | None = None,
    subject: Subject | None = None,
    training: Sequence[Example] = (),
    maps: Mapping[int, NDArray[np.float32]] | None = None,
    split: str = "test",
    fixed: Protocol | None = None,
) -> Evidence:
    """Write the report on an external model to a folder: `report.html`, `metrics.json` and the tables.

    For a split other than `test`, the files are `report_<split>.html` and `metrics_<split>.json`.

    Args:
        development, measured: attention rows of the items on which a head is chosen, and on which it is measured.
        answers, subject, training, split, fixed: see `evidence_from_records`.
        maps: attention maps (L, H, T, T) of some of the `measured` records, query token first, keyed by the index of
            the record in `measured`. Without maps, the page has no example sentences and no interactive explorer.

    Returns:
        The evidence in `metrics.json`.

    Raises:
        UserError: `evidence_from_records` fails, an attention map does not fit its record, or the folder has the files
            of a run.
    """
    whole = maps or {}
    for number, weights in whole.items():
        if not 0 <= number < len(measured):
            raise UserError(f"maps: {number} is no measured record; expected 0 to {len(measured) - 1}")
        rows = measured[number].weights.shape
        if weights.shape != (*rows, rows[-1]):
            raise UserError(
                f"maps[{number}]: the shape is {weights.shape}; expected {(*rows, rows[-1])} as in the record"
            )
    if holds_other_run(folder):
        raise UserError(f"folder ({folder}) holds the files of a run; the report on {name} needs a folder of its own")
    with locked_directory(folder):
        measurement, evidence = evidence_from_records(
            name, development, measured, answers=answers, subject=subject, training=training, split=split, fixed=fixed
        )
        examples = example_sentences(measurement, len(whole), lambda number: {"raw": whole[number]}, whole.keys())
        page = report_run(name, measurement, evidence, {}, explorer_entries(examples))
        title = _("Pronouns and antecedents: {names}").format(names=name)
        write_report(folder / f"{page_stem(split)}.html", [page], title)
        write_json(metrics_path(folder, split), evidence.to_json())
        _write_tables(folder, evidence, split)
    return evidence


def page_stem(split: str) -> str:
    """Return the file name of the report page on a split, without suffix."""
    return "report" if split == "test" else f"report_{split}"


def _write_tables(folder: Path, evidence: Evidence, split: str) -> None:
    """Write the tables of `every_table` as CSV files, and remove earlier files of tables that have no rows now."""
    for name, rows in every_table(evidence).items():
        _write_or_remove(folder / "tables" / f"{name}_{split}.csv", rows)


def _write_or_remove(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    if rows:
        write_csv(path, rows)
    else:
        path.unlink(missing_ok=True)


def _remove_outdated_figures(drawn: Collection[Path], of_split: str) -> None:
    """Remove figures of an earlier report that were not drawn again.

    `drawn` are the paths of the new figures, without suffixes, and `of_split` is the prefix of their names.
    """
    for inside in {figure.parent for figure in drawn}:
        for name in FIGURES:
            if inside / f"{of_split}{name}" not in drawn:
                for end in (f"{suffix}.{form}" for suffix in ("", ".zh") for form in FIGURE_FORMATS):
                    (inside / f"{of_split}{name}{end}").unlink(missing_ok=True)


def report_run(
    name: str,
    measurement: Measurement,
    evidence: Evidence,
    training: Mapping[str, Any],
    sentences: Sequence[SentenceEntry] = (),
    recipe: str | None = None,
    argument: str = "",
    unread: UnreadMentions | None = None,
) -> ReportRun:
    """Return the content of the report on one run.

    Args:
        measurement, evidence: scores of all heads, and those of the chosen head with the verdict on it.
        training: contents of the run's training.json, with the validation losses.
        sentences: example sentences with the run's attention maps, for the page's interactive explorer.
        recipe: the run's settings as text, without name, folders and seed; None for an external model.
        argument: value of `run=` in example commands; empty for an external model.
        unread: parts of pronouns and candidates that the run's vocabulary lacks.
    """
    quads = [
        (language, kind, pictures.quad_cells(records, measurement.head))
        for language in evidence.languages
        for kind in (*KINDS, ALL)
        if (records := first_quad(measurement, language, kind))
    ]
    return ReportRun(
        name=name,
        evidence=evidence,
        argument=argument,
        recipe=recipe,
        validations=training.get("validations", []),
        heads=by_language(measurement.development, evidence.languages, head_accuracy),
        heads_chance=by_language(measurement.development, evidence.languages, mean_chance),
        chance=mean_chance(measurement.development),
        quads=quads,
        sentences=sentences,
        unread=unread,
    )


def _divergences(evidence: Sequence[RunEvidence]) -> list[RowDivergence]:
    """Print and return the divergence between the attention rows of each pair of runs, by language.

    The list is empty for a single run, and for runs that differ in their items or in an item's words.
    """
    if len(evidence) < 2:
        return []
    try:
        rows = divergences({of_run.headline.run.name: of_run.headline for of_run in evidence})
    except UserError as error:
        say("the runs’ rows are not compared: {reason}", reason=error.translated())
        return []
    for row in rows:
        values = {"run": row.run, "other": row.other, "spoken": language_name(row.language)}
        if row.divergence is None:
            say("rows of {run} and {other}, {spoken}: –", **values)
        else:
            say(
                "rows of {run} and {other}, {spoken}: {bits} bits apart (1 is no word in common)",
                **values,
                bits=f"{row.divergence:.3f}",
            )
    return rows
