"""Callback that sends the metrics, images and predictions of a run to the run's loggers during training."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytorch_lightning as lightning

from anaphora.analysis.maps.capture import maps_of_each
from anaphora.analysis.maps.record import AttentionRecord
from anaphora.base.batch import Batch
from anaphora.data.batches.encoded import EncodedSplit
from anaphora.data.tokens.tokenizer import Tokenizer
from anaphora.model.pronoun_model import PronounModel
from anaphora.settings.run import Config, config_yaml
from anaphora.training.callbacks import ValidationCheckpoint, best_head, validation_metrics
from anaphora.training.loggers import RunTensorBoardLogger
from anaphora.training.module import CURVES_EVERY, TrainingModule
from anaphora.training.tensorboard import layout
from anaphora.training.tensorboard.pictures import head_maps_image, pronoun_rows_image


class CurvesCallback(lightning.Callback):
    """Callback that logs scalars to all loggers during training, and images and predictions to TensorBoard.

    Scalars are logged after the first step, every ten steps, at each validation and at the end; images and predictions
    at most `trainer.pictures` times in a run. The step of a value is the number of completed training steps, also in a
    resumed run. The callback draws no random numbers and changes no weights. The time that it takes is added to
    `history.curves_seconds`.
    """

    def __init__(
        self, history: ValidationCheckpoint, config: Config, tokenizer: Tokenizer, validation: EncodedSplit
    ) -> None:
        self.history, self.config, self.tokenizer, self.validation = history, config, tokenizer, validation
        self.image_steps = layout.image_steps(config.steps, config.validation.every, config.trainer.pictures)
        self._probes: list[tuple[str, int]] = []
        self._tokens, self._since = 0, 0.0

    def on_train_start(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        assert isinstance(module, TrainingModule)
        with self._timed():
            step, board = trainer.global_step, _tensorboard(trainer)
            has_maps = module.model.encoder.has_maps
            if has_maps and self.config.trainer.pictures and board is not None:
                self._probes = layout.select_probes(self.validation.examples, self.validation)
            if step:
                return
            for logger in trainer.loggers:
                logger.log_hyperparams(layout.hyperparameters(self.config))
            if board is not None:
                board.add_text("settings", layout.markdown_code_block(config_yaml(self.config)), step)
                board.add_layout(layout.scalar_layout(self.config, has_maps and len(self.validation.examples) > 0))
                if step in self.image_steps:
                    module.model.eval()
                    self._draw(board, module.model, step)
                    module.model.train()
            _save(trainer)

    def on_train_epoch_start(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        self._tokens, self._since = 0, time.perf_counter()

    def on_train_batch_end(
        self,
        trainer: lightning.Trainer,
        module: lightning.LightningModule,
        outputs: object,
        batch: Batch,
        batch_idx: int,
    ) -> None:
        assert isinstance(module, TrainingModule)
        self._tokens += batch.real_tokens
        step = trainer.global_step
        if step != 1 and step % CURVES_EVERY:
            return
        with self._timed():
            values = {f"train/{name}": float(value) for name, value in module.step_metrics.items()}
            now = time.perf_counter()
            if step > 1:  # the first step includes warm-up
                values["train/tokens_per_second"] = self._tokens / (now - self._since)
            self._tokens, self._since = 0, now
            _log(trainer, values, step)

    def on_validation_end(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        assert isinstance(module, TrainingModule)
        with self._timed():
            step, board = trainer.global_step, _tensorboard(trainer)
            values = validation_metrics(trainer)
            _log(trainer, values, step)
            if step in self.image_steps and board is not None:
                self._draw(board, module.model, step)
                if module.predictions is not None:
                    tables = layout.prediction_tables(module.predictions, self.validation, best_head(values))
                    for tag, table in tables.items():
                        board.add_text(tag, table, step)
            _save(trainer)

    def on_fit_end(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        """Log the metrics of the validation at which the final weights were saved, for comparisons of runs."""
        best = self.history.best_validation
        measures = {"accuracy": "validation/accuracy", "loss": "validation/loss", "best_head": "validation/best_head"}
        values = {f"final/{name}": best[measure] for name, measure in measures.items() if measure in best}
        step = int(best["step"])
        _log(trainer, {**values, "final/step": step, "final/seconds": round(self.history.seconds, 3)}, step)
        _save(trainer)

    def _draw(self, board: RunTensorBoardLogger, model: PronounModel, step: int) -> None:
        examples = [self.validation.examples[number] for _, number in self._probes]
        encoded_maps = maps_of_each(model, self.tokenizer, examples)
        for (tag, _), example, (tokens, maps) in zip(self._probes, examples, encoded_maps, strict=True):
            row = maps[:, :, tokens.covering(example.pronoun)].mean(axis=2)
            record = AttentionRecord.of(example, tokens, row)
            board.add_image(f"{tag}_pronoun", pronoun_rows_image(record, step), step)
            board.add_image(f"{tag}_maps", head_maps_image(record, maps, step), step)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.history.curves_seconds += time.perf_counter() - begin


def _log(trainer: lightning.Trainer, values: Mapping[str, float], step: int) -> None:
    tagged = {layout.tensorboard_tag(name): value for name, value in values.items()}
    for logger in trainer.loggers:
        logger.log_metrics(dict(tagged), step)


def _save(trainer: lightning.Trainer) -> None:
    for logger in trainer.loggers:
        logger.save()


def _tensorboard(trainer: lightning.Trainer) -> RunTensorBoardLogger | None:
    """Return the TensorBoard logger of a run, or None if `trainer.loggers` leaves it out."""
    return next((logger for logger in trainer.loggers if isinstance(logger, RunTensorBoardLogger)), None)
