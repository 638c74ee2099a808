"""The evidence on a run: what is measured beyond its scores, the controls that have to be trained, and the report."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.table import Table

from anaphora.analysis import controls
from anaphora.analysis.examination import examine
from anaphora.analysis.exhibits import exhibits, maps_of_run
from anaphora.analysis.intervene import Subject
from anaphora.analysis.other_models import evidence_of
from anaphora.analysis.protocol import protocol
from anaphora.analysis.record import AttentionRecord
from anaphora.analysis.seeds import divergences
from anaphora.analysis.settings import Analysis, Evidence, Protocol, Report
from anaphora.analysis.study import Measurement, Progress, Study, study
from anaphora.analysis.verdict import verdict
from anaphora.checkpoint import Run, load, run_directories, training_record
from anaphora.config import Config
from anaphora.data.example import Example, to_record
from anaphora.errors import UserError
from anaphora.files import held, write_json
from anaphora.place import Place
from anaphora.report import pictures
from anaphora.report.evidence_tables import divergence_rows, evidence_tables
from anaphora.report.explorer import explorer
from anaphora.report.page import ReportRun, write_report
from anaphora.report.tables import LANGUAGES
from anaphora.report.write import save, write_table
from anaphora.workflow import (
    Material,
    alike,
    console,
    material_of,
    measuring_code,
    read_scores,
    trained,
    weights_digest,
    write_scores,
)


@dataclass(frozen=True)
class Told:
    """What is known of a run: its study, and every number of its `metrics.json`."""

    found: Study
    metrics: dict[str, Any]


def report(asked: Report) -> Path:
    """Measure what is not measured yet, and write one offline page on one run or several, with figures and tables.

    Returns:
        The page.

    Raises:
        UserError: a run is not finished, or two runs have one name.
    """
    # Measuring takes minutes: what cannot be reported is told before.
    runs = [load(directory, asked.trainer) for directory in run_directories(asked.runs) or [asked.run]]
    twice = [name for name, count in Counter(run.name for run in runs).items() if count > 1]
    if twice:
        raise UserError(
            f"runs ({asked.runs}): two are called {twice[0]}; rename a run directory, names tell them apart"
        )
    told = []
    for run in runs:
        with console.status(f"{run.name}: reading the data") as status:
            told.append(gather(run, asked, status.update))
    with console.status("drawing the report"):
        path = write(told, asked)
    for one in told:
        if len(told) > 1:
            console.print(one.found.run.name, soft_wrap=True)
        print_verdict(one.metrics)
    console.print(f"report    {path}", soft_wrap=True)
    return path


def print_verdict(metrics: dict[str, Any]) -> None:
    """Print what the rule says of every language and kind of cue, and the rows that it fails."""
    for language, kinds in metrics["verdict"].items():
        for kind, cell in kinds.items():
            failed = [row["rule"] for row in cell["rows"] if row["passed"] is False]
            open_ = [row["rule"] for row in cell["rows"] if row["passed"] is None]
            told = [f"fails: {', '.join(failed)}"] if failed else []
            told += [f"not measured: {', '.join(open_)}"] if open_ else []
            label = f"{LANGUAGES.get(language, language)}, {pictures.KINDS.get(kind, kind)}"
            console.print(f"{label}: {cell['verdict']}" + (f" ({'; '.join(told)})" if told else ""), soft_wrap=True)


def gather(run: Run, asked: Report, progress: Progress) -> Told:
    """The evidence on a run, measured or, where `metrics.json` holds it, read; controls and verdict are always anew.

    Args:
        run: a finished run.
        asked: what the report is asked for.
        progress: is told what is going on.
    """
    material = material_of(run, Analysis(run=str(run.directory), split=asked.split))
    examined = _examined(asked, run, material)
    stored = _stored(run, asked, examined)
    found = study(
        run,
        None if stored else material.training,
        material.development,
        material.measured,
        asked.split,
        0 if stored else asked.untrained,
        progress=progress,
    )
    metrics = stored or {
        **found.metrics(),
        **examine(found, material.development, asked.items, asked.protocol, progress),
        "examined": examined,
    }
    metrics["controls"] = controls.read(run.directory, asked.split)
    metrics["verdict"] = verdict(metrics, asked.protocol.alpha)
    write_scores(found, run.directory, metrics)
    with held(run.directory):
        for name, rows in evidence_tables(metrics).items():
            write_table(run.directory / "tables" / f"{name}_{asked.split}.csv", rows)
    return Told(found, metrics)


def write(told: Sequence[Told], asked: Report) -> Path:
    """The page on runs whose evidence is known, and its figures as files."""
    first = told[0].found
    # A page on several runs is none of theirs.
    own = first.run.directory if len(told) == 1 else first.run.directory.parent / "report"
    folder = Path(asked.output) if asked.output else own
    path = folder / ("report.html" if asked.split == "test" else f"report_{asked.split}.html")
    runs = [
        _shown(one.found.run.name, one.found, one.metrics, training_record(one.found.run.directory)) for one in told
    ]
    names = ", ".join(run.name for run in runs)
    sentences = explorer(exhibits(first, asked.sentences, maps_of_run(first)))
    apart = _divergences(told)
    drawn = write_report(path, runs, sentences, f"Pronouns and antecedents: {names}", apart)
    if apart:
        write_table(folder / "tables" / f"divergence_{asked.split}.csv", divergence_rows(apart))
    for name, figures in drawn.items():
        inside = folder / "figures" / "report" / (name if len(runs) > 1 else "")
        for each, figure in figures.items():
            save(figure, inside / each, asked.formats)
    return path


def report_on_records(
    folder: Path,
    name: str,
    development: Sequence[AttentionRecord],
    measured: Sequence[AttentionRecord],
    answers: Sequence[int] | None = None,
    subject: Subject | None = None,
    training: Sequence[Example] = (),
    maps: Mapping[int, NDArray[np.float32]] | None = None,
    split: str = "test",
    fixed: Protocol | None = None,
) -> dict[str, Any]:
    """Write the report on a model from elsewhere: `report.html`, `metrics.json` and the tables, in a folder.

    Args:
        folder: it is made where it is missing.
        name: of the model.
        development, measured, answers, subject, training, split, fixed: as in `analysis.other_models.evidence_of`.
        maps: for the explorer the whole maps (L, H, T, T) of some measured records, attending token first, by the
            record's place in `measured`; without them the page has no explorer and no examples.

    Returns:
        What `metrics.json` holds.

    Raises:
        UserError: as `evidence_of`, or a map does not fit its record.
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
    found, metrics = evidence_of(name, development, measured, answers, subject, training, split, fixed)
    shown = exhibits(found, len(whole), lambda place: {"raw": whole[place]}, whole.keys())
    write_report(
        folder / "report.html", [_shown(name, found, metrics, {})], explorer(shown), f"Pronouns and antecedents: {name}"
    )
    write_json(folder / "metrics.json", metrics)
    for table, cells in evidence_tables(metrics).items():
        write_table(folder / "tables" / f"{table}_{split}.csv", cells)
    return metrics


def _divergences(told: Sequence[Told]) -> list[dict[str, Any]]:
    """How far the runs' rows are apart, printed too; empty for one run, or where their items or words differ."""
    if len(told) < 2:
        return []
    try:
        rows = divergences({one.found.run.name: one.found for one in told})
    except UserError as error:
        console.print(f"the runs' rows are not compared: {error}", soft_wrap=True)
        return []
    for row in rows:
        language = LANGUAGES.get(row["language"], row["language"])
        bits = "–" if row["divergence"] is None else f"{row['divergence']:.3f} bits apart (1 is no word in common)"
        console.print(f"rows of {row['run']} and {row['other']}, {language}: {bits}", soft_wrap=True)
    return rows


def _shown(name: str, found: Measurement, metrics: Mapping[str, Any], training: Mapping[str, Any]) -> ReportRun:
    languages = list(metrics["languages"])
    heads = {}
    for language in languages:
        spoken = np.array([each.language == language for each in found.development.examples])
        if spoken.any():
            heads[language] = pictures.head_accuracy(found.development.select(spoken))
    quads = []
    for language in languages:
        for kind, words in pictures.KINDS.items():
            block = pictures.example_quad(found.measured, language, kind)
            if block:
                cells = pictures.quad_cells([found.seen.records[item] for item in block], found.head)
                quads.append((f"{LANGUAGES.get(language, language)}, {words}", cells))
    validations = training.get("validations", [])
    return ReportRun(name=name, metrics=metrics, validations=validations, heads=heads, quads=quads)


def _stored(run: Run, asked: Report, examined: dict[str, Any]) -> dict[str, Any] | None:
    """What `metrics.json` holds of this very question; None where it is another one, or was never asked."""
    known = read_scores(run.directory, asked.split)
    fixed = protocol(asked.protocol, asked.split, run.config)
    same = known.get("protocol") == fixed and known.get("examined") == examined
    return known if same else None


def _examined(asked: Report, run: Run, material: Material) -> dict[str, Any]:
    """What the evidence is about: how much of it, and which weights, items and measuring code, by their digests."""
    items = hashlib.sha256()
    for example in (*material.development, *material.measured):
        items.update(json.dumps(to_record(example), sort_keys=True).encode())
    return {
        "items": asked.items,
        "untrained": asked.untrained,
        "weights": weights_digest(run),
        "data": items.hexdigest()[:16],
        "code": measuring_code(),
    }


def train_controls(asked: Evidence) -> dict[str, Any]:
    """Train each control that is not trained yet, measure it, and write `controls/controls.json` in the run directory.

    Returns:
        What the file holds: {control: what `analysis.controls.measure` says, None where it was never trained}.

    Raises:
        UserError: the run is not finished, or a control's directory holds something else.
    """
    run = load(asked.run, Place(device="cuda" if asked.trainer.device == "cuda" else "cpu"))
    with console.status("reading the data"):
        material = material_of(run, Analysis(run=asked.run, split=asked.split))
    found = controls.read(run.directory, asked.split)
    for number, name in enumerate(asked.controls, start=1):
        console.print(f"control {number} of {len(asked.controls)}: {name}", soft_wrap=True)
        trained = _trained(run, name, asked.trainer.device)
        with console.status(f"measuring {name}"):
            found[name] = controls.measure(name, trained, material.development, material.measured)
        # After each, so that whoever stops here keeps what is done.
        with held(run.directory):
            write_json(controls.path_of(run.directory, asked.split), found)
    console.print(_table(run, asked, found))
    for name in asked.controls:
        told = {True: "as expected", False: "NOT as expected", None: "nothing to check"}[found[name]["as_expected"]]
        console.print(f"{name}: {told}. Expected: {found[name]['expected']} Seen: {found[name]['seen']}")
    console.print(f"controls  {controls.path_of(run.directory, asked.split)}", soft_wrap=True)
    return found


def settings_of(run: Run, control: str, device: str | None) -> Config:
    """The settings with which a control of a run is trained; they go by the run's own, whatever its recipe."""
    config = controls.changed(run.config, control)
    trainer = replace(config.trainer, device=device or config.trainer.device)
    return replace(config, name=control, output=str(run.directory / "controls"), resume=None, trainer=trainer)


def _trained(run: Run, control: str, device: str | None) -> Run:
    """The finished control."""
    config = settings_of(run, control, device)
    if alike(config, run.config):
        console.print("the run itself is this control: its settings leave nothing to change")
        return run
    return trained(config, "remove or rename this folder")


def _table(run: Run, asked: Evidence, found: dict[str, Any]) -> Table:
    table = Table(
        title=f"{run.name}: trained controls, {asked.split} split, shares in %",
        title_justify="left",
        box=box.SIMPLE_HEAD,
    )
    for name in ("control", "language", "kind"):
        table.add_column(name)
    for name in ("task", "candidate", "[95 %]", "chance"):
        table.add_column(name.replace("[", r"\["), justify="right")
    for name in asked.controls:
        for language, kinds in found[name]["languages"].items():
            for kind, cell in kinds.items():
                ends = cell["interval"]
                table.add_row(
                    name,
                    language,
                    kind,
                    _share(cell["task_accuracy"]),
                    _share(cell["candidate_accuracy"]),
                    f"{_share(ends[0])}, {_share(ends[1])}" if ends else "–",
                    _share(cell["chance"]),
                )
    return table


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"
