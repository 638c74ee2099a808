"""Run directories: settings, tokenizer and weights, stored as plain values and tensors without pickle."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from anaphora.base.console import say
from anaphora.base.device import Device, torch_device
from anaphora.base.errors import UserError
from anaphora.base.files import file_digest, locked_directory, read_json, write_json, write_text
from anaphora.base.hub import HUB_PREFIX
from anaphora.base.tensors import read_arrays, write_arrays
from anaphora.base.translation import _
from anaphora.data.tokens.tokenizer import Tokenizer
from anaphora.data.tokens.vocabulary import read_tokenizer
from anaphora.model.pretrained.families import CONFIG, encoder_settings
from anaphora.model.pretrained.weights import load_pretrained
from anaphora.model.pronoun_model import PronounModel
from anaphora.runs import shipped
from anaphora.runs.published import RUN_CONFIG, settings_of
from anaphora.runs.warm_start import is_pretrained, locate_model
from anaphora.settings.data import NoData
from anaphora.settings.model.prediction import NoPrediction
from anaphora.settings.run import Config, config_yaml
from anaphora.settings.training import Task

WRITTEN = "written.json"
"""Name of the file that records the settings of each result in a folder."""
_TOKENIZER = "tokenizer.json"
_WEIGHT_TYPES = (np.float32, np.float16)
_NAME = re.compile(r"[^:]* \((?=[0-9a-f]{16}\)$)")
"""Name of a run, file or folder before the digest of its content."""
_GROWING = ("runs", "corpora")
"""Settings of pages that list runs or corpora; a page may be replaced by one that lists more of them."""


class _PathInRun:
    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, layout: RunFiles, _owner: type[RunFiles]) -> Path:
        return layout.directory / self._name


@dataclass(frozen=True)
class RunFiles:
    """Paths of the files in a run directory."""

    directory: Path

    config = _PathInRun(RUN_CONFIG)
    tokenizer = _PathInRun(_TOKENIZER)
    weights = _PathInRun("model.safetensors")  # the final ones, which exist only if training has finished
    training = _PathInRun("training.json")  # the training record: validations, duration and more
    metrics = _PathInRun("metrics.json")
    figures = _PathInRun("figures")
    checkpoints = _PathInRun("checkpoints")
    best_weights = _PathInRun("checkpoints/best.safetensors")  # the best so far; deleted when training finishes
    last_checkpoint = _PathInRun("checkpoints/last.ckpt")  # weights and optimizer, from which training resumes


@dataclass(frozen=True)
class Run:
    """Finished run (a trained model with its settings), or pretrained weights opened as a run."""

    directory: Path  # folder for measurements on the run
    config: Config
    tokenizer: Tokenizer
    model: PronounModel  # encoder and prediction head, in evaluation mode
    # Folder of a run from the hub or inside the package; None for a local run or local weights.
    origin: Path | None = None

    @property
    def name(self) -> str:
        return self.directory.name or self.directory.resolve().name

    @property
    def files(self) -> RunFiles:
        """Return the paths of the run's own files, which are in `origin` or, without an `origin`, in `directory`.

        New measurements are always written to `directory`.
        """
        return RunFiles(self.origin or self.directory)

    @property
    def is_pretrained(self) -> bool:
        """Return whether the run consists of pretrained weights that were opened as a run."""
        return isinstance(self.config.data, NoData)

    @property
    def is_encoder_alone(self) -> bool:
        """Return whether the run consists of pretrained weights without an output layer over the vocabulary."""
        return self.is_pretrained and not self.config.model.output_transform

    @property
    def argument(self) -> str:
        """Return the value of the setting `run` that opens the run."""
        if self.origin is not None:
            return shipped.SHIPPED if self.origin == shipped.FOLDER else HUB_PREFIX + self.name.replace("--", "/")
        start = self.config.start
        is_local = self.is_pretrained and start is not None and Path(start).expanduser().is_dir()
        return str(start if is_local else self.directory)

    def untrained_model(self, seed: int) -> PronounModel:
        return randomly_initialised(self.config, self.tokenizer.size, seed).to(self.model.device)


def randomly_initialised(config: Config, vocabulary: int, seed: int) -> PronounModel:
    """Return a model randomly initialised from a seed, in evaluation mode; torch's CPU random state is restored."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return PronounModel(config.model, config.task.prediction, vocabulary).eval()


@contextmanager
def locked_run(directory: Path, way_out: str = "") -> Iterator[None]:
    """Lock a run directory as `locked_directory` does, and remove the checkpoints of a finished run.

    Such checkpoints remain if the training process was killed just before deleting them.
    """
    layout = RunFiles(directory)
    with locked_directory(directory, way_out):
        if layout.config.exists() and layout.weights.exists():
            shutil.rmtree(layout.checkpoints, ignore_errors=True)
        yield


@contextmanager
def claimed(
    folder: Path,
    results: Mapping[str, Mapping[str, Any]],
    settings: Any,
    way_out: str = "name another folder with output=, or set overwrite=true",
) -> Iterator[None]:
    """Check that results may be written to a folder, and record the settings of these results in `written.json`.

    A result may only replace a result with the same settings, a result without untrained models, or a page about fewer
    runs or corpora. With `overwrite`, any result is replaced. A file without a record is kept in a folder that the user
    has named with `output`, and replaced elsewhere. A note names replaced pages and files without a record. If the
    `with` block fails, the records of results that it has not written are restored. The caller locks the folder.

    Args:
        results: the settings that determine each result, by name; the keys are paths in the folder. A value of the form
            "name (digest)" with 16 digits, as `identity` returns it, is compared by its digest.
        settings: settings of the command, with `output` and `overwrite`.
        way_out: end of the error message.

    Raises:
        UserError: a result would replace another one, or the record cannot be written.
    """
    try:
        stored: dict[str, Any] = read_json(folder / WRITTEN, {str: {str: object}})
    except (FileNotFoundError, UserError):  # without a record, or with a damaged one
        stored = {}
    is_named = settings.output is not None and folder.resolve().is_relative_to(Path(settings.output).resolve())
    new: dict[str, dict[str, Any]] = json.loads(json.dumps(results))
    unknown: list[str] = []
    notes: list[str] = []
    for result, now in new.items():
        if settings.overwrite or not (folder / result).exists():
            continue
        if result not in stored and is_named:
            raise UserError(f"{folder / result} exists, and {folder / WRITTEN} does not say what it is; {way_out}")
        if result not in stored:
            unknown.append(result)
        before = stored.get(result, now)
        for name in {**now, **before}:
            if name == "untrained" and before.get(name) == 0:
                continue  # the result is part of that with untrained models
            if name in _GROWING and (added := _added(before.get(name), now.get(name))) is not None:
                note = _("{path} is replaced by a file with more {setting}: {added}")
                notes += [note.format(path=folder / result, setting=name, added=", ".join(added))] if added else []
            elif _without_names(before.get(name)) != _without_names(now.get(name)):
                # As on the command line, where null stands for no value.
                old, other = (
                    value if isinstance(value := it.get(name), str) else json.dumps(value) for it in (before, now)
                )
                raise UserError(
                    f"{folder / result} holds the results with {name}={old}, which would be overwritten by those with "
                    f"{name}={other}; {way_out}"
                )
    if unknown:
        note = _("{folder}: the settings of these files are not recorded; they are replaced: {files}")
        notes.append(note.format(folder=folder, files=", ".join(unknown)))
    for note in notes:
        say(note)
    record = dict(sorted((stored | new).items()))  # in an order that does not depend on what was written first
    if stored != record:
        write_json(folder / WRITTEN, record)
    times = {result: _written_at(folder / result) for result in new}
    try:
        yield
    except BaseException:
        kept = stored | {result: now for result, now in new.items() if _written_at(folder / result) != times[result]}
        if not kept:
            (folder / WRITTEN).unlink(missing_ok=True)
        elif kept != record:
            write_json(folder / WRITTEN, dict(sorted(kept.items())))
        raise


def _added(before: Any, now: Any) -> list[str] | None:
    """Return the entries that `now` has in addition to those of `before`; None if `now` does not extend `before`.

    Entries of the form "name (digest)" are compared by their digests.
    """
    if not (isinstance(before, list) and isinstance(now, list)):
        return None
    added = list(now)
    for known in map(_without_names, before):
        same = next((one for one in added if _without_names(one) == known), None)
        if same is None:
            return None
        added.remove(same)
    return added


def _without_names(value: Any) -> Any:
    """Remove the name from each string "name (digest)" in the recorded value of a setting, since names may change."""
    if isinstance(value, list):
        return [_without_names(one) for one in value]
    return _NAME.sub("", value) if isinstance(value, str) else value


def _written_at(path: Path) -> int | None:
    return path.stat().st_mtime_ns if path.exists() else None


def tidy(directory: Path) -> None:
    """Remove leftovers of a killed process from a run directory, unless it is locked or cannot be written."""
    with suppress(UserError), locked_run(directory):
        pass


def save_weights(path: Path, model: PronounModel, tokenizer: Path | None = None) -> None:
    """Write a model's weights atomically, with a hash of the weights.

    If `tokenizer`, the path of the tokenizer's file, is given, a hash of this file is written too. Tied weights are
    written once.
    """
    arrays = {name: tensor.numpy() for name, tensor in distinct_tensors(model).items()}
    write_arrays(path, arrays, {} if tokenizer is None else {_TOKENIZER: file_digest(tokenizer)})


def distinct_tensors(model: PronounModel) -> dict[str, torch.Tensor]:
    """Return a model's weights, keyed by name, on the CPU; tied weights appear once."""
    seen: set[int] = set()
    tensors = {}
    for name, value in model.state_dict().items():
        if value.data_ptr() not in seen:
            tensors[name] = value.detach().cpu().contiguous()
        seen.add(value.data_ptr())
    return tensors


def save_settings(layout: RunFiles, config: Config, tokenizer: Tokenizer) -> None:
    """Write the tokenizer of a run, and then its settings; the run can be resumed as soon as its settings exist."""
    write_text(layout.tokenizer, tokenizer.dumps())
    write_text(layout.config, config_yaml(config))


@torch.inference_mode(False)  # weights that are created in inference mode never have gradients
def load(directory: str | Path, device: Device | None = None) -> Run:
    """Load a finished run, or pretrained weights as a run.

    Args:
        directory: folder of the run or of the weights; "hf://owner/name" for a model on the Hugging Face Hub, which is
            downloaded; or "shipped" for the run inside the package. Measurements are written to the folder of a local
            run, or else to `results_folder`.
        device: device for the model, by default the CPU.

    Raises:
        UserError: the model cannot be downloaded, the packaged run is missing, the folder holds neither a run nor
            weights, training has not finished, a file is broken, the encoder of this package does not support the
            weights, or this machine lacks the device.
    """
    computes_on = torch_device((device or Device()).device)
    name = str(directory)
    if directory == shipped.SHIPPED:
        shipped.check_release()
    is_published = directory == shipped.SHIPPED or name.startswith(HUB_PREFIX)
    folder = locate_model(name, "run") if is_published else Path(directory).expanduser()
    run = pretrained_run(folder) if is_pretrained(folder) else _stored_run(folder)
    if is_published:
        run = replace(run, directory=results_folder(name), origin=folder)
    run.model.to(computes_on)
    if computes_on.type == "cuda":
        # By default, recurrent layers use TF32, unlike matrix products.
        torch.backends.cudnn.rnn.fp32_precision = "ieee"  # type: ignore[attr-defined]
    return run


def results_folder(name: str) -> Path:
    """Return the folder for measurements on a model whose own folder must not be written to.

    It is outputs/<owner>--<name> for a model on the Hugging Face Hub, otherwise outputs/<name of the model's folder>.
    """
    if name.startswith(HUB_PREFIX):
        return Path(Config.output) / name.removeprefix(HUB_PREFIX).strip("/").replace("/", "--")
    return Path(Config.output) / (Path(name).name or Path(name).resolve().name)


def _stored_run(directory: Path) -> Run:
    layout = RunFiles(directory)
    config = settings_of(layout.directory)
    tokenizer = Tokenizer.load(layout.tokenizer)
    if not layout.weights.exists():
        unfinished = f": training has not finished (resume={directory} continues it)" if layout.config.exists() else ""
        raise UserError(f"{layout.weights} is missing{unfinished}")
    training_record(layout.directory)  # a report needs it, and a damaged record should fail early
    model = randomly_initialised(config, tokenizer.size, config.seed)
    load_weights(model, layout, layout.weights, config.model.tied_output)
    return Run(layout.directory, config, tokenizer, model)


def load_weights(model: PronounModel, layout: RunFiles, path: Path, tied_output: bool) -> None:
    """Load the weights of a run from the file `path` into a model; 16-bit values become float32.

    With `tied_output`, output layer and token embedding share weights, which are stored once in the file.

    Raises:
        FileNotFoundError: the file does not exist.
        UserError: the file is damaged, was written with another tokenizer or does not match the settings; or a value is
            not finite, or is neither float32 nor float16.
    """
    way_out = "train again or restore the file"
    arrays, digests = read_arrays(path, way_out)
    if _TOKENIZER in digests and digests[_TOKENIZER] != file_digest(layout.tokenizer):
        raise UserError(f"{layout.tokenizer}: not the tokenizer that {path.name} was trained with; restore the file")
    state = model.state_dict()
    tied = {"output.linear.weight"} if tied_output else set()
    of_other_shape = [name for name in state.keys() & arrays.keys() if tuple(state[name].shape) != arrays[name].shape]
    if (state.keys() - tied) - arrays.keys() or arrays.keys() - state.keys() or of_other_shape:
        config = layout.config if layout.config.exists() else layout.directory / CONFIG
        raise UserError(f"{path}: the weights do not match {config}; {way_out}")
    for name, values in arrays.items():
        if values.dtype not in _WEIGHT_TYPES:
            raise UserError(f"{path}: {name} holds numbers of type {values.dtype}, not float32 or float16; {way_out}")
        if not np.isfinite(values).all():
            raise UserError(f"{path}: {name} holds numbers that are not finite; {way_out}")
    weights = {name: torch.from_numpy(values.astype(np.float32, copy=False)) for name, values in arrays.items()}
    model.load_state_dict(weights, strict=False)


def pretrained_run(folder: Path) -> Run:
    """Open pretrained weights as a run with encoder and tokenizer, but without a prediction head or data.

    Raises:
        UserError: a file is missing or broken, or the encoder of this package does not support the model.
    """
    locate_model(str(folder), "run")
    encoder = encoder_settings(folder)  # first, since tokenizers of unsupported models may lack special tokens
    imported = read_tokenizer(folder)
    config = Config(
        start=str(folder), data=NoData(), model=encoder, task=Task(prediction=NoPrediction(), masked_lm=0.15)
    )
    model = randomly_initialised(config, imported.tokenizer.size, config.seed)
    load_pretrained(model, folder, imported.rows)
    return Run(results_folder(str(folder)), config, imported.tokenizer, model)


def training_record(directory: Path) -> dict[str, Any]:
    """Return the content of the file `training.json` in a run directory; empty if the file is missing.

    Raises:
        UserError: the file is damaged.
    """
    path = RunFiles(directory).training
    way_out = "restore the file, or delete it: the run can be used without its history"
    try:
        record = read_json(path, _RECORD, way_out)
    except FileNotFoundError:
        return {}
    best, count = record.get("best_validation", 0), len(record["validations"])
    if not 0 <= best < max(count, 1):
        raise UserError(f"{path}: best_validation: {best} must be one of the {count} validations; {way_out}")
    return dict(record)


_RECORD = {
    "steps?": int,
    "train_seconds?": float,
    "curves_seconds?": float,
    "computed_with?": dict,
    "machine?": dict,
    "training_examples?": str,
    "diverged?": bool,
    "best_validation?": int,
    "validations": [{str: float}],
}
