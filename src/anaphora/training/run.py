"""Training of a model, from settings to a run directory; a run can be resumed and is never overwritten."""

from __future__ import annotations

import logging
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import pytorch_lightning as lightning
import torch

from anaphora.base.console import working
from anaphora.base.device import torch_device
from anaphora.base.errors import UserError
from anaphora.base.files import OTHER_FOLDER
from anaphora.base.translation import _
from anaphora.data.batches.batching import MinimalPairs
from anaphora.data.tokens.tokenizer import Tokenizer
from anaphora.model.pronoun_model import PronounModel
from anaphora.runs.directory import Run, RunFiles, load, locked_run, randomly_initialised, save_settings, tidy
from anaphora.runs.items import other_training_items
from anaphora.runs.machine import Machine, slow_settings
from anaphora.runs.processes import Processes, Terminated, started_processes
from anaphora.runs.warm_start import locate_model
from anaphora.settings.data import Data, TextCorpus
from anaphora.settings.model.encoder import check_length
from anaphora.settings.run import Config, read_config
from anaphora.settings.training import DECIDE_RESULTS
from anaphora.training.callbacks import ProgressBar, StopTogether, ValidationCheckpoint
from anaphora.training.checkpoints import check_checkpoint, read_checkpoint
from anaphora.training.items import (
    TrainingData,
    TrainingDataModule,
    minimal_pairs_of,
    prepare_examples,
    prepare_texts,
    replace_labels,
)
from anaphora.training.loggers import build_loggers, check_loggers, curves_file, quiet_writer_thread, read_curves
from anaphora.training.module import DivergedError, TrainingModule
from anaphora.training.ranks import check_same_on_every_rank, joined, on_every_rank, on_first_rank, trainer_options
from anaphora.training.tensorboard.curves import CurvesCallback
from anaphora.training.tensorboard.sentence_page import PAGE, SentencePage


def train(config: Config) -> Path:
    """Train a model, or continue the run that `config.resume` names with its original settings; return its directory.

    Raises:
        UserError: a setting is invalid, a file or directory is missing or cannot be used, the disk is full, or the
            training diverged.
    """
    processes, device = started_processes(), torch_device(config.trainer.device)
    with denormal_numbers_as_zero(), joined(processes, device), ExitStack() as until_the_end:

        def claim() -> _Claim:
            check_loggers(config.trainer.loggers)
            claimed = _claim_of(config)
            claimed.check_directory()
            until_the_end.enter_context(locked_run(claimed.layout.directory, "" if config.resume else OTHER_FOLDER))
            claimed.check_directory()  # another process may have just finished the run
            claimed.check_files()
            return claimed

        return _train(on_first_rank(claim), processes, device)


@contextmanager
def denormal_numbers_as_zero() -> Iterator[None]:
    """Flush denormal numbers (absolute value below 1.2e-38) to zero inside the `with` block.

    This includes threads that torch starts inside the block. Most processors multiply denormal numbers many times more
    slowly, and such numbers are common in Adam's moving averages of gradients that have vanished.
    """
    before = (torch.full((1,), 1e-38) * 0.1).item() == 0  # torch can set the mode but not report it
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


class _Claim(NamedTuple):
    """Run directory that this process has locked, with the settings of the run; every rank has the same values.

    If `checkpoint` is None, training starts from the first step. `moved` states whether the setting `resume_data` gives
    new paths of the data.
    """

    config: Config
    layout: RunFiles
    resumed: bool
    checkpoint: Path | None
    moved: bool = False

    def check_directory(self) -> None:
        """Raise UserError if a resumed run has finished, or if the directory of a new run already contains a run.

        Files that a killed process has left in a finished run are first removed.
        """
        if self.resumed and self.layout.weights.exists():
            tidy(self.layout.directory)
            raise UserError(f"{self.layout.directory}: this run has finished; there is nothing to resume")
        if not self.resumed and self.layout.config.exists():
            raise UserError(
                f"{self.layout.directory} already holds a finished run; choose another name="
                if self.layout.weights.exists()
                else f"{self.layout.directory} holds an unfinished run; continue it with "
                f"resume={self.layout.directory}, or choose another name="
            )

    def check_files(self) -> None:
        """Check the checkpoint, the best weights and the CSV curves of a resumed run; do nothing for a new run.

        Raises:
            UserError: a file is damaged or missing, or does not match the run's settings.
        """
        if self.resumed:
            check_checkpoint(self.layout, self.config)
            if "csv" in self.config.trainer.loggers and curves_file(self.layout.directory).exists():
                read_curves(curves_file(self.layout.directory))


def _claim_of(config: Config) -> _Claim:
    if config.resume is None:
        layout = RunFiles(Path(config.output) / (config.name or default_run_name()))
        return _Claim(config, layout, resumed=False, checkpoint=None)
    layout = RunFiles(Path(config.resume))
    begun = read_config(layout.config)
    places = config.resume_data.places
    data = _moved(begun.data, places)
    kept = {name: getattr(begun.trainer, name) for name in DECIDE_RESULTS}
    try:
        stored_config = replace(begun, data=data, trainer=replace(config.trainer, **kept), resume=None)
    except ValueError as error:
        raise UserError(f"{layout.directory}: {error}") from None
    last = layout.last_checkpoint
    return _Claim(stored_config, layout, resumed=True, checkpoint=last if last.exists() else None, moved=bool(places))


def _moved(data: Data, places: Mapping[str, Any]) -> Data:
    known = {one.name for one in fields(data)}
    for name, place in places.items():
        if name not in known:
            raise UserError(f"data.{name} ({place}): data={data.kind} of the resumed run has no such setting")
    return replace(data, **places)


def _check_moved(claimed: _Claim, items_digest: str) -> None:
    directory, data = claimed.layout.directory, claimed.config.data
    if claimed.checkpoint is None:
        raise UserError(
            f"data ({data.path_or_kind()}): {directory} has no checkpoint yet, which would show that the data are "
            "the same; begin again with another name="
        )
    states = read_checkpoint(claimed.checkpoint)["callbacks"].values()
    recorded = [state["training_examples"] for state in states if "training_examples" in state]
    if recorded != [items_digest]:
        raise UserError(other_training_items(data, directory.name))


def _prepare(claimed: _Claim) -> tuple[TrainingData, MinimalPairs | None, Run | None]:
    """Return the data, the minimal pairs if the loss needs them, and the run that provides initial weights, if any."""
    config, layout = claimed.config, claimed.layout
    source = None if config.start is None or claimed.checkpoint else load(locate_model(config.start, "start"))
    known = Tokenizer.load(layout.tokenizer) if claimed.resumed else source.tokenizer if source is not None else None
    data = (prepare_texts if isinstance(config.data, TextCorpus) else prepare_examples)(config, known)
    config, encoded, validation = data.config, data.training, data.validation
    check_length(config.model, max(encoded.max_tokens(), validation.max_tokens()))
    for number, split in enumerate((encoded, validation)):
        replace_labels(split, config.task.labels, (config.seed, number))
    minimal_pairs = minimal_pairs_of(encoded, config) if config.task.minimal_pair_contrast else None
    return data, minimal_pairs, source


def _train(claimed: _Claim, processes: Processes, device: torch.device) -> Path:
    layout = claimed.layout
    shows_progress = processes.rank == 0 and claimed.config.trainer.progress
    with working(_("reading the data")) if shows_progress else nullcontext():
        prepared, minimal_pairs, source = on_every_rank(lambda: _prepare(claimed))
    config, tokenizer, encoded, validation, items_digest = prepared
    check_same_on_every_rank(encoded.ids.flat, encoded.gold)
    if claimed.moved:
        on_every_rank(lambda: _check_moved(claimed, items_digest))
    if not claimed.resumed or claimed.moved:
        on_first_rank(lambda: save_settings(layout, config, tokenizer))
    model = randomly_initialised(config, tokenizer.size, config.seed).train()
    if source is not None:
        copy_start_weights(model, source, config)
    machine = Machine.present()
    if processes.rank == 0 and device.type == "cpu":
        size = sum(weight.numel() for weight in model.parameters())
        for line in slow_settings(machine, torch.get_num_threads(), str(config.trainer.precision), size):
            sys.stderr.write(f"{line}\n")  # standard output is reserved for the name of the run, which scripts read
    freeze(model, config.optimizer.frozen, config.optimizer.frozen_layers)
    data = TrainingDataModule(config, encoded, validation, minimal_pairs)
    encoded.examples = ()  # training reads only the arrays from here on
    module = TrainingModule(model, config.task, config.optimizer, config.seed)
    history = ValidationCheckpoint(layout, config, items_digest, machine)
    callbacks: list[lightning.Callback] = [history]
    if processes.rank == 0:
        callbacks.append(CurvesCallback(history, config, tokenizer, validation))
        callbacks.append(SentencePage(layout.directory / PAGE, config, tokenizer, validation))
        callbacks += [ProgressBar(config.steps)] if config.trainer.progress else []
    if processes.count > 1:
        callbacks.append(StopTogether())
    if config.trainer.compile:
        model.encoder.compile()
    _silence_lightning()
    trainer = lightning.Trainer(
        **trainer_options(processes, device),
        precision=config.trainer.precision,  # type: ignore[arg-type]  # checked by its settings
        max_steps=config.steps,
        max_epochs=-1,
        reload_dataloaders_every_n_epochs=1,
        num_sanity_val_steps=0,
        use_distributed_sampler=False,
        logger=build_loggers(layout, config.trainer.loggers, claimed.resumed) if processes.rank == 0 else False,
        callbacks=callbacks,
        enable_checkpointing=False,
        enable_model_summary=False,
        enable_progress_bar=False,
    )
    try:
        with quiet_writer_thread():
            trainer.fit(module, datamodule=data, ckpt_path=claimed.checkpoint, weights_only=True)
        history.keep_best_weights()
    except OSError as error:  # a full disk, which also affects loggers
        raise UserError(f"{layout.directory}: cannot be written ({error.strerror or error})") from None
    except DivergedError as error:
        raise UserError(f"{error}; {history.keep_diverged_weights()}") from None
    except SystemExit as left:
        # Lightning turns an interrupt into an exit.
        raise (left.__context__ if isinstance(left.__context__, Terminated) else KeyboardInterrupt()) from None
    return layout.directory


def copy_start_weights(model: PronounModel, source: Run, config: Config) -> None:
    """Copy the weights of a run's model into another model before training.

    The encoder and the output layer over the vocabulary are copied, and the prediction head if it has the same
    settings. Weights that the model lacks, such as position vectors or query and key projections, are ignored.

    Raises:
        UserError: the run's encoder lacks a weight of the model's encoder, or a weight has another shape.
    """
    try:
        missing, _ = model.encoder.load_state_dict(source.model.encoder.state_dict(), strict=False)
    except RuntimeError:
        missing = ["shape"]
    if missing:
        raise UserError(f"start ({config.start}): its encoder does not have the shape that the settings in model give")
    model.output.load_state_dict(source.model.output.state_dict())
    if config.task.prediction == source.config.task.prediction:
        model.prediction_head.load_state_dict(source.model.prediction_head.state_dict())


def freeze(model: PronounModel, projections: Sequence[str], layers: int | None) -> None:
    """Freeze the named projections in the attention of every layer, and the embedding and the lowest `layers` blocks.

    If `layers` is None, neither embedding nor blocks are frozen.
    """
    if layers is not None:
        encoder = model.encoder
        for module in (encoder.tokens, encoder.position, encoder.embedding_norm, *encoder.blocks[:layers]):
            module.requires_grad_(False)
    for block in model.encoder.blocks:
        for name in projections:
            block.get_submodule(f"attention.{name}").requires_grad_(False)


def default_run_name() -> str:
    """Return the current time as the name of a run."""
    return time.strftime("%Y-%m-%d_%H-%M-%S")


def _silence_lightning() -> None:
    """Hide Lightning's hints and warnings, but not its errors."""
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="pytorch_lightning")
    warnings.filterwarnings("ignore", module="torch.utils._pytree")
