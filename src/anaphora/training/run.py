"""From settings to a run directory: read the data, train, keep the best weights; resumable, never overwriting."""

from __future__ import annotations

import logging
import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import pytorch_lightning as lightning

from anaphora.base.device import torch_device
from anaphora.base.errors import UserError
from anaphora.data.tokens.tokenizer import Tokenizer
from anaphora.model.pronoun_model import PronounModel
from anaphora.runs.directory import Run, RunFiles, load, locked_run, randomly_initialised, save_settings
from anaphora.runs.warm_start import locate_model
from anaphora.settings import stored
from anaphora.settings.data import TextCorpus
from anaphora.settings.model.encoder import check_length
from anaphora.settings.run import Config
from anaphora.training.callbacks import ProgressBar, ValidationCheckpoint
from anaphora.training.checkpoints import CheckpointFile, check_resumable
from anaphora.training.controls import freeze, shuffle_labels
from anaphora.training.items import TrainingDataModule, minimal_pairs_of, prepare_examples, prepare_texts
from anaphora.training.loggers import build_loggers, curves_file, read_curves
from anaphora.training.module import DivergedError, TrainingModule
from anaphora.training.tensorboard.curves import CurvesCallback


@dataclass(frozen=True)
class TrainingResult:
    """What a training run reached."""

    directory: Path
    steps: int
    seconds: float
    validation_loss: float


def train(config: Config) -> TrainingResult:
    """Train a model and leave its run directory.

    Args:
        config: the settings; `config.resume` names a run to continue with the settings that it was begun with.

    Raises:
        UserError: anything that a user can correct, before any long work.
    """
    resumed = config.resume is not None
    if config.resume is not None:
        directory = Path(config.resume)
        config = replace(stored.read(RunFiles(directory).config), trainer=config.trainer, resume=None)
    else:
        directory = Path(config.output) / (config.name or default_run_name())
    layout, accelerator = RunFiles(directory), torch_device(config.trainer.device).type
    _check_run_directory(layout, resumed)
    with locked_run(directory):
        _check_run_directory(layout, resumed)  # another process may have ended here just now
        return _train(config, layout, accelerator, resumed)


def _check_run_directory(layout: RunFiles, resumed: bool) -> None:
    """Refuse a directory in which there is nothing to continue, or something that would be overwritten."""
    if resumed and layout.weights.exists():
        raise UserError(f"{layout.directory}: this run has finished; there is nothing to resume")
    if not resumed and layout.config.exists():
        raise UserError(
            f"{layout.directory} already holds a run; choose another name=, "
            f"or continue it with resume={layout.directory}"
        )


def _train(config: Config, layout: RunFiles, accelerator: str, resumed: bool) -> TrainingResult:
    if resumed:
        check_resumable(layout, config)
        if "csv" in config.trainer.loggers and curves_file(layout.directory).exists():
            read_curves(curves_file(layout.directory))
    source = (
        None if config.start is None or (resumed and layout.last_checkpoint.exists()) else load_start_run(config.start)
    )
    known = Tokenizer.load(layout.tokenizer) if resumed else source.tokenizer if source is not None else None
    prepared = prepare_texts if isinstance(config.data, TextCorpus) else prepare_examples
    config, tokenizer, encoded, validation = prepared(config, known)
    check_length(config.model, max(encoded.max_tokens(), validation.max_tokens()))
    if config.task.shuffled_labels:
        for number, split in enumerate((encoded, validation)):
            shuffle_labels(split, (config.seed, number))
    minimal_pairs = minimal_pairs_of(encoded, config) if config.task.minimal_pair_contrast else None
    if not resumed:
        save_settings(layout, config, tokenizer)
    model = randomly_initialised(config, tokenizer.size, config.seed).train()
    if source is not None:
        copy_start_weights(model, source, config)
    freeze(model, config.optimizer.frozen, config.optimizer.frozen_layers)
    steps = min(config.optimizer.steps, config.trainer.limit_steps or config.optimizer.steps)
    data = TrainingDataModule(config, encoded, validation, steps, minimal_pairs)
    module = TrainingModule(model, config.task, config.optimizer, config.seed)
    history = ValidationCheckpoint(layout, config.validation)
    curves = CurvesCallback(history, config, tokenizer, validation, steps)
    if config.trainer.compile:
        model.encoder.compile()
    silence_lightning()
    trainer = lightning.Trainer(
        accelerator=accelerator,
        devices=1,
        precision=config.trainer.precision,  # type: ignore[arg-type]  # checked by its settings
        max_steps=steps,
        max_epochs=-1,
        reload_dataloaders_every_n_epochs=1,
        num_sanity_val_steps=0,
        use_distributed_sampler=False,
        logger=build_loggers(layout, config.trainer.loggers, resumed),
        plugins=[CheckpointFile()],
        callbacks=[history, curves, *([ProgressBar(steps)] if config.trainer.progress else [])],
        enable_checkpointing=False,
        enable_model_summary=False,
        enable_progress_bar=False,
    )
    try:
        trainer.fit(
            module,
            datamodule=data,
            ckpt_path=str(layout.last_checkpoint) if resumed and layout.last_checkpoint.exists() else None,
            weights_only=True,
        )
    except DivergedError as error:
        raise UserError(f"{error}; {history.keep_what_there_is()}") from None
    except SystemExit:
        # Lightning makes an exit of an interrupt.
        raise KeyboardInterrupt from None
    return TrainingResult(
        directory=layout.directory,
        steps=int(history.validations[-1]["step"]),
        seconds=round(history.seconds, 3),
        validation_loss=history.best_validation.get("validation/loss", float("nan")),
    )


def load_start_run(name: str) -> Run:
    """What a run starts from.

    Raises:
        UserError: there is nothing, or it cannot be read.
    """
    return load(locate_model(name, "start"))


def copy_start_weights(model: PronounModel, source: Run, config: Config) -> None:
    """Give a model the weights of its start: encoder, vocabulary output, and a prediction head of the same settings.

    A control's encoder may lack what it takes away, its positions or queries and keys; all that it has is taken over.

    Raises:
        UserError: the encoders have different shapes.
    """
    try:
        missing, _ = model.encoder.load_state_dict(source.model.encoder.state_dict(), strict=False)
    except RuntimeError:
        missing = ["shape"]
    if missing:
        raise UserError(f"start ({config.start}): its encoder has another shape than the settings in model say")
    model.output.load_state_dict(source.model.output.state_dict())
    if config.task.prediction == source.config.task.prediction:
        model.prediction_head.load_state_dict(source.model.prediction_head.state_dict())


def default_run_name() -> str:
    """A run's name when none is given: the time."""
    return time.strftime("%Y-%m-%d_%H-%M-%S")


def silence_lightning() -> None:
    """Keep Lightning's hints off the screen; its errors still show."""
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="pytorch_lightning")
    warnings.filterwarnings("ignore", module="torch.utils._pytree")
