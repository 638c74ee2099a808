"""Atlas of models: an HTML page that compares the heads of models on the same items.

Measurements are stored, and later atlases reuse them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.evidence.evidence import Evidence, Provenance
from anaphora.analysis.evidence.measurement import current_evidence, items_digest
from anaphora.analysis.evidence.storage import evidence_to_replace, read_heads, write_measurement
from anaphora.api.head_choices import name_decisions, reads_one_pronoun, select_antecedents, with_preceding_antecedent
from anaphora.api.runs import OpenRun
from anaphora.api.scoring import read_splits, score_on, unread_by, why_untested
from anaphora.base.console import Progress, say, working
from anaphora.base.errors import UserError
from anaphora.base.files import OTHER_FOLDER, read_json, write_csv, write_json
from anaphora.base.translation import _, in_language_of_messages, spoken_in
from anaphora.commands.parts.shared import data_settings, identity, open_models
from anaphora.hf.reader import TransformersModel
from anaphora.report.page.atlas.entries import AtlasEntry
from anaphora.report.page.atlas.page import atlas_rows, write_atlas
from anaphora.report.page.elements import table_of
from anaphora.report.terminal import print_text_table
from anaphora.runs.directory import claimed, locked_run
from anaphora.runs.items import EvaluationSplits, analysis_code_digest, weights_digest
from anaphora.settings.data import CoreferenceCorpus, Data, Gap

if TYPE_CHECKING:
    from anaphora.api.models import AnyModel
    from anaphora.commands.report import Report

Heads = dict[str, NDArray[np.float64]]


def draw_atlas(settings: Report) -> Path:
    """Write an atlas (a page and a table that compare models), print the table, and return the path of the page.

    Models without stored scores are measured first.

    Raises:
        UserError: a model or a corpus cannot be read, or `score_on` or `with_tasks` fails.
    """
    # Measuring takes minutes, so models and corpora that cannot be read are rejected first.
    models = open_models(settings.models, settings.trainer)
    folder, sources = settings.atlas_folder, settings.sources()
    about = {name: getattr(settings, name) for name in ("split", "items", "untrained", "causal_items")}
    runs = (model.run if isinstance(model, OpenRun) else None for model in models.values())
    about |= {"runs": [identity(run or name) for name, run in zip(settings.models, runs, strict=True)]}
    of_data, *of_corpora = map(data_settings, sources.values())
    about |= of_data | {"corpora": [f"{one['data']}:{one['data.path']}" for one in of_corpora]}
    with (
        locked_run(folder, OTHER_FOLDER),
        claimed(folder, {"atlas.html": about}, settings),
        working(_("reading the data")) as progress,
    ):
        splits = {name: read_splits(source, settings.split, settings.items) for name, source in sources.items()}
        entries = []
        for corpus, items in splits.items():
            for name, model in models.items():
                entry = atlas_entry(model, name, corpus, items, settings, progress)
                entries.append(with_tasks(entry, model, sources[corpus], items, settings, progress))
        progress(_("drawing the atlas"))
        page = folder / "atlas.html"
        with spoken_in(settings.interface_language):
            write_csv(folder / "atlas.csv", atlas_rows(entries))
            write_atlas(page, entries, settings.split)
    print_models(entries)
    for entry in entries:
        if entry.untested:
            say("no causal tests: {reason}", reason=entry.untested)
    say("atlas     {path}", path=page)
    return page


@in_language_of_messages
def print_models(entries: Sequence[AtlasEntry]) -> None:
    """Print the scores of each model's chosen head in a table with a row for each model, corpus and language."""
    print_text_table(table_of(atlas_rows(entries), _("The chosen head of each model, shares in %"), texts=3))


def atlas_entry(
    model: AnyModel, name: str, corpus: str, splits: EvaluationSplits, settings: Report, progress: Progress
) -> AtlasEntry:
    """Return the scores of a model on one corpus; measure and store them unless stored scores are up to date."""
    folder = _folder(settings, name, corpus)
    provenance = _provenance(model, splits, settings)
    stored = _stored_evidence(model, folder, splits, provenance)
    if stored is None:
        scores = score_on(
            model, splits, causal_items=settings.causal_items, untrained=settings.untrained, progress=progress
        )
        write_measurement(scores.measurement, folder, replace(scores.evidence, provenance=provenance))
        stored = _read_evidence(folder, splits, provenance)
        assert stored is not None  # it has just been written
    evidence, heads = stored
    reason = why_untested(model) if settings.causal_items and evidence.causal is None else None
    return AtlasEntry(
        model=name,
        is_decoder=isinstance(model, TransformersModel) and model.is_decoder,
        corpus=corpus,
        evidence=evidence,
        heads=heads,
        untested=None if reason is None else reason.translated(),
        unread=unread_by(model, splits.measured),
    )


def with_tasks(
    entry: AtlasEntry, model: AnyModel, source: Data, splits: EvaluationSplits, settings: Report, progress: Progress
) -> AtlasEntry:
    """Return a copy of a model's entry in the atlas, with the results of a further task if the corpus has one.

    For a corpus with coreference annotation, the task is antecedent selection; models that take the pronoun as a second
    input sequence are not evaluated on it. For GAP, the task is to decide for each of two names whether it is the
    antecedent.

    Raises:
        UserError: `with_preceding_antecedent`, `select_antecedents` or `name_decisions` fails.
    """
    folder, about = _folder(settings, entry.model, entry.corpus), _provenance(model, splits, settings)
    if isinstance(source, CoreferenceCorpus):
        if reads_one_pronoun(model):
            return replace(entry, unselected=True)
        development = with_preceding_antecedent(splits.development, "dev")
        measured = with_preceding_antecedent(splits.measured, splits.split)
        rows = _stored_rows(
            folder / "antecedents.json",
            about,
            lambda: select_antecedents(model, development, measured, settings.untrained, progress=progress).rows,
        )
        return replace(entry, antecedents=rows)
    if isinstance(source, Gap):
        head = entry.evidence.head.position
        rows = _stored_rows(
            folder / "names.json",
            about,
            lambda: name_decisions(
                model, splits.development, splits.measured, head, settings.untrained, progress=progress
            ),
        )
        return replace(entry, names=rows)
    return entry


def _stored_rows(path: Path, about: Provenance, measure: Callable[[], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the table rows in the file `path` if they are up to date; otherwise compute, store and return new rows.

    Stored rows are up to date if they have the provenance `about`: the same weights, items and code.
    """
    try:
        stored = read_json(path, {"about": {str: object}, "rows": [{str: object}]})
    except FileNotFoundError:
        stored = None
    except UserError as error:
        say("{error}; it is measured again", error=error)
        stored = None
    if stored is None or stored["about"] != asdict(about):
        stored = {"about": asdict(about), "rows": measure()}
        write_json(path, stored)
    rows: list[dict[str, Any]] = stored["rows"]
    return rows


def _folder(settings: Report, model: str, corpus: str) -> Path:
    return settings.atlas_folder / model.strip("/").replace("/", "--") / corpus


def _provenance(model: AnyModel, splits: EvaluationSplits, settings: Report) -> Provenance:
    return Provenance(
        items=settings.causal_items,
        untrained=settings.untrained,
        weights=weights_digest(model.run) if isinstance(model, OpenRun) else model.digest(),
        data=items_digest(splits),
        code=analysis_code_digest("anaphora.hf", "anaphora.api"),
    )


def _stored_evidence(
    model: AnyModel, folder: Path, splits: EvaluationSplits, provenance: Provenance
) -> tuple[Evidence, Heads] | None:
    """Return the stored scores of a model's chosen head, and the candidate accuracies of all heads.

    They come from the directory of a run or else from an earlier atlas; None if neither has scores from the same
    weights, items and code.
    """
    if isinstance(model, OpenRun):
        own = current_evidence(model.run, splits)
        if own is not None and (heads := read_heads(model.run.directory, own)) is not None:
            return own, heads
    return _read_evidence(folder, splits, provenance)


def _read_evidence(folder: Path, splits: EvaluationSplits, provenance: Provenance) -> tuple[Evidence, Heads] | None:
    """Return the scores (`Evidence`) that an earlier atlas stored in a folder, and the accuracies of all heads.

    The result is None if the folder has no such scores, or if their provenance (weights, items and code) differs.
    """
    earlier = evidence_to_replace(folder, splits.split)
    if earlier is None or earlier.provenance != provenance or (heads := read_heads(folder, earlier)) is None:
        return None
    return earlier, heads
