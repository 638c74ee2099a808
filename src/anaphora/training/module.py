"""The LightningModule: one step and one validation."""

from __future__ import annotations

import math
from typing import Any

import pytorch_lightning as lightning
import torch
from torch import Tensor

from anaphora.data.batch import Batch
from anaphora.model.readout import Seen, candidate_masses, group_mean
from anaphora.model.resolver import Resolver
from anaphora.training.losses import hidden_words_loss, losses
from anaphora.training.optimizer import build, learning_rate_shape
from anaphora.training.settings import Optimizer, Task
from anaphora.training.shown import Answers


class TrainingModule(lightning.LightningModule):
    """What Lightning drives: a resolver, its task and its optimizer.

    Randomness is a function of (seed, step): the generator is set anew before every step, so a resumed run draws what
    an unbroken one would have drawn.

    Attributes:
        noted: of the last step: its loss, the parts of that where there are several, the norm of the gradient before it
            was clipped, and the highest learning rate of any weight.
        answers: of the last validation; None before it and without a read-out.
    """

    def __init__(self, resolver: Resolver, task: Task, optimizer: Optimizer, seed: int) -> None:
        super().__init__()
        self.resolver = resolver
        self.task = task
        self.chosen = optimizer
        self.seed = seed
        self.noted: dict[str, Tensor | float] = {}
        self.answers: Answers | None = None
        self._sums: dict[str, Tensor] = {}
        self._answered: dict[str, list[Tensor]] = {}

    def on_train_batch_start(self, batch: Batch, batch_idx: int) -> None:
        torch.manual_seed(step_seed(self.seed, self.global_step))

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        found = losses(self.resolver, batch, self.task)
        self.noted = {"loss": found.total.detach()}
        if len(found.parts) > 1:
            self.noted |= {f"loss_{name}": value.detach() for name, value in found.parts.items()}
        if self.global_step % SHOW_EVERY == 0:
            self.log("train/loss", found.total, prog_bar=True)
        return found.total

    def configure_gradient_clipping(
        self,
        optimizer: torch.optim.Optimizer,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        weights = [weight for group in optimizer.param_groups for weight in group["params"]]
        self.noted["gradient_norm"] = torch.nn.utils.clip_grad_norm_(weights, self.chosen.clip)
        self.noted["learning_rate"] = max(group["lr"] for group in optimizer.param_groups)

    def on_validation_start(self) -> None:
        self._sums, self._answered = {}, {}

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        asked = len(batch.query_positions) > 0  # of texts nothing is asked at any token
        looked = asked and self.resolver.encoder.has_maps
        seen = self.resolver.see_with_rows(batch) if looked else self.resolver.see(batch)
        items = len(batch.items)
        self._add("items", torch.tensor(float(items)))
        if self.task.readout.kind != "no_readout":
            scores = self.resolver.readout.scores(seen, batch)
            right = torch.cat((batch.gold, ~batch.gold.any(dim=1, keepdim=True)), dim=1)
            share, chosen = scores.softmax(dim=1).max(dim=1)
            self._add("accuracy", right.gather(1, chosen.unsqueeze(1)).float().sum())
            chosen = chosen.masked_fill(chosen == scores.shape[1] - 1, -1)
            self._keep(items=batch.items, chosen=chosen, share=share.float())
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
        self._keep(pointed=best.transpose(0, 1))
        right = batch.gold[torch.arange(items, device=best.device)[:, None], best]
        self._add("attention_pointing", right.float().sum(dim=1))
        self._add("attention_mass", (masses * batch.gold[:, None]).sum(dim=(1, 3)))
        # Padding and other sentences, which have no words here either, get no weight.
        special = (batch.words < 0)[batch.query_positions // batch.words.shape[1]].unsqueeze(1)  # (K, 1, T)
        on_special = torch.stack(
            [group_mean((layer * special).sum(-1), batch.query_items, items) for layer in seen.rows]
        )
        self._add("attention_special", on_special.sum(dim=1))
        entropies = (torch.special.entr(group_mean(layer, batch.query_items, items)).sum(-1) for layer in seen.rows)
        self._add("attention_entropy", torch.stack([each.sum(dim=0) for each in entropies]))

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
        if "attention_pointing" in means:
            self.log("validation/best_head", means["attention_pointing"].max())
        for measure in HEAD_MEASURES:
            for layer, heads in enumerate(means.get(measure, ())):
                for head, value in enumerate(heads.tolist()):
                    self.log(f"{measure}/layer_{layer}_head_{head}", value)
        self.answers = self._collected() if "chosen" in self._answered else None

    def _collected(self) -> Answers:
        """The answers of a validation in the order of the split."""
        together = {name: torch.cat(parts).cpu().numpy() for name, parts in self._answered.items()}
        order = together["items"].argsort()
        pointed = together["pointed"][order] if "pointed" in together else None
        return Answers(together["chosen"][order], together["share"][order], pointed)

    def configure_optimizers(self) -> Any:
        halves = str(self.trainer.precision) == "bf16-mixed"
        optimizer = build(self.resolver, self.chosen, torch.bfloat16 if halves else torch.float32)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, learning_rate_shape(self.chosen))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def _keep(self, **values: Tensor) -> None:
        for name, value in values.items():
            self._answered.setdefault(name, []).append(value)

    def _add(self, name: str, value: Tensor) -> None:
        value = value.detach()
        self._sums[name] = self._sums[name] + value if name in self._sums else value


SHOW_EVERY = 10  # steps
HEAD_MEASURES = ("attention_pointing", "attention_mass", "attention_special", "attention_entropy")


def step_seed(seed: int, step: int) -> int:
    """The generator's seed of one step; neighbours differ in all bits' worth of mixing."""
    return (seed * 0x9E3779B97F4A7C15 + step * 0xBF58476D1CE4E5B9) % 2**63
