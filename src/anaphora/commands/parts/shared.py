"""Helpers that commands share: opening stored runs, and locating output files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anaphora.analysis.evidence.evidence import Evidence
from anaphora.analysis.evidence.headline import Headline, Progress, measure_headline
from anaphora.analysis.evidence.storage import chosen_head, metrics_path, read_evidence
from anaphora.analysis.results.scores import Head, existing_head
from anaphora.api.models import open_any
from anaphora.api.runs import OpenRun
from anaphora.base.checks import file_ending
from anaphora.base.console import say
from anaphora.base.device import Device
from anaphora.base.errors import UserError
from anaphora.base.files import check_writable, write_csv
from anaphora.base.hub import HUB_PREFIX
from anaphora.base.locale.translation import _
from anaphora.commands.parts.settings import RunHead, RunItems, SentenceOrItems
from anaphora.data.example import Example
from anaphora.data.own_sentence import example_from_query
from anaphora.data.tokens.unread import UnreadMentions
from anaphora.runs.directory import Run, load, locked_run, results_folder
from anaphora.runs.items import evaluation_splits
from anaphora.runs.presence import run_directories
from anaphora.runs.published import RUN_CONFIG
from anaphora.runs.shipped import SHIPPED
from anaphora.runs.warm_start import holds_run, is_pretrained
from anaphora.settings.data import NoData, TextCorpus
from anaphora.settings.model.attention import heads_of

if TYPE_CHECKING:
    from anaphora.hf.reader import TransformersModel


def sentence_of(settings: SentenceOrItems) -> Example:
    """Return the sentence that a command names, with its pronoun and candidates."""
    assert settings.text is not None
    return example_from_query(
        settings.text, settings.pronoun, settings.candidates, settings.antecedent, settings.language
    )


def named_head(settings: RunHead) -> Head | None:
    """Return the head that a command names, whether a model has it or not."""
    return None if settings.layer is None or settings.head is None else Head(settings.layer, settings.head)


def scored_evidence(run: str, split: str) -> Evidence:
    """Return the stored evidence on a run.

    Raises:
        UserError: it has not been scored.
    """
    folder = measured_folder(run)
    stored = read_evidence(folder, split)
    if stored is None:
        raise UserError(
            f"{metrics_path(folder, split)} is missing: score the run first with "
            f"scripts/score.py run={run}" + (f" split={split}" if split != "test" else "")
        )
    return stored


def measured_folder(run: str) -> Path:
    """Return the folder of a run's scores; for a published run, the folder of those measured here."""
    return results_folder(run) if run == SHIPPED or run.startswith(HUB_PREFIX) else Path(run)


def head_of_settings(settings: RunHead, run: Run) -> Head | None:
    """Return the head that a command names; None if it names none.

    Raises:
        UserError: the run has no such head.
    """
    head = named_head(settings)
    return (
        None
        if head is None
        else existing_head(head, range(run.config.model.layers), heads_of(run.config.model.attention))
    )


def print_unread(unread: UnreadMentions | None) -> None:
    """Print the pronouns and candidates that the model reads as unknown, if any."""
    if unread is not None:
        say(
            _("{items} of {all} items have a pronoun or candidate that is not in the vocabulary: {words}").format(
                items=unread.items, all=unread.of, words=unread.listed
            )
        )


_ENDINGS_OF_FILES = (".csv", ".html", ".json", ".jsonl", ".parquet", ".pdf", ".png", ".svg", ".tsv", ".txt")
"""Endings of a name that is no folder's."""
_OWN_FOLDERS = ("antecedents", "attention", "checkpoints", "controls", "curves", "evaluation", "figures", "tables")
"""The folders in a run directory that hold what is measured on the run's own data, or the run itself."""


def asks_alike(run: Run, settings: RunItems) -> bool:
    """Check whether a command's items are texts or pronoun questions as the run's own are.

    Where they are not, a command that scores or answers has no files on the run's own data, or none on the others.
    """
    return isinstance(run.config.data, TextCorpus) == isinstance(settings.data or run.config.data, TextCorpus)


def check_place_of_other_data(run: Run, settings: RunItems, place: str = "outputs/other") -> None:
    """Check that measurements on other data are not written among those on the run's own data.

    Published weights have no data of their own, and those of the run inside the package are not here.

    Args:
        place: an `output` of the command that the message gives as an example.

    Raises:
        UserError: no output is named, or one among the run's own files.
    """
    other = settings.data
    if other is None or other == run.config.data or isinstance(run.config.data, NoData) or run.is_shipped:
        return
    what = f"files on {other.path_or_kind()} need a folder of their own beside those on the run's data"
    if settings.output is None:
        raise UserError(f"output: it is missing; {what}, e.g. output={place}")
    own, folder = run.directory.resolve(), Path(settings.output).resolve()
    folder = folder.parent if folder.suffix in _ENDINGS_OF_FILES else folder
    if folder == own or any(folder.is_relative_to(own / name) for name in _OWN_FOLDERS):
        raise UserError(f"output ({settings.output}) holds the run's own files; {what}, e.g. output={place}")


def holds_other_run(folder: Path, own: Path | None = None) -> bool:
    """Check whether a folder belongs to another run than `own`."""
    place = folder.resolve()
    return any(
        (owner / RUN_CONFIG).exists() and (own is None or owner != own.resolve())
        for owner in (place, *place.parents)
        if place == owner or place.relative_to(owner).parts[0] in _OWN_FOLDERS
    )


def check_folder_name(output: str) -> None:
    """Check that a folder name does not end like a file name."""
    if Path(output).suffix in _ENDINGS_OF_FILES:
        raise UserError(f"output ({output}) must name a folder, not a file")


@contextmanager
def held_output(output: str | None, default: Path, model: Run | str, place: str = "outputs/other") -> Iterator[Path]:
    """Lock the output folder until the files are written, unless it is that of the run.

    Args:
        output: what the command names.
        default: where they go otherwise.
        model: whose files they are: a run, or the name of a model that is none.
        place: an `output` of the command that the message gives as an example.

    Raises:
        UserError: the folder is another run's or is named like a file, another process writes there, or nothing can be
            written there.
    """
    folder = Path(output) if output else default
    if output:
        check_folder_name(output)
    # What is measured on weights or on a model of the hub goes by default to outputs/<name>, where a run may be.
    run = model if isinstance(model, Run) else None
    is_trained_here = run is not None and run.origin is None and not isinstance(run.config.data, NoData)
    if holds_other_run(folder, run.directory if run is not None and is_trained_here else None):
        name = model if run is None else run.name
        raise UserError(
            f"{folder} holds the files of another run; files on {name} need a folder of their own, e.g. output={place}"
        )
    with locked_run(folder):
        yield folder


@dataclass(frozen=True)
class TableFile:
    """The CSV file of a command's table; without a name nothing is written."""

    name: str | None

    @classmethod
    def checked(cls, name: str | None) -> TableFile:
        """Return the file, after checking that it can be written.

        Raises:
            UserError: it cannot, or its name does not end in .csv.
        """
        if name:
            file_ending("output", name, ".csv")
            check_writable(Path(name))
        return cls(name)

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write the rows and print the path."""
        if self.name:
            write_csv(Path(self.name), rows)
            say(_("table {path}").format(path=self.name))


def load_runs(names: Sequence[str], device: Device) -> list[Run]:
    """Return every run that matches the names and patterns.

    Raises:
        UserError: a pattern stands for none, a run is named twice, or one cannot be read.
    """
    return [load(directory, device) for directory in run_directories(names)]


def headline_of(run: Run, settings: RunHead, untrained: int, progress: Progress, keep_rows: bool = True) -> Headline:
    """Return the chosen or named head, measured on the split of the command.

    Args:
        run: whose heads.
        settings: of the command.
        untrained: how many randomly initialised models are measured beside it.
        progress: is called with the name of each stage.
        keep_rows: whether the rows of the measured items are needed afterwards.
    """
    requested = head_of_settings(settings, run)
    splits = evaluation_splits(run, settings.split, settings.data, settings.items)
    headline = measure_headline(
        run,
        splits.training,
        splits.development,
        splits.measured,
        settings.split,
        untrained,
        chosen=requested,
        progress=progress,
        keep_rows=keep_rows,
    )
    # Whoever names the head that development chose looks at a chosen head.
    return replace(headline, head_is_named=headline.head_is_named and requested != chosen_head(run))


def is_of_transformers(name: str) -> bool:
    """Check whether `transformers` reads the model: it is no run of this package, and the library is installed."""
    if find_spec("transformers") is None or holds_run(name):
        return False
    return name.startswith(HUB_PREFIX) or is_pretrained(Path(name))


def open_run_or_model(name: str, device: Device) -> OpenRun | TransformersModel:
    """Open a run or a model of `transformers`; without the library, published weights are read as a run.

    Raises:
        UserError: there is no such model.
    """
    return open_any(name, device=device) if is_of_transformers(name) else OpenRun(load(name, device))


def open_models(names: Sequence[str], device: Device) -> dict[str, OpenRun | TransformersModel]:
    """Return each model by its name on a page: that of its directory, or the whole argument if two share a name.

    Raises:
        UserError: there is no such model, or one is named twice.
    """
    names = run_directories(names)
    short = [Path(name.rstrip("/")).name for name in names]
    return {
        name if short.count(own) > 1 else own: open_any(name, device=device)
        for name, own in zip(names, short, strict=True)
    }
