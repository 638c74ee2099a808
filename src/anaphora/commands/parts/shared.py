"""Helpers shared by commands: opening runs and models, and checking output files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from anaphora.analysis.evidence.evidence import Evidence
from anaphora.analysis.evidence.headline import Headline, Measurement, measure_headline
from anaphora.analysis.evidence.storage import chosen_head, metrics_path, read_evidence
from anaphora.analysis.results.scores import Head, existing_head
from anaphora.analysis.scores.heads import is_main
from anaphora.api.models import open_any
from anaphora.api.runs import OpenRun
from anaphora.base.checks import file_ending
from anaphora.base.console import Progress, say
from anaphora.base.device import Device
from anaphora.base.errors import UserError
from anaphora.base.files import OTHER_FOLDER, check_new, stored_settings, write_csv
from anaphora.base.hub import HUB_PREFIX
from anaphora.commands.parts.settings import RunHead, RunItems, SentenceOrItems
from anaphora.data.corpora.division import path_digest
from anaphora.data.example import Example
from anaphora.data.own_sentence import example_from_query
from anaphora.data.store import files_read
from anaphora.data.tokens.words import UnreadMentions
from anaphora.model.mixer import NO_MAPS
from anaphora.report.numbers import duration_text, format_number
from anaphora.runs import shipped
from anaphora.runs.directory import Run, claimed, load, locked_run, results_folder
from anaphora.runs.items import OWN_DATA, evaluation_splits, weights_digest
from anaphora.runs.machine import attention_seconds
from anaphora.runs.presence import run_directories
from anaphora.runs.published import CALIBRATION, RUN_CONFIG
from anaphora.runs.warm_start import holds_run, is_pretrained
from anaphora.settings.data import Data, NoData, TextCorpus
from anaphora.settings.model.attention import heads_of
from anaphora.settings.typed import PATHS

if TYPE_CHECKING:
    from anaphora.api.models import AnyModel

_LONG_TEXT = 10_000  # characters
_LONG_WAIT = 15  # seconds


def sentence_of(settings: SentenceOrItems) -> Example:
    """Return the sentence in the settings as an example, with its pronoun and candidates."""
    assert settings.text is not None
    return example_from_query(
        settings.text, settings.pronoun, settings.candidates, settings.antecedent, settings.language
    )


def named_head(settings: RunHead) -> Head | None:
    """Return the head that the settings name, if any, without checking that the model has it."""
    return None if settings.layer is None or settings.head is None else Head(settings.layer, settings.head)


def scored_evidence(run: str, split: str) -> Evidence:
    """Return the stored scores of a run on a split; raise UserError if there are none or the file is invalid."""
    folder = measured_folder(run)
    stored = read_evidence(folder, split, run)
    if stored is None:
        raise UserError(
            f"{metrics_path(folder, split)} is missing: score the run first with "
            f"anaphora score run={run}" + (f" split={split}" if split != "test" else "")
        )
    return stored


def measured_folder(run: str) -> Path:
    """Return the folder with the stored scores of a run.

    For a local run this is the run directory. For the run that comes with the package, or a run on the Hub, it is the
    folder with the scores of this run that were measured on this machine.
    """
    return results_folder(run) if run == shipped.SHIPPED or run.startswith(HUB_PREFIX) else Path(run)


def head_of_settings(settings: RunHead, run: Run) -> Head | None:
    """Return the head that the settings name, if any; raise UserError if the run does not have it."""
    model, head = run.config.model, named_head(settings)
    if head is not None and not run.model.encoder.has_maps:
        raise UserError(NO_MAPS)
    return None if head is None else existing_head(head, range(model.layers), heads_of(model.attention))


def print_unread(unread: UnreadMentions | None) -> None:
    """Print the pronouns and candidates that are not in the model's vocabulary, if any."""
    if unread is not None:
        say(
            "of {all:item|items}, {items:has|have} a pronoun or candidate that is not in the vocabulary: {words}",
            items=unread.items,
            all=unread.of,
            words=unread.listed,
        )


def print_weak_choice(measurement: Measurement) -> None:
    """Print a note if the head was chosen on so few development items that some head may be perfect by chance.

    The note is printed if at least `_LUCKY_HEADS` heads are expected to pick the antecedent in all items by chance.
    """
    if measurement.head_is_named:
        return
    development = measurement.development
    main = development.select(is_main(development.examples))
    heads = len(main.attending_layers) * main.shape[1]
    lucky = heads * float(np.prod(main.chance))
    if lucky >= _LUCKY_HEADS:
        say(
            "the head was chosen on {items:item|items} of the development split: by chance alone, about {lucky} of "
            "{heads:head|heads} would pick the antecedent in all of them; choose it on more (data.dev_share, items)",
            items=len(main.examples),
            lucky=format_number(lucky, 1),
            heads=heads,
        )


_LUCKY_HEADS = 0.05
"""Minimum expected number of heads that are perfect by chance for a note; equal to the significance level."""
_ENDINGS_OF_FILES = (".csv", ".html", ".json", ".jsonl", ".parquet", ".pdf", ".png", ".svg", ".tsv", ".txt")
"""Suffixes that the name of an output folder must not have."""
_OWN_FOLDERS = ("antecedents", "attention", "checkpoints", "controls", "curves", "evaluation", "figures", "tables")
"""Subfolders of a run directory that hold the run's checkpoints or results on its own data."""


def check_place_of_like_data(run: Run, settings: RunItems, place: str = "outputs/other") -> None:
    """Call `check_place_of_other_data` if results on the given data could overwrite those on the run's own data.

    This is possible if both data sets are text corpora, or if neither is a text corpus. Otherwise the result files have
    different names, and nothing is checked.
    """
    if isinstance(run.config.data, TextCorpus) == isinstance(settings.data or run.config.data, TextCorpus):
        check_place_of_other_data(run, settings, place)


def check_place_of_other_data(run: Run, settings: RunItems, place: str = "outputs/other") -> None:
    """Check that results on other data are not written among the results on the run's own data.

    Nothing is checked for pretrained weights, whose training data are unknown, and for the run that comes with the
    package. `place` is the value of `output` that the error message suggests.

    Raises:
        UserError: `output` is not set, or is the run directory or one of its subfolders for the run's own files.
    """
    other = settings.data
    if other is None or other == run.config.data or run.is_pretrained or run.origin == shipped.FOLDER:
        return
    what = f"files on {other.path_or_kind()} need a folder of their own beside those on the run's data"
    if settings.output is None:
        raise UserError(f"output: it is missing; {what}, e.g. output={place}")
    own, folder = run.directory.resolve(), Path(settings.output).resolve()
    folder = folder.parent if folder.suffix in _ENDINGS_OF_FILES else folder
    if folder == own or any(folder.is_relative_to(own / name) for name in _OWN_FOLDERS):
        raise UserError(f"output ({settings.output}) holds the run's own files; {what}, e.g. output={place}")


def holds_other_run(folder: Path, own: Path | None = None) -> bool:
    """Return whether a folder belongs to a run whose directory is not `own`."""
    place = folder.resolve()
    return any(
        (owner / RUN_CONFIG).exists() and (own is None or owner != own.resolve())
        for owner in (place, *place.parents)
        if place == owner or place.relative_to(owner).parts[0] in _OWN_FOLDERS
    )


def output_folder(output: str | None, default: Path) -> Path:
    """Return the folder that the setting `output` names, by default `default`.

    Raises:
        UserError: the name of the folder ends in the suffix of a file format, such as .csv.
    """
    if output and Path(output).suffix in _ENDINGS_OF_FILES:
        raise UserError(f"output ({output}) must name a folder, not a file")
    return Path(output) if output else default


@contextmanager
def held_output(
    folder: Path,
    model: Run | str,
    settings: Any,
    results: Mapping[str, Mapping[str, Any]],
    place: str = "outputs/other",
) -> Iterator[None]:
    """Lock a command's output folder while its files are written, and record the settings (`claimed`).

    Args:
        model: the run whose results are written, or the name of a model that is no run.
        settings: settings of the command, with `output` and `overwrite`.
        results: the settings that determine each result file, keyed by file name.
        place: value of `output` that the error message suggests.

    Raises:
        UserError: the folder belongs to another run, is locked by another process, is not writable or holds other
            results.
    """
    # By default, results of pretrained weights or a model of the Hub go to outputs/<name>, which may be a run.
    if holds_other_run(folder, _own_directory(model)):
        name = model if isinstance(model, str) else model.name
        raise UserError(
            f"{folder} holds the files of another run; files on {name} need a folder of their own, e.g. output={place}"
        )
    with locked_run(folder, OTHER_FOLDER), claimed(folder, results, settings):
        yield


@contextmanager
def held_calibration(folder: Path, run: Run, settings: Any) -> Iterator[None]:
    """If `calibrate` is set, lock the run directory and record the settings of the calibration (`claimed`).

    The output folder `folder` is already locked. If it is the run directory, it is not locked again.

    Raises:
        UserError: the run directory is locked by another process, or holds another calibration.
    """
    if settings.calibrate is None:
        yield
        return
    about = result_settings(run.directory, run, settings, "calibrate", "items")
    is_held = folder.resolve() == run.directory.resolve()
    with (
        nullcontext() if is_held else locked_run(run.directory),
        claimed(run.directory, {CALIBRATION: about}, settings, "set overwrite=true"),
    ):
        yield


def _own_directory(model: Run | str) -> Path | None:
    """Return the directory of a run that was trained on this machine; None for any other model."""
    is_trained_here = isinstance(model, Run) and model.origin is None and not model.is_pretrained
    return model.directory if isinstance(model, Run) and is_trained_here else None


def result_settings(folder: Path, model: Run | str, settings: Any, *names: str) -> dict[str, Any]:
    """Return the model, the data and the settings in `names`, which determine a result in a folder, keyed by name.

    In a run's own directory, the model is left out, since this directory has no results of other runs.
    """
    own = _own_directory(model)
    own_data = model.config.data if isinstance(model, Run) else NoData()
    data: Data = settings.data or own_data
    is_inside = own is not None and folder.resolve().is_relative_to(own.resolve())
    about = {} if is_inside else {"run": identity(model)}
    is_own = is_inside and (data == own_data or data_settings(data) == data_settings(own_data))
    about |= {"data": OWN_DATA} if is_own else data_settings(data)
    return about | {name: getattr(settings, name) for name in names}


def identity(model: Run | str) -> str:
    """Return the name of a run and a hash of its weights, or `content_identity` of another model."""
    return f"{model.name} ({weights_digest(model)})" if isinstance(model, Run) else content_identity(model)


def data_settings(data: Data) -> dict[str, Any]:
    """Return data settings keyed by their names on the command line; paths are replaced by `content_identity`.

    The identity of a folder covers only the data files that are read, since the folder may also contain results.
    """
    files: list[Path] = []
    with suppress(UserError):  # the run's data may no longer exist
        files = list(files_read(data).values())
    about = {"data" if name == "kind" else f"data.{name}": value for name, value in stored_settings(data).items()}
    identity_of = partial(content_identity, files=files)
    for name in (name for name in about if name in PATHS and about[name]):
        value = about[name]
        about[name] = [identity_of(one) for one in value] if isinstance(value, list) else identity_of(value)
    return about


def content_identity(name: str, files: Sequence[Path] = ()) -> str:
    """Return the name of a file or folder, without its path, and a hash of its content.

    If any of `files` are in the folder, the hash covers only these. A name that is not a local path, such as that of a
    model on the Hub, is returned unchanged.
    """
    path = Path(name).expanduser()
    if not path.exists():
        return name
    inside = [file for file in files if file.is_relative_to(path)]
    return f"{path.name or path.resolve().name} ({path_digest(path, inside or None)})"


def check_table(settings: Any) -> None:
    """Check that the output file of a command's table, if one is set, ends in .csv, is new and can be written."""
    if settings.output:
        file_ending("output", settings.output, ".csv")
        check_new(Path(settings.output), settings.overwrite)


def write_table(settings: Any, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the rows of a command's table to the CSV file `output`, if it is set, and print its path."""
    if settings.output:
        check_table(settings)
        write_csv(Path(settings.output), rows)
        say("table {path}", path=settings.output)


def load_runs(names: Sequence[str], device: Device) -> list[Run]:
    """Load every run that matches the names and patterns.

    Raises:
        UserError: a pattern matches no run, a run is named twice, or a run cannot be loaded.
    """
    return [load(directory, device) for directory in run_directories(names)]


def check_names_differ(runs: Sequence[Run]) -> None:
    """Check that no two runs have the same name, since results are listed by name."""
    for name, count in Counter(run.name for run in runs).items():
        if count > 1:
            listed = ", ".join(str(run.directory) for run in runs)
            raise UserError(f"runs ([{listed}]): two are called {name}; rename one of the run directories")


def headline_of(run: Run, settings: RunHead, untrained: int, progress: Progress, keep_rows: bool = True) -> Headline:
    """Measure the head that the settings name, or one chosen on the development split, on the requested split.

    `untrained` is the number of randomly initialised models to measure as a control. `keep_rows` retains the attention
    rows of the evaluated items.

    Raises:
        UserError: the run has no such head, or `evaluation_splits` or `measure_headline` fails.
    """
    requested = head_of_settings(settings, run)
    splits = evaluation_splits(run, settings.split, settings.data, settings.items)
    say_how_long(run, (*splits.development, *splits.measured), passes=1 + untrained)
    items = splits.training, splits.development, splits.measured
    headline = measure_headline(
        run, *items, settings.split, untrained, chosen=requested, progress=progress, keep_rows=keep_rows
    )
    # A head in the settings counts as chosen if it is the head chosen on the development split.
    return replace(headline, head_is_named=headline.head_is_named and requested != chosen_head(run))


def say_how_long(run: Run, examples: Sequence[Example], passes: int) -> None:
    """Print the expected duration of `passes` forward passes of a model on the CPU over the long texts in `examples`.

    Texts of at least `_LONG_TEXT` characters are long. A duration below `_LONG_WAIT` seconds is not printed.
    """
    texts = [example.text for example in examples if len(example.text) >= _LONG_TEXT]
    if not texts or not run.model.encoder.has_maps or run.model.device.type != "cpu":
        return
    lengths = [len(tokens.ids) for tokens in run.tokenizer.encode_batch(texts)]
    seconds = passes * attention_seconds(lengths, run.config.model.layers, run.config.model.width)
    if seconds >= _LONG_WAIT:
        say(
            "Long texts: {texts}, up to {tokens} tokens. They take about {duration} on this machine.",
            texts=len(texts),
            tokens=f"{max(lengths):,}",
            duration=duration_text(seconds),
        )


def is_of_transformers(name: str) -> bool:
    """Return whether a name or path is that of a `transformers` model and not of a run of this package.

    If `transformers` is not installed, the result is False.
    """
    if find_spec("transformers") is None or holds_run(name):
        return False
    return name.startswith(HUB_PREFIX) or is_pretrained(Path(name))


def open_run_or_model(name: str, device: Device) -> AnyModel:
    """Open a run or a `transformers` model; if `transformers` is not installed, every name is opened as a run.

    Raises:
        UserError: the model does not exist.
    """
    return open_any(name, device=device) if is_of_transformers(name) else OpenRun(load(name, device))


def open_models(names: Sequence[str], device: Device) -> dict[str, AnyModel]:
    """Open models and return them, keyed by name.

    A model's name is the last part of its path, or the whole path if two models share this part.

    Raises:
        UserError: a model does not exist or is named twice.
    """
    names = run_directories(names)
    short = [Path(name.rstrip("/")).name for name in names]
    return {
        name if short.count(own) > 1 else own: open_any(name, device=device)
        for name, own in zip(names, short, strict=True)
    }
