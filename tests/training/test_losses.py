from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import torch
from ranks import in_minimal_pairs
from torch import Tensor

from anaphora.base.batch import Batch
from anaphora.data.batches.batching import MinimalPairs, TrainingBatches
from anaphora.data.batches.encoded import EncodedSplit
from anaphora.model.pronoun_model import PronounModel
from anaphora.runs.directory import randomly_initialised
from anaphora.settings.model.prediction import slots_of
from anaphora.settings.run import Config
from anaphora.training.items import prepare_examples
from anaphora.training.losses import losses, share_of_rank

TASKS = {
    "masked": ("task/prediction=slot", "task.masked_lm=0.1"),
    "own": ("task.own_token=0.2", "task.own_token_weight=0.5"),
    "supervised": ("task/prediction=word", "task.supervision.weight=0.5", "batching.kind=buckets"),
    "pairs": ("task/prediction=pair", "task.minimal_pair_contrast=0.5"),
    "pairs in two rows": ("task/prediction=pair", "task.minimal_pair_contrast=0.5", "batching.kind=buckets"),
}


def gradients(model: PronounModel, loss: Tensor) -> list[Tensor]:
    weights = list(model.parameters())
    each = torch.autograd.grad(loss, weights, allow_unused=True)
    return [torch.zeros_like(weight) if one is None else one for weight, one in zip(weights, each, strict=True)]


def model_and_batches(config: Config, count: int) -> tuple[Config, PronounModel, list[Batch]]:
    """Return a randomly initialised model, and its first batches."""
    config, tokenizer, training = prepare_examples(config, None)[:3]
    pairs = None
    if config.task.minimal_pair_contrast:
        training = EncodedSplit(in_minimal_pairs(training.examples), tokenizer)
        pairs = MinimalPairs(training)
    model = randomly_initialised(config, tokenizer.size, 0)
    task_settings = config.task
    batches = TrainingBatches(
        training,
        config.batching,
        0,
        slots_of(task_settings.prediction),
        task_settings.masked_lm,
        pairs,
        task_settings.own_token,
    )
    return config, model, list(islice(batches.between(0, count), count))


@pytest.mark.parametrize("ranks", [3, 20])
@pytest.mark.parametrize("task", sorted(TASKS))
def test_the_mean_over_ranks_is_the_loss_of_the_batch_and_its_gradient(
    task: str, ranks: int, tiny: Callable[..., Config], settings: Callable[..., Config], tmp_path: Path
) -> None:
    config = tiny(tmp_path, "batching.tokens=192", "batching.row_tokens=48", *TASKS[task])
    config, model, batches = model_and_batches(config, 2)
    for batch in batches:
        whole = losses(model, batch, config.task)
        shares = [losses(model, share_of_rank(batch, rank, ranks), config.task) for rank in range(ranks)]
        total = torch.stack([share.total for share in shares]).mean()
        torch.testing.assert_close(total, whole.total)
        for name, part in whole.parts.items():
            parts = [share.parts[name] for share in shares if name in share.parts]
            torch.testing.assert_close(torch.stack(parts).sum() / ranks, part)
        for one, other in zip(gradients(model, total), gradients(model, whole.total), strict=True):
            torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("prediction", ["word", "slot", "bilinear", "pair", "pointer"])
def test_losses_are_in_full_precision_whatever_the_products_are_in(
    prediction: str, tiny: Callable[..., Config], tmp_path: Path
) -> None:
    config, model, (batch,) = model_and_batches(
        tiny(tmp_path, f"task/prediction={prediction}", "task.own_token=0.2"), 1
    )
    full = losses(model, batch, config.task)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        halves = losses(model, batch, config.task)
    assert {part.dtype for part in (halves.total, *halves.parts.values())} == {torch.float32}
    for name, part in full.parts.items():
        assert float(halves.parts[name].detach()) == pytest.approx(float(part.detach()), rel=0.01)


def test_a_pointer_at_uniform_attention_which_no_weight_changes_has_zero_gradients(
    tiny: Callable[..., Config], tmp_path: Path
) -> None:
    config = tiny(tmp_path, "model/attention=uniform", "task/prediction=pointer")
    config, model, (batch,) = model_and_batches(config, 1)
    assert all(not gradient.any() for gradient in gradients(model, losses(model, batch, config.task).total))


def test_a_batch_without_masked_tokens_has_no_loss_and_zero_gradients(
    tiny: Callable[..., Config], tmp_path: Path
) -> None:
    config, model, (batch,) = model_and_batches(tiny(tmp_path, "task/prediction=none", "task.masked_lm=0.1"), 1)
    batch = replace(batch, masked_positions=batch.masked_positions[:0])
    loss = losses(model, batch, config.task)
    assert (loss.parts, float(loss.total.detach())) == ({}, 0)
    assert all(not gradient.any() for gradient in gradients(model, loss.total))
