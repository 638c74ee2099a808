"""A callback that shows a run in TensorBoard, and the time that it took."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytorch_lightning as lightning

from anaphora import config as configuration
from anaphora.analysis.capture import each_map
from anaphora.analysis.record import AttentionRecord
from anaphora.config import Config
from anaphora.data.batch import Encoded
from anaphora.data.tokenizer import Tokenizer
from anaphora.model.resolver import Resolver
from anaphora.report.probe_pictures import maps_picture, rows_picture
from anaphora.training import shown
from anaphora.training.board import Board
from anaphora.training.module import TrainingModule


class Curves(lightning.Callback):
    """Numbers every few steps, heads at each validation, pictures and answers at a few moments (`trainer.pictures`).

    Nothing here draws a random number or touches a weight. Steps are counted as done, so that a resumed run goes on
    where its checkpoint stands.

    Attributes:
        seconds: what all of it took, the resumed parts of a run included.
    """

    def __init__(
        self, directory: Path, config: Config, tokenizer: Tokenizer, validation: Encoded, steps: int, resumed: bool
    ) -> None:
        self.directory, self.config, self.tokenizer, self.validation = directory, config, tokenizer, validation
        self.resumed = resumed
        self.moments = shown.moments(steps, config.validation.every, config.trainer.pictures)
        self.seconds = 0.0
        self._board: Board | None = None
        self._probes: list[tuple[str, int]] = []
        self._tokens, self._since = 0, 0.0

    def state_dict(self) -> dict[str, Any]:
        return {"seconds": self.seconds}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.seconds = state_dict["seconds"]

    def on_train_start(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        assert isinstance(module, TrainingModule)
        with self._timed():
            step = trainer.global_step
            self._board = Board(self.directory, step if self.resumed else None)
            looked = module.resolver.encoder.has_maps
            if looked and self.config.trainer.pictures:
                self._probes = shown.probes(self.validation.examples, self.validation)
            if step:
                return
            heads = looked and len(self.validation.examples) > 0
            self._board.text("settings", shown.verbatim(configuration.dumps(self.config)), step)
            self._board.layout(shown.layout(self.config, heads))
            self._board.settings(shown.compared_settings(self.config), shown.FINAL_MEASURES)
            if step in self.moments:
                module.resolver.eval()
                self._draw(module.resolver, step)
                module.resolver.train()
            self._board.flush()

    def on_train_epoch_start(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        self._tokens, self._since = 0, time.perf_counter()

    def on_train_batch_end(
        self, trainer: lightning.Trainer, module: lightning.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        assert isinstance(module, TrainingModule)
        self._tokens += batch.real_tokens
        step = trainer.global_step
        if step != 1 and step % NUMBERS_EVERY:
            return
        with self._timed():
            values = {shown.tag_of(f"train/{name}"): float(value) for name, value in module.noted.items()}
            now = time.perf_counter()
            if step > 1:  # the first step also warms up
                values[shown.tag_of("train/tokens_per_second")] = self._tokens / (now - self._since)
            self._tokens, self._since = 0, now
            self._written.numbers(values, step)

    def on_validation_end(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        assert isinstance(module, TrainingModule)
        with self._timed():
            step = trainer.global_step
            found = {name: float(value) for name, value in trainer.callback_metrics.items()}
            validated = {name: value for name, value in found.items() if not name.startswith("train/")}
            self._written.numbers({shown.tag_of(name): value for name, value in validated.items()}, step)
            if step in self.moments:
                self._draw(module.resolver, step)
                if module.answers is not None:
                    tables = shown.answer_tables(module.answers, self.validation, _best_head(found))
                    for tag, table in tables.items():
                        self._written.text(tag, table, step)
            self._written.flush()

    def on_exception(
        self, trainer: lightning.Trainer, module: lightning.LightningModule, exception: BaseException
    ) -> None:
        if self._board is not None:
            self._board.close()

    def finish(self, best: Mapping[str, float], seconds: float) -> None:
        """Show what the kept weights reached, which the settings are compared by.

        Args:
            best: the validation whose weights are kept.
            seconds: of training.
        """
        if self._board is None:  # nothing was left to train
            self._board = Board(self.directory, None)
        reached = {"accuracy": "validation/accuracy", "loss": "validation/loss", "best_head": "validation/best_head"}
        values = {f"final/{name}": best[tag] for name, tag in reached.items() if tag in best}
        step = int(best["step"])
        self._written.numbers({**values, "final/step": step, "final/seconds": seconds}, step)
        self._written.succeeded()
        self._written.close()

    @property
    def _written(self) -> Board:
        assert self._board is not None
        return self._board

    def _draw(self, resolver: Resolver, step: int) -> None:
        examples = [self.validation.examples[number] for _, number in self._probes]
        drawn = each_map(resolver, self.tokenizer, examples, self.config.task.readout)
        for (tag, _), example, (tokens, maps) in zip(self._probes, examples, drawn, strict=True):
            row = maps[:, :, tokens.covering(example.pronoun)].mean(axis=2)
            record = AttentionRecord(example, tokens.spans, tokens.words, row)
            self._written.picture(f"{tag}_pronoun", rows_picture(record, step), step)
            self._written.picture(f"{tag}_maps", maps_picture(record, maps, step), step)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        begin = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - begin
            self.seconds += spent


NUMBERS_EVERY = 10
"""Steps between two points of the curves of training."""


def _best_head(found: Mapping[str, float]) -> tuple[int, int] | None:
    """Layer and head with the highest candidate accuracy of a validation; None where no head was looked at."""
    accuracies = {name: value for name, value in found.items() if name.startswith("attention_pointing/")}
    if not accuracies:
        return None
    layer, head = max(accuracies, key=accuracies.__getitem__).rpartition("/")[2].split("_")[1::2]
    return int(layer), int(head)
