"""A run directory and what is read back from it: settings, tokenizer and weights; primitives and tensors only."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from anaphora.base.device import Device, torch_device
from anaphora.base.errors import UserError
from anaphora.base.files import atomic_write, write_text
from anaphora.base.hub import HUB_PREFIX
from anaphora.data.tokens.pretrained import read_tokenizer
from anaphora.data.tokens.tokenizer import Tokenizer
from anaphora.model.pretrained.families import encoder_settings
from anaphora.model.pretrained.weights import load_pretrained
from anaphora.model.pronoun_model import PronounModel
from anaphora.runs.warm_start import is_pretrained, locate_model
from anaphora.settings import stored
from anaphora.settings.data import NoData
from anaphora.settings.model.prediction import NoPrediction
from anaphora.settings.run import Config
from anaphora.settings.training import Task


@dataclass(frozen=True)
class RunFiles:
    """Where things lie in a run directory."""

    directory: Path

    @property
    def config(self) -> Path:
        return self.directory / "config.yaml"

    @property
    def tokenizer(self) -> Path:
        return self.directory / "tokenizer.json"

    @property
    def weights(self) -> Path:
        """The best weights; their presence says that training has finished."""
        return self.directory / "model.safetensors"

    @property
    def training(self) -> Path:
        """What training reached: steps, seconds, validations."""
        return self.directory / "training.json"

    @property
    def metrics(self) -> Path:
        return self.directory / "metrics.json"

    @property
    def figures(self) -> Path:
        return self.directory / "figures"

    @property
    def checkpoints(self) -> Path:
        return self.directory / "checkpoints"

    @property
    def last_checkpoint(self) -> Path:
        """Weights and optimizer of the last validation, to resume from."""
        return self.checkpoints / "last.ckpt"


@dataclass(frozen=True)
class Run:
    """A stored run: its settings, its tokenizer, and its model in evaluation mode."""

    directory: Path
    config: Config
    tokenizer: Tokenizer
    model: PronounModel

    @property
    def name(self) -> str:
        return self.directory.name

    def untrained_model(self, seed: int) -> PronounModel:
        """A model of the same settings at its random start."""
        return randomly_initialised(self.config, self.tokenizer.size, seed).to(self.model.device)


def randomly_initialised(config: Config, vocabulary: int, seed: int) -> PronounModel:
    """A model at the random start of a seed, in evaluation mode; the caller's generator is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return PronounModel(config.model, config.task.prediction, vocabulary).eval()


def save_weights(path: Path, model: PronounModel) -> None:
    """Write a model's weights, whole or not at all; a tied matrix is written once."""
    seen: set[int] = set()
    tensors = {}
    for name, value in model.state_dict().items():
        if value.data_ptr() not in seen:
            tensors[name] = value.detach().cpu().contiguous()
        seen.add(value.data_ptr())
    with atomic_write(path) as draft:
        save_file(tensors, draft)


def save_settings(layout: RunFiles, config: Config, tokenizer: Tokenizer) -> None:
    """Write what a model needs beside its weights."""
    # The settings come last: where they are, everything is there to resume with.
    write_text(layout.tokenizer, tokenizer.dumps())
    write_text(layout.config, stored.dumps(config))


def load(directory: str | Path, place: Device | None = None) -> Run:
    """Read a finished run, or pretrained weights in its place.

    Args:
        directory: of the run or the weights, or "hf://owner/name"; what is measured on a model of the hub goes to
            outputs/<owner>--<name>.
        place: where its model computes, by default on the processor.

    Raises:
        UserError: the directory holds neither, the training has not finished, a file is broken, or the device is not
            there.
    """
    device = torch_device((place or Device()).device)
    name = str(directory)
    folder = locate_model(name, "run") if name.startswith(HUB_PREFIX) else Path(directory)
    run = pretrained_run(folder) if is_pretrained(folder) else _stored_run(folder)
    if name.startswith(HUB_PREFIX):
        run = replace(run, directory=Path(Config.output) / name.removeprefix(HUB_PREFIX).replace("/", "--"))
    run.model.to(device)
    if device.type == "cuda":
        # Recurrent layers alone are rounded there by default.
        torch.backends.cudnn.rnn.fp32_precision = "ieee"  # type: ignore[attr-defined]
    return run


def _stored_run(directory: str | Path) -> Run:
    """A finished run of ours.

    Raises:
        UserError: the directory holds none, the training has not finished, or a file is broken.
    """
    layout = RunFiles(Path(directory))
    config = stored.read(layout.config)
    tokenizer = Tokenizer.load(layout.tokenizer)
    if not layout.weights.exists():
        raise UserError(f"{layout.weights} is missing: training has not finished (resume={directory} continues it)")
    try:
        tensors = load_file(layout.weights)
    except (SafetensorError, OSError) as error:
        raise UserError(f"{layout.weights}: broken or cut off ({error}); train again or restore the file") from None
    tensors = {present_weight_name(name): value for name, value in tensors.items()}
    model = randomly_initialised(config, tokenizer.size, config.seed)
    missing, unexpected = (
        model.load_state_dict(tensors, strict=False) if _shapes_match(model, tensors) else (["shape"], [])
    )
    tied = {"output.linear.weight"} if config.model.tied_output else set()
    if set(missing) - tied or unexpected:
        raise UserError(f"{layout.weights}: the weights do not fit {layout.config}")
    return Run(layout.directory, config, tokenizer, model)


def present_weight_name(name: str) -> str:
    """A weight's name in the present model; runs of before called the prediction head `readout`."""
    return name.replace("readout.", "prediction_head.", 1) if name.startswith("readout.") else name


def pretrained_run(folder: Path) -> Run:
    """Pretrained weights as a run that answers nothing: encoder and tokenizer, no prediction head and no data.

    What is measured on them goes to outputs/<the folder's name>, for nothing may be written beside them.

    Raises:
        UserError: a file is missing, broken, or of a kind that our encoder cannot hold.
    """
    locate_model(str(folder), "run")
    imported = read_tokenizer(folder)
    config = Config(
        start=str(folder),
        data=NoData(),
        model=encoder_settings(folder),
        task=Task(prediction=NoPrediction(), masked_lm=0.15),
    )
    model = randomly_initialised(config, imported.tokenizer.size, config.seed)
    load_pretrained(model, folder, imported.rows)
    directory = Path(config.output) / (folder.name or folder.resolve().name)
    return Run(directory, config, imported.tokenizer, model)


def _shapes_match(model: PronounModel, tensors: dict[str, torch.Tensor]) -> bool:
    wanted = model.state_dict()
    return all(name not in wanted or wanted[name].shape == value.shape for name, value in tensors.items())


def training_record(directory: Path) -> dict[str, Any]:
    """What `training.json` holds, under the present names of its metrics; empty where there is none."""
    path = RunFiles(directory).training
    if not path.exists():
        return {}
    record = dict(json.loads(path.read_text(encoding="utf-8")))
    record["validations"] = [
        {present_metric_name(name): value for name, value in validation.items()} for validation in record["validations"]
    ]
    return record


def present_metric_name(name: str) -> str:
    """A validation's metric by its present name; runs of before called a head's candidate accuracy `pointing`."""
    return name.replace("attention_pointing/", "attention_candidate_accuracy/", 1)
