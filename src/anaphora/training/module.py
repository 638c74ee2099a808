"""LightningModule with the training and validation steps."""

from __future__ import annotations

import math
import signal
from typing import Any

import pytorch_lightning as lightning
import torch
from torch import Tensor

from anaphora.base.batch import Batch
from anaphora.base.errors import UserError
from anaphora.model.prediction import EncoderOutput, candidate_masses, full_precision, group_mean
from anaphora.model.pronoun_model import PronounModel
from anaphora.runs.processes import Terminated
from anaphora.settings.training import Optimizer, Task
from anaphora.training.losses import PARTS, Losses, losses, token_loss
from anaphora.training.optimizer import build_optimizer, learning_rate_schedule
from anaphora.training.ranks import mean_over_ranks
from anaphora.training.tensorboard.layout import ValidationPredictions


class DivergedError(UserError):
    """Error for a loss or gradient that is NaN or infinite."""


class TrainingModule(lightning.LightningModule):
    """LightningModule with a model, its task and its optimizer.

    The random number generator is seeded before every step with a function of (seed, step, rank), so a resumed run
    draws the same numbers as an uninterrupted one.

    Attributes:
        step_metrics: metrics of the last step: the loss, its parts if there are several, the gradient norm before
            clipping and the highest learning rate; with `optimizer.value_curriculum`, also `Encoder.hidden_share`.
        predictions: predictions of the last validation on rank 0. None on other ranks, before the first validation, and
            for a model without a prediction head.
        stop_signal: number of a received SIGTERM or SIGINT, else None; all ranks stop at the step after a signal.
    """

    def __init__(self, model: PronounModel, task: Task, optimizer: Optimizer, seed: int) -> None:
        super().__init__()
        self.model = model
        self.task = task
        self.optimizer_settings = optimizer
        self.seed = seed
        self.step_metrics: dict[str, Tensor | float] = {}
        self.predictions: ValidationPredictions | None = None
        self.stop_signal: int | None = None
        self._sums: dict[str, Tensor] = {}
        self._collected: dict[str, list[Tensor]] = {}

    def on_train_batch_start(self, batch: Batch, batch_idx: int) -> None:
        seed_generator(step_seed(self.seed, self.global_step, self.global_rank), self.device)
        self._set_hidden_share()

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        step_losses = losses(self.model, batch, self.task)
        known = step_losses if self.trainer.world_size == 1 else self._losses_of_all_ranks(step_losses)
        self.step_metrics = {"loss": known.total.detach()}
        if len(known.parts) > 1:
            self.step_metrics |= {f"loss_{name}": value.detach() for name, value in known.parts.items()}
        if self.global_step % CURVES_EVERY == 0:
            self.log("train/loss", known.total, prog_bar=True, logger=False)
        return step_losses.total

    def _losses_of_all_ranks(self, own: Losses) -> Losses:
        """Return the losses of the whole batch.

        If any rank has received SIGTERM, all ranks raise `Terminated`; if SIGINT, KeyboardInterrupt.
        """
        shares = [own.parts[name].detach() if name in own.parts else 0.0 for name in PARTS]
        signals = [self.stop_signal is not None, self.stop_signal == signal.SIGTERM]
        stop, is_termination, total, *parts = mean_over_ranks([*signals, own.total.detach(), *shares])
        if stop:
            raise Terminated if is_termination else KeyboardInterrupt
        of_all = {name: part for name, part in zip(PARTS, parts, strict=True) if part or name in own.parts}
        return Losses(total, of_all)

    def configure_gradient_clipping(
        self,
        optimizer: torch.optim.Optimizer,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Clip the gradients, and raise a `DivergedError` if the loss or a gradient is NaN or infinite."""
        weights = [weight for group in optimizer.param_groups for weight in group["params"]]
        rate = max(group["lr"] for group in optimizer.param_groups)
        norm = torch.nn.utils.clip_grad_norm_(weights, self.optimizer_settings.clip)
        self.step_metrics |= {"gradient_norm": norm, "learning_rate": rate}
        loss = float(self.step_metrics["loss"])
        if not (math.isfinite(loss) and math.isfinite(norm)):
            raise DivergedError(
                f"training diverged at step {self.global_step}: loss {loss:g}, gradient norm {norm:g}, learning rate "
                f"{rate:g}; try a lower optimizer.learning_rate, a lower optimizer.clip or a longer optimizer.warmup"
            )
        if self.optimizer_settings.value_curriculum.end:
            self.step_metrics["hidden_share"] = self.model.encoder.hidden_share

    def _set_hidden_share(self) -> None:
        """Set the encoder's `hidden_share` for this step, as given by `ValueCurriculum.hidden_share`."""
        self.model.encoder.hidden_share = self.optimizer_settings.value_curriculum.hidden_share(
            self.global_step, self.trainer.max_steps
        )

    def on_validation_start(self) -> None:
        self._set_hidden_share()
        self._sums, self._collected = {}, {}

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        if not self.trainer.is_global_zero:
            return  # only rank 0 validates
        has_queries = len(batch.query_positions) > 0  # texts have none
        with_rows = has_queries and self.model.encoder.has_maps
        output = self.model.forward_with_rows(batch) if with_rows else self.model(batch)
        items = len(batch.items)
        self._add("items", torch.tensor(float(items)))
        if self.task.prediction.kind != "none":
            scores = self.model.prediction_head.scores(output, batch)
            probability, predicted = scores.softmax(dim=1).max(dim=1)
            self._add("accuracy", shares_right(scores, batch.right_answers).sum())
            predicted = predicted.masked_fill(predicted == scores.shape[1] - 1, -1)
            self._collect(items=batch.items, predicted=predicted, probability=probability.float())
            self._add("loss", self.model.prediction_head.loss(scores, batch).sum())
        if count := len(batch.masked_positions):
            self._add("masked", torch.tensor(float(count)))
            self._add("masked_lm", token_loss(self.model, output, batch, batch.masked_positions) * count)
        if with_rows:
            self._add_heads(output, batch)

    def _add_heads(self, output: EncoderOutput, batch: Batch) -> None:
        items = len(batch.items)
        assert output.rows is not None
        masses = torch.stack([candidate_masses(layer, batch) for layer in output.rows])  # (L, N, H, M)
        present = masses.masked_fill(~batch.present[:, None], -math.inf)
        self._collect(head_choices=present.argmax(dim=-1).transpose(0, 1))
        self._add("attention_candidate_accuracy", shares_right(present, batch.gold[:, None]).sum(dim=1))
        self._add("attention_mass", (masses * batch.gold[:, None]).sum(dim=(1, 3)))
        # This includes padding and the [CLS] of other sentences, but they get no weight.
        special = (batch.words < 0)[batch.query_positions // batch.words.shape[1]].unsqueeze(1)  # (K, 1, T)
        on_special = torch.stack(
            [group_mean((layer * special).sum(-1), batch.query_items, items) for layer in output.rows]
        )
        self._add("attention_special", on_special.sum(dim=1))
        entropies = (torch.special.entr(group_mean(layer, batch.query_items, items)).sum(-1) for layer in output.rows)
        self._add("attention_entropy", torch.stack([of_items.sum(dim=0) for of_items in entropies]))

    def on_validation_epoch_end(self) -> None:
        # `CurvesCallback` reports these to the loggers, under TensorBoard's tags.
        if not self.trainer.is_global_zero:
            return
        items = self._sums.pop("items")
        if "masked" in self._sums:
            loss = self._sums.pop("masked_lm") / self._sums.pop("masked")
            self.log_dict({"validation/loss": loss, "validation/perplexity": loss.exp()}, prog_bar=True, logger=False)
        means = {name: value / items for name, value in self._sums.items()}
        if "loss" in means:
            shown = {f"validation/{name}": means[name] for name in ("loss", "accuracy")}
            self.log_dict(shown, prog_bar=True, logger=False)
        if "attention_candidate_accuracy" in means:
            self.log("validation/best_head", means["attention_candidate_accuracy"].max(), logger=False)
        for measure in HEAD_MEASURES:
            for layer, heads in enumerate(means.get(measure, ())):
                for head, value in enumerate(heads.tolist()):
                    self.log(f"{measure}/layer_{layer}_head_{head}", value, logger=False)
        self.predictions = self._validation_predictions() if "predicted" in self._collected else None

    def _validation_predictions(self) -> ValidationPredictions:
        columns = {name: torch.cat(parts).cpu().numpy() for name, parts in self._collected.items()}
        order = columns["items"].argsort()
        head_choices = columns["head_choices"][order] if "head_choices" in columns else None
        return ValidationPredictions(columns["predicted"][order], columns["probability"][order], head_choices)

    def configure_optimizers(self) -> Any:
        halves = str(self.trainer.precision) == "bf16-mixed"
        settings = self.optimizer_settings
        optimizer = build_optimizer(self.model, settings, torch.bfloat16 if halves else torch.float32)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, learning_rate_schedule(settings))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def _collect(self, **columns: Tensor) -> None:
        for name, values in columns.items():
            self._collected.setdefault(name, []).append(values)

    def _add(self, name: str, value: Tensor) -> None:
        value = full_precision(value.detach())  # in bfloat16, a long sum would stop growing
        self._sums[name] = self._sums[name] + value if name in self._sums else value


CURVES_EVERY = 10
"""Number of steps between two points of the training curves and between two losses on the progress bar."""
HEAD_MEASURES = ("attention_candidate_accuracy", "attention_mass", "attention_special", "attention_entropy")


def shares_right(scores: Tensor, right: Tensor) -> Tensor:
    """Return the share of right answers among those with the highest of K scores: (..., K) -> (...); 0 for NaN."""
    highest = scores == scores.amax(dim=-1, keepdim=True)
    return (highest & right).sum(dim=-1) / highest.sum(dim=-1).clamp(min=1)


def seed_generator(seed: int, device: torch.device) -> None:
    """Seed the random number generator of the CPU or, if `device` is another device, those of all devices.

    On the CPU, `torch.manual_seed` is not used, since it would record a stack trace for each unused device, which takes
    1 % of a step.
    """
    if device.type == "cpu":
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)


def step_seed(seed: int, step: int, rank: int = 0) -> int:
    """Return the random seed of one step on one rank; seeds of neighbouring steps differ in many bits."""
    return (seed * 0x9E3779B97F4A7C15 + step * 0xBF58476D1CE4E5B9 + rank * 0x94D049BB133111EB) % 2**63
