"""Storage of a run's evaluation results: metrics.json, its tables, the chosen head and the answers' calibration.

A damaged file raises `UserError`. Its message recommends a command with run=`argument`, by default the directory.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.evidence.evidence import NAMED, Evidence
from anaphora.analysis.results.scores import Head, existing_head
from anaphora.analysis.scores.summary import SCORE_COLUMNS, heads_frame, scores_table, template_rows
from anaphora.base.console import say
from anaphora.base.errors import UserError
from anaphora.base.files import file_digest, read_json, stored_settings, write_csv, write_json, write_text
from anaphora.base.language import LANGUAGES
from anaphora.data.records import write_parquet
from anaphora.runs.directory import Run
from anaphora.runs.published import CALIBRATION
from anaphora.settings.data import SPLITS, Data
from anaphora.settings.model.attention import heads_of

if TYPE_CHECKING:
    from anaphora.analysis.evidence.headline import Headline, Measurement

HEADS_TABLE = "tables/heads_dev.csv"
"""Table of all heads' accuracies on the development split; there is one table, whichever split is scored."""
_SCORE_PARTS = (
    *("seed", "split", "head", "languages", "strata", "dropped", "undecided", "untrained_models"),
    *("train_seconds", "reads_candidates", "head_is_supervised", "levels", "encoder"),
)
"""Fields of `Evidence` that contain scores or properties of the run; scoring a split again replaces only these."""


def find_head(directory: Path, split: str = "test", argument: str | None = None) -> Head | None:
    """Return the head that is stored with a split's scores in a run directory; None if there is none.

    A head that was named by the user, and not chosen on the development split, does not count.

    Args:
        split: name of the split whose scores are read.
        argument: value of `run=` in the command that the error message recommends; by default the directory.

    Raises:
        UserError: the file with the scores is damaged.
    """
    path = metrics_path(directory, split)
    try:
        head = read_json(path, {"head": {"layer": int, "head": int}}, _way_out(argument or str(directory)))["head"]
    except FileNotFoundError:
        return None
    return None if head.get("chosen_on") == NAMED else Head(head["layer"], head["head"])


def chosen_head(run: Run, language: str | None = None) -> Head | None:
    """Return the head that was chosen for a run on the development split; None if no head was chosen.

    A head chosen by the run's publishers and stored in `run.origin` takes precedence over a head stored in
    `run.directory`. It does not matter on which split the head was measured afterwards. A run with a separate head for
    each language stores the heads in the folders "en" and "zh".

    Args:
        language: language whose folder is searched first. If there is no head in that folder, the run's own folder is
            searched, and then the folders of all languages.

    Raises:
        UserError: a file with scores is damaged.
    """
    return head_chosen_in(
        [place for place in (run.origin, run.directory) if place is not None], _command_argument(run), language
    )


def head_chosen_in(places: Sequence[Path], argument: str, language: str | None = None) -> Head | None:
    """Return the chosen head that is stored in one of several folders; None if there is none.

    Args:
        places: folders to search in order, each with its subfolders for languages, as in `chosen_head`.
        argument: value of `run=` in the command that an error message recommends.
        language: language whose subfolder is searched first.
    """
    for place in places:
        for folder in (*([place / language] if language else []), place, *(place / each for each in LANGUAGES)):
            for split in reversed(SPLITS):
                if (head := find_head(folder, split, argument)) is not None:
                    return head
    return None


def calibration_paths(run: Run) -> list[Path]:
    """Return possible paths of the file with the softmax temperatures of a run's answers, in order of precedence."""
    return [place / CALIBRATION for place in (run.directory, run.origin) if place is not None]


def answer_temperatures(run: Run) -> dict[str, float]:
    """Return the stored softmax temperature of a run's answers for each calibrated language.

    Raises:
        UserError: the file with the temperatures is damaged.
    """
    for path in calibration_paths(run):
        way_out = f"delete it; anaphora evaluate run={run.argument} calibrate=dev writes it again"
        try:
            temperatures = read_json(path, {"temperatures": {str: float}}, way_out)["temperatures"]
        except FileNotFoundError:
            continue
        for language, temperature in temperatures.items():
            if not 0 < temperature < float("inf"):
                raise UserError(f"{path}: temperatures.{language} ({temperature}) must be above 0; {way_out}")
        return dict(temperatures)
    return {}


def is_calibrated_on(run: Run, data: Data, split: str) -> bool:
    """Return whether the softmax temperatures of a run's answers were fitted on this split of these data."""
    path = next((path for path in calibration_paths(run) if path.exists()), None)
    stored = read_json(path, {"temperatures": {str: float}}) if path else {}
    return (stored.get("data_settings"), stored.get("fitted_on")) == (stored_settings(data), split)


def write_calibration(run: Run, temperatures: Mapping[str, float], about: Mapping[str, Any]) -> Path:
    """Write a file with the softmax temperatures of a run's answers, and return the path of the file.

    Args:
        temperatures: softmax temperature of each language.
        about: further entries of the file, such as the data on which the temperatures were fitted.

    Raises:
        UserError: the file cannot be written.
    """
    path = run.directory / CALIBRATION
    write_json(path, {"temperatures": temperatures, **about})
    return path


def stored_head(run: Run, language: str | None = None) -> Head:
    """Return the head that was chosen for a run on the development split (`chosen_head`).

    Raises:
        UserError: no head has been chosen yet, the model lacks the head, or the file of the scores is damaged.
    """
    head = chosen_head(run, language)
    if head is None:
        raise no_head_error(run.directory, _command_argument(run))
    try:
        return existing_head(head, range(run.config.model.layers), heads_of(run.config.model.attention))
    except UserError as error:
        raise UserError(f"{metrics_path(run.directory, 'test')}: {error}; {_way_out(_command_argument(run))}") from None


def no_head_error(directory: Path, argument: str) -> UserError:
    """Return the error for a run without a chosen head; the command that it recommends contains run=`argument`."""
    return UserError(
        f"{metrics_path(directory, 'test')}: no head has been chosen yet; name one with layer=... head=..., "
        f"or choose it with anaphora score run={argument}"
    )


def metrics_path(directory: Path, split: str) -> Path:
    """Return the path of the file with a split's evaluation results in a run directory: metrics.json for "test"."""
    return directory / ("metrics.json" if split == "test" else f"metrics_{split}.json")


def read_evidence(directory: Path, split: str, argument: str | None = None) -> Evidence | None:
    """Return the evidence on a split that is stored in a run directory; None if there is no file.

    Args:
        argument: value of `run=` in the command that the error message recommends; by default the directory.

    Raises:
        UserError: the file is damaged or of another version.
    """
    try:
        return _read(metrics_path(directory, split))
    except UserError as error:
        raise UserError(f"{error}; {_way_out(argument or str(directory))}") from None


def evidence_to_replace(directory: Path, split: str) -> Evidence | None:
    """Return the stored evidence on a split; None if the file is missing or damaged. A message reports damage."""
    try:
        return _read(metrics_path(directory, split))
    except UserError as error:
        say("{error}; it is measured again", error=error)
        return None


def write_evidence(headline: Headline, folder: Path, evidence: Evidence | None = None) -> None:
    """Write `metrics.json` and the tables of heads, templates and single items; the caller locks the folder.

    If `evidence` is None, the scores in `headline` are written. Other results in an existing file are kept if they
    belong to the same head, weights, items, code and number of untrained models; otherwise they are removed, and a
    message is printed.
    """
    if evidence is None:
        evidence, stored = headline.evidence(), evidence_to_replace(folder, headline.split)
        if stored is not None and _matches(stored, evidence, headline):
            evidence = replace(stored, **{name: getattr(evidence, name) for name in _SCORE_PARTS})
        elif stored is not None and stored.provenance is not None:
            say(
                "{path}: the evidence of the last report is removed, because it was measured with other settings, "
                "items, weights or code than these scores; anaphora report measures it again",
                path=metrics_path(folder, headline.split),
            )
    write_measurement(headline, folder, evidence)


def write_measurement(measurement: Measurement, folder: Path, evidence: Evidence) -> None:
    """Write the tables of heads, templates and single items, then `metrics.json`; the caller locks the folder.

    `metrics.json` is last so that, if it exists, all tables have been written.

    Raises:
        UserError: a file cannot be written.
    """
    tables, split = folder / "tables", measurement.split
    write_csv(
        tables / f"templates_{split}.csv",
        [asdict(row) for row in template_rows(measurement.measured, measurement.head, measurement.task_correct)],
    )
    write_text(tables / f"heads_{split}.csv", heads_frame(measurement.measured).to_csv(index=False))
    development = folder / HEADS_TABLE
    write_text(development, heads_frame(measurement.development).to_csv(index=False))
    scores = scores_table(measurement.measured, measurement.task_correct)
    write_parquet(tables / f"scores_{split}.parquet", scores, SCORE_COLUMNS)
    evidence = replace(evidence, heads_table=_digest(development))
    write_json(metrics_path(folder, split), evidence.to_json())


def read_heads(folder: Path, evidence: Evidence) -> dict[str, NDArray[np.float64]] | None:
    """Return each head's candidate accuracy on the development split, (L, H), keyed by language.

    The accuracies are macro averages over cue types, and NaN in layers without attention. The result is None if the
    stored table is missing, damaged, from an earlier version, or does not belong to this evidence.
    """
    path, grids = folder / HEADS_TABLE, dict[str, NDArray[np.float64]]()
    try:
        if evidence.heads_table not in (None, _digest(path)):
            return None
        with path.open(encoding="utf-8", newline="") as lines:
            rows = list(csv.DictReader(lines))
        layers = sorted({int(row["layer"]) for row in rows})
        heads = max(int(row["head"]) for row in rows) + 1
        for row in rows:
            grid = grids.setdefault(row["language"], np.full((layers[-1] + 1, heads), np.nan))
            grid[int(row["layer"]), int(row["head"])] = float(row["macro_candidate_accuracy"])
        existing_head(evidence.head.position, layers, heads)
    except (OSError, LookupError, TypeError, ValueError, UserError):
        return None
    return None if any(np.isnan(grid[layers]).any() for grid in grids.values()) else grids


def _digest(path: Path) -> str:
    return file_digest(path)[:16]


def _matches(stored: Evidence, scores: Evidence, headline: Headline) -> bool:
    if stored.provenance is None or stored.provenance.measured_on != headline.measured_on:
        return False
    return (stored.head, stored.untrained_models) == (scores.head, scores.untrained_models)


def _command_argument(run: Run) -> str:
    """Return the value of `run=` in a recommended command, followed by `data=...` for a pretrained model."""
    return f"{run.argument} data=..." if run.is_pretrained else run.argument


def _way_out(argument: str) -> str:
    return f"delete the file, or write it again with anaphora score run={argument} overwrite=true"


def _read(path: Path) -> Evidence | None:
    try:
        stored = read_json(path, {str: object})
    except FileNotFoundError:
        return None
    try:
        return Evidence.from_json(stored)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
