"""Callbacks of a training run: a progress bar, checkpoints, and a stop of all processes at the same step."""

from __future__ import annotations

import math
import shutil
import signal
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict
from types import FrameType
from typing import Any

import pytorch_lightning as lightning
import torch
from tqdm import tqdm

from anaphora.base.errors import UserError
from anaphora.base.files import atomic_write, write_json
from anaphora.base.translation import _
from anaphora.model.linear import has_faster_kernel
from anaphora.runs.directory import RunFiles, save_weights
from anaphora.runs.items import other_training_items
from anaphora.runs.machine import Machine
from anaphora.settings.run import Config
from anaphora.training.module import TrainingModule

_BAR = "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}<{remaining}, {rate_noinv_fmt}{postfix}]"
"""Format of tqdm's bar that always shows steps per second, and never seconds per step."""


class ProgressBar(lightning.Callback):
    """Callback with a single progress bar over all steps."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self._bar: Any = None

    def on_train_start(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        self._bar = tqdm(
            desc=_("training steps"),
            total=self.steps,
            initial=trainer.global_step,
            bar_format=_BAR,
            unit="",
            dynamic_ncols=True,
            mininterval=1,
        )

    def on_train_batch_end(
        self, trainer: lightning.Trainer, module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        metrics = trainer.progress_bar_metrics
        self._bar.set_postfix({name: f"{float(value):.3f}" for name, value in metrics.items()}, refresh=False)
        self._bar.update(trainer.global_step - self._bar.n)

    def on_train_end(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        self._bar.close()

    def on_exception(
        self, trainer: lightning.Trainer, module: lightning.LightningModule, exception: BaseException
    ) -> None:
        if self._bar is not None:
            self._bar.close()


class StopTogether(lightning.Callback):
    """Callback that stops all ranks at the same step after any rank has received SIGTERM or SIGINT.

    Lightning's handler communicates with the other ranks from inside the signal handler, possibly while gradients are
    being reduced. This callback only sets `TrainingModule.stop_signal`, which the ranks exchange at every step. A
    second signal stops the process at once.
    """

    def on_train_start(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        assert isinstance(module, TrainingModule)

        def note(number: int, _frame: FrameType | None) -> None:
            if module.stop_signal is not None:
                raise KeyboardInterrupt
            module.stop_signal = number

        # This must happen after Lightning has set its own handlers.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, note)


class ValidationCheckpoint(lightning.Callback):
    """Callback that records validations, writes the best weights and a checkpoint, and does early stopping.

    All files are written atomically, so a killed run resumes from its last validation. Only rank 0 validates and
    writes, but every rank stores the metrics of the validations, so that all ranks make the same decisions.

    Attributes:
        validations: training step and metrics of each validation.
        seconds: duration of training up to the last validation, including the time before an interruption.
        curves_seconds: part of `seconds` that `CurvesCallback` took.
    """

    def __init__(self, layout: RunFiles, config: Config, training_items: str, machine: Machine) -> None:
        self.layout, self.config, self.training_items, self.machine = layout, config, training_items, machine
        self.validations: list[dict[str, float]] = []
        self.seconds = 0.0
        self.curves_seconds = 0.0
        self._since = time.perf_counter()
        self._writes = False
        self._computed_with: dict[str, Any] = {}

    @property
    def best_validation(self) -> dict[str, float]:
        """Return the step and the metrics of the validation at which the run's final weights were saved."""
        return self.validations[self._best()]

    def state_dict(self) -> dict[str, Any]:
        return {
            "validations": self.validations,
            "seconds": self.seconds,
            "curves_seconds": self.curves_seconds,
            "training_examples": self.training_items,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the state of this callback from a checkpoint.

        Raises:
            UserError: the checkpoint is from training on other items.
        """
        self.validations = state_dict["validations"]
        self.seconds, self.curves_seconds = state_dict["seconds"], state_dict["curves_seconds"]
        if state_dict["training_examples"] != self.training_items:
            raise UserError(other_training_items(self.config.data, self.layout.directory.name))

    def setup(self, trainer: lightning.Trainer, module: lightning.LightningModule, stage: str) -> None:
        # Set here, because training does not start in a run that is resumed after its last step.
        self._writes = trainer.is_global_zero
        self._computed_with = computed_with(trainer, compiled=self.config.trainer.compile)

    def on_train_start(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        self._since = time.perf_counter()

    def on_train_epoch_end(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        assert isinstance(module, TrainingModule)
        # When a run is resumed, Lightning first ends the epoch of the checkpoint again, which may be the last one.
        if not self.validations or self.validations[-1]["step"] != trainer.global_step:
            self._record(trainer, module)
        patience = self.config.validation.patience
        if patience and self._since_best() >= patience:
            trainer.should_stop = True

    def _record(self, trainer: lightning.Trainer, module: TrainingModule) -> None:
        """Record the metrics of a validation, save the weights if they are the best so far, and save a checkpoint."""
        numbers = validation_metrics(trainer).items()
        metrics = {name: value for name, value in numbers if math.isfinite(value)}  # JSON has no NaN or infinity
        metrics = trainer.strategy.broadcast(metrics)
        self.validations.append({"step": trainer.global_step, **metrics})
        if self._since_best() == 0 and self._writes:
            save_weights(self.layout.best_weights, module.model, self.layout.tokenizer)
        now = time.perf_counter()
        self.seconds, self._since = self.seconds + now - self._since, now
        last = self.layout.last_checkpoint
        with atomic_write(last) if self._writes else nullcontext(last) as draft:
            trainer.save_checkpoint(draft)  # called on every rank; only rank 0 writes

    def on_fit_end(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        self.finish()

    def finish(self, *, diverged: bool = False) -> None:
        """Write training.json (duration, validations, machine, and whether training diverged); only rank 0 writes."""
        if not self._writes:
            return
        record = {
            "steps": int(self.validations[-1]["step"]),
            "train_seconds": round(self.seconds, 3),
            "curves_seconds": round(self.curves_seconds, 3),
            "computed_with": self._computed_with,
            "machine": asdict(self.machine),
            "best_validation": self._best(),
            "validations": self.validations,
            "training_examples": self.training_items,
        }
        write_json(self.layout.training, {**record, "diverged": True} if diverged else record)

    def keep_best_weights(self) -> None:
        """Make the best weights the run's final weights, and remove the checkpoints; only rank 0 does this.

        Call it last: a run with final weights counts as finished and is not resumed, so its curves must be complete.
        """
        if self._writes:
            self.layout.best_weights.replace(self.layout.weights)
            self.remove_checkpoints()

    def keep_diverged_weights(self) -> str:
        """After training has diverged, make the best weights the final weights of the run.

        No weights are saved if no validation loss has been measured yet or if `validation.keep=last`.

        Returns:
            The last part of the error message, which says whether and where weights were saved.
        """
        best = self.validations[self._best()] if self.validations else {}
        if self.config.validation.keep == "last" or "validation/loss" not in best:
            return "no weights are kept"
        self.finish(diverged=True)
        self.keep_best_weights()
        return f"the best weights before, of step {best['step']:.0f}, are kept in {self.layout.weights}"

    def remove_checkpoints(self) -> None:
        """Remove the checkpoints, which take two to three times as much space as the weights."""
        shutil.rmtree(self.layout.checkpoints, ignore_errors=True)  # remaining files do no harm

    def _best(self) -> int:
        """Return the index of the validation with the best weights so far: the first with the lowest loss.

        If `validation.keep=last`, or if no validation has a loss, the last validation counts as the best.
        """
        losses = [metrics.get("validation/loss", math.inf) for metrics in self.validations]
        # Without a prediction head, only runs on texts have a validation loss.
        if self.config.validation.keep == "last" or min(losses) == math.inf:
            return len(losses) - 1
        return losses.index(min(losses))

    def _since_best(self) -> int:
        return len(self.validations) - 1 - self._best()


def validation_metrics(trainer: lightning.Trainer) -> dict[str, float]:
    """Return the metrics of the last validation, keyed by name; the training loss is left out."""
    return {name: float(value) for name, value in trainer.callback_metrics.items() if not name.startswith("train/")}


def best_head(metrics: Mapping[str, float]) -> tuple[int, int] | None:
    """Return layer and head with the highest candidate accuracy in a validation; None if it did not measure heads."""
    accuracies = {name: value for name, value in metrics.items() if name.startswith("attention_candidate_accuracy/")}
    if not accuracies:
        return None
    layer, head = max(accuracies, key=accuracies.__getitem__).rpartition("/")[2].split("_")[1::2]
    return int(layer), int(head)


def computed_with(trainer: lightning.Trainer, *, compiled: bool) -> dict[str, Any]:
    """Return the properties of a run's software, hardware and settings that affect rounding errors.

    "products" names the library that computes the matrix products of linear layers.
    """
    device = trainer.strategy.root_device.type
    plain = device == "cpu" and trainer.precision == "32-true" and not compiled
    return {
        "torch": torch.__version__,
        "device": device,
        "precision": str(trainer.precision),
        "compiled": compiled,
        "threads": torch.get_num_threads(),
        "processes": trainer.world_size,
        "products": "oneDNN" if plain and has_faster_kernel() else "torch",
    }
