"""The LightningModule: one step and one validation."""

from __future__ import annotations

import math
import time
from typing import Any

import pytorch_lightning as lightning
import torch
from torch import Tensor

from anaphora.data.batch import Batch
from anaphora.model.readout import Seen, candidate_masses
from anaphora.model.resolver import Resolver
from anaphora.training.losses import hidden_words_loss, losses
from anaphora.training.optimizer import build, learning_rate_shape
from anaphora.training.settings import Optimizer, Task


class TrainingModule(lightning.LightningModule):
    """What Lightning drives: a resolver, its task and its optimizer.

    Randomness is a function of (seed, step): the generator is set anew before every step, so a resumed run draws what
    an unbroken one would have drawn.
    """

    def __init__(self, resolver: Resolver, task: Task, optimizer: Optimizer, seed: int) -> None:
        super().__init__()
        self.resolver = resolver
        self.task = task
        self.chosen = optimizer
        self.seed = seed
        self._tokens, self._since = 0, 0.0
        self._sums: dict[str, Tensor] = {}

    def on_train_batch_start(self, batch: Batch, batch_idx: int) -> None:
        torch.manual_seed(step_seed(self.seed, self.global_step))

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        found = losses(self.resolver, batch, self.task)
        self._tokens += batch.real_tokens
        if self.global_step % LOG_EVERY == 0:
            now = time.perf_counter()
            if self._since:
                self.log("train/tokens_per_second", self._tokens / (now - self._since))
            self._tokens, self._since = 0, now
            self.log("train/loss", found.total, prog_bar=True)
            for name, value in found.parts.items():
                self.log(f"train/loss_{name}", value)
        return found.total

    def on_validation_start(self) -> None:
        self._sums = {}

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        asked = len(batch.query_positions) > 0  # of texts nothing is asked at any token
        looked = asked and self.resolver.encoder.has_maps
        seen = self.resolver.see_with_rows(batch) if looked else self.resolver.see(batch)
        items = len(batch.items)
        self._add("items", torch.tensor(float(items)))
        if self.task.readout.kind != "no_readout":
            scores = self.resolver.readout.scores(seen, batch)
            right = torch.cat((batch.gold, ~batch.gold.any(dim=1, keepdim=True)), dim=1)
            chosen = right.gather(1, scores.argmax(dim=1, keepdim=True)).squeeze(1)
            self._add("accuracy", chosen.float().sum())
            self._add("loss", self.resolver.readout.loss(seen, batch).sum())
        if len(batch.masked_positions):
            self._add("hidden", torch.tensor(float(len(batch.masked_positions))))
            self._add("hidden_loss", hidden_words_loss(self.resolver, seen, batch) * len(batch.masked_positions))
        if looked:
            self._add_heads(seen, batch)

    def _add_heads(self, seen: Seen, batch: Batch) -> None:
        items = len(batch.items)
        assert seen.rows is not None
        masses = torch.stack([candidate_masses(layer, batch) for layer in seen.rows])  # (L, N, H, M)
        best = masses.masked_fill(~batch.present[:, None], -math.inf).argmax(dim=-1)
        self._add("pointing", batch.gold[torch.arange(items, device=best.device)[:, None], best].float().sum(dim=1))
        self._add("mass", (masses * batch.gold[:, None]).sum(dim=(1, 3)))

    def on_validation_epoch_end(self) -> None:
        items = self._sums.pop("items")
        if "hidden" in self._sums:
            loss = self._sums.pop("hidden_loss") / self._sums.pop("hidden")
            self.log("validation/loss", loss, prog_bar=True)
            self.log("validation/perplexity", loss.exp(), prog_bar=True)
        means = {name: value / items for name, value in self._sums.items()}
        if "loss" in means:
            self.log("validation/loss", means["loss"], prog_bar=True)
            self.log("validation/accuracy", means["accuracy"], prog_bar=True)
        for name in ("pointing", "mass"):
            for layer, heads in enumerate(means.get(name, ())):
                for head, value in enumerate(heads):
                    self.log(f"attention_{name}/layer_{layer}_head_{head}", value)

    def configure_optimizers(self) -> Any:
        halves = str(self.trainer.precision) == "bf16-mixed"
        optimizer = build(self.resolver, self.chosen, torch.bfloat16 if halves else torch.float32)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, learning_rate_shape(self.chosen))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def _add(self, name: str, value: Tensor) -> None:
        value = value.detach()
        self._sums[name] = self._sums[name] + value if name in self._sums else value


LOG_EVERY = 10  # steps


def step_seed(seed: int, step: int) -> int:
    """The generator's seed of one step; neighbours differ in all bits' worth of mixing."""
    return (seed * 0x9E3779B97F4A7C15 + step * 0xBF58476D1CE4E5B9) % 2**63
