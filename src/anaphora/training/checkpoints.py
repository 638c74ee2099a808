"""Reading, writing and checking the checkpoints of unfinished runs."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import torch
from pytorch_lightning.plugins.io import TorchCheckpointIO

from anaphora.base.errors import UserError, one_line
from anaphora.data.tokens.tokenizer import Tokenizer
from anaphora.runs.directory import RunFiles, load_weights, randomly_initialised
from anaphora.settings.run import Config


class CheckpointFile(TorchCheckpointIO):
    """Lightning plugin that reads and writes checkpoint files; reading never executes pickled code."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        """Write a checkpoint; unlike `torch.save`, raise OSError if the disk is full."""
        content = io.BytesIO()
        torch.save(checkpoint, content)
        Path(path).write_bytes(content.getbuffer())

    def load_checkpoint(self, path: str | Path, *_: Any, **__: Any) -> dict[str, Any]:
        """Read a checkpoint of tensors and primitive values, with the errors of `read_checkpoint`."""
        return read_checkpoint(Path(path))


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Read the checkpoint of a run into CPU memory.

    Raises:
        UserError: the file is missing or damaged, or not a checkpoint of a run.
    """
    way_out = f"delete {path.parent}, and resume={path.parent.parent} trains from the first step again"
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()  # torch does not check the checksums that it writes
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # zipfile, pickle and torch raise unrelated classes
        raise UserError(f"{path}: broken or cut off ({one_line(error)[:200]}); {way_out}") from None
    if damaged is not None:
        raise UserError(f"{path}: damaged at {damaged}; {way_out}")
    if not isinstance(content, dict) or not {"state_dict", "callbacks", "global_step"} <= content.keys():
        raise UserError(f"{path}: not a checkpoint of a run; {way_out}")
    return content


def check_checkpoint(layout: RunFiles, config: Config) -> None:
    """Check, before data are loaded, that the checkpoint and the best weights of a run can be used to resume the run.

    If the run has no checkpoint, nothing is checked, since training then starts again from the first step.

    Raises:
        UserError: a file is damaged or missing, or does not match the run's settings.
    """
    if not layout.last_checkpoint.exists():
        return
    way_out = f"delete {layout.checkpoints}, and resume={layout.directory} trains from the first step again"
    checkpoint = read_checkpoint(layout.last_checkpoint)
    model = randomly_initialised(config, Tokenizer.load(layout.tokenizer).size, config.seed)
    expected = {f"model.{name}": value.shape for name, value in model.state_dict().items()}
    if {name: value.shape for name, value in checkpoint["state_dict"].items()} != expected:
        raise UserError(f"{layout.last_checkpoint}: the weights do not match {layout.config}; {way_out}")
    try:
        load_weights(model, layout, layout.best_weights, config.model.tied_output)
    except FileNotFoundError:
        raise UserError(f"{layout.best_weights} is missing; {way_out}") from None
    except UserError as error:
        raise UserError(f"{error}; or {way_out}") from None
