"""Efficiency of the demo's training step, relative to torch's matrix product.

Both rates count only the floating-point operations of matrix products. Other work (norms, softmax, optimizer, batching)
lowers the ratio.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from anaphora.base.batch import Batch
from anaphora.data.batches.batching import TrainingBatches
from anaphora.model.linear import has_faster_kernel
from anaphora.model.pronoun_model import PronounModel
from anaphora.runs.directory import randomly_initialised
from anaphora.settings.model.prediction import slots_of
from anaphora.settings.run import Config
from anaphora.training.items import TrainingData, minimal_pairs_of
from anaphora.training.losses import losses
from anaphora.training.optimizer import build_optimizer
from benchmarks.speed.layouts import non_padding_share
from benchmarks.speed.stopwatch import OURS, Variant

TORCH = "torch"
PRODUCT = (2048, 128, 512)
"""Rows, inner dimension and columns of the matrix product in the comparison, as in a feed-forward network."""
PRODUCT_IN_WORDS = "torch's matrix product of 2,048 x 128 by 128 x 512"
_PRODUCTS_A_REPEAT = 400
_MILLION = 1_000_000


def variants(data: TrainingData, steps: int, device: torch.device) -> list[Variant]:
    """Return two variants: a training step with the run's settings, and torch's matrix product."""
    config, tokenizer, encoded = data.config, data.tokenizer, data.training
    pairs = minimal_pairs_of(encoded, config) if config.task.minimal_pair_contrast else None
    planned = TrainingBatches(
        encoded,
        config.batching,
        config.seed,
        slots_of(config.task.prediction),
        masked_share=config.task.masked_lm,
        own_share=config.task.own_token,
        minimal_pairs=pairs,
    )
    batches = [batch.to(device) for batch in planned.between(0, steps)]
    model = randomly_initialised(config, tokenizer.size, config.seed).train().to(device)
    optimizer = build_optimizer(model, config.optimizer)
    counted = [partial(_counted_step, model, optimizer, batch, config) for batch in batches]
    flops = [count() for count in counted]
    parts = [partial(_step, model, optimizer, batch, config, done) for batch, done in zip(batches, flops, strict=True)]
    rows, inner, columns = PRODUCT
    left, right = torch.randn(rows, inner, device=device), torch.randn(columns, inner, device=device)
    return [
        Variant(OURS, "step", parts, sum(weight.numel() for weight in model.parameters()), non_padding_share(batches)),
        Variant(TORCH, "product", [partial(_products, left, right)], 0, 1.0),
    ]


def _counted_step(model: PronounModel, optimizer: torch.optim.Optimizer, batch: Batch, config: Config) -> int:
    """Run a training step, and return the number of floating-point operations in its matrix products, in millions."""
    uncounted = {torch.ops.mkldnn._linear_pointwise: _linear_flops} if has_faster_kernel() else {}
    with FlopCounterMode(display=False, custom_mapping=uncounted) as counter:
        _step(model, optimizer, batch, config, 0)
    return int(counter.get_total_flops()) // _MILLION


def _linear_flops(vectors: Sequence[int], weight: Sequence[int], *_: object, **__: object) -> int:
    """Return the number of operations of oneDNN's linear kernel, which torch's counter lacks."""
    return 2 * math.prod(vectors) * weight[0]


def _step(model: PronounModel, optimizer: torch.optim.Optimizer, batch: Batch, config: Config, operations: int) -> int:
    optimizer.zero_grad()
    losses(model, batch, config.task).total.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(model.parameters(), config.optimizer.clip)
    optimizer.step()
    return operations


def _products(left: Tensor, right: Tensor) -> int:
    for _ in range(_PRODUCTS_A_REPEAT):
        left @ right.t()
    rows, inner, columns = PRODUCT
    return round(_PRODUCTS_A_REPEAT * 2 * rows * inner * columns / _MILLION)
