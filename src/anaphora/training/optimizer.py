"""Optimizers (AdamW, and Muon for the matrices of the Transformer blocks) and the learning rate schedule."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable
from typing import Any, overload

import torch
from torch import Tensor, nn

from anaphora.model.linear import has_faster_kernel, onednn_product
from anaphora.settings.training import Optimizer

_BLOCK_NAME = re.compile(r"(?:^|\.)blocks\.(\d+)\.")
_EMBEDDING_NAME = re.compile(r"(?:^|\.)encoder\.(?:tokens|position|embedding_norm)\.")
MOMENTUM = 0.95
NEWTON_SCHULZ_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
NEWTON_SCHULZ_STEPS = 3
"""Number of iterations. Jordan et al. 2024 use 5; the recipes were tuned with 3, in three fifths of the time."""
COOLDOWN = 0.3
"""Share of the steps after the warm-up in which `decay=cooldown` lowers the learning rate to zero."""
_LEAST_SIDE = 256
"""Minimum shorter side for oneDNN's products, which halve the time; smaller matrices gain less (a third at 128)."""


def build_optimizer(
    model: nn.Module, settings: Optimizer, products: torch.dtype = torch.float32
) -> torch.optim.Optimizer:
    """Build the optimizer of all trainable weights: AdamW, or `Muon` if `optimizer.matrices` is "muon".

    Vectors, such as biases, have no weight decay. `products` is the data type of the matrix products in Muon.
    """
    matrices, others = split_parameters(model, settings.matrices)
    shares = layer_learning_rate_factors(model, settings.layer_decay)
    defaults: dict[str, Any] = {"lr": settings.learning_rate, "betas": (0.9, settings.beta2), "fused": True}
    groups: list[dict[str, Any]] = []
    for share in sorted(set(shares.values()), reverse=True):
        weights = [weight for weight in others if shares[weight] == share]
        decayed = [weight for weight in weights if weight.dim() >= 2]
        plain = [weight for weight in weights if weight.dim() < 2]
        for params, decay in ((decayed, settings.weight_decay), (plain, 0.0)):
            groups.append({"params": params, "weight_decay": decay, "lr": share * settings.learning_rate})
    if settings.matrices == "muon":
        highest = settings.matrices_learning_rate or settings.learning_rate
        groups += [
            {
                "params": [weight for weight in matrices if shares[weight] == share],
                "weight_decay": settings.weight_decay,
                "lr": share * highest,
                "orthogonal": True,
            }
            for share in sorted({shares[weight] for weight in matrices}, reverse=True)
        ]
        return Muon(groups, products, **defaults)
    return torch.optim.AdamW(groups, **defaults)


def layer_learning_rate_factors(model: nn.Module, decay: float) -> dict[nn.Parameter, float]:
    """Return, for every weight, the factor by which its learning rate is multiplied (layer-wise learning rate decay).

    The factor is 1 for the weights above the last block. It is multiplied by `decay` for each layer further down:
    `decay` for the last block, `decay` ** L for the first of L blocks, and `decay` ** (L + 1) for the embedding (Clark
    et al. 2020, ELECTRA, appendix B). Weights that embedding and output share have the factor of the embedding.
    """
    blocks = {name: int(match[1]) for name, _ in model.named_parameters() if (match := _BLOCK_NAME.search(name))}
    layers = max(blocks.values(), default=-1) + 1
    shares = {}
    for name, weight in model.named_parameters():
        below = layers - blocks[name] if name in blocks else layers + 1 if _EMBEDDING_NAME.search(name) else 0
        shares[weight] = decay**below
    return shares


def split_parameters(model: nn.Module, matrices: str) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Return the matrices of the Transformer blocks, which `Muon` orthogonalises, and all other trainable weights.

    Unless the setting `matrices` is "muon", all trainable weights are in the second list.
    """
    orthogonal: list[nn.Parameter] = []
    others: list[nn.Parameter] = []
    for name, weight in model.named_parameters():
        if weight.requires_grad:
            # Embeddings and outputs are tables of rows, not maps between features: Jordan et al. leave them to AdamW.
            inside = ".blocks." in f".{name}" and weight.dim() == 2
            (orthogonal if inside and matrices == "muon" else others).append(weight)
    return orthogonal, others


class Muon(torch.optim.AdamW):
    """AdamW, with orthogonalised Nesterov momentum for some groups of weights (Jordan et al. 2024, "Muon").

    Parameter groups whose entry `orthogonal` is True get the orthogonalised update. It is scaled by 0.2 sqrt(longer
    side of the matrix), so that its entries are as large as in AdamW and learning rates are comparable (Liu et al.
    2025, "Muon is scalable for LLM training", section 2.2).

    `products` is the data type of the matrix products: bfloat16 in a run that trains in bfloat16 on hardware that
    supports it, otherwise float32. `torch.optim.Muon` is not used, since it multiplies one matrix at a time in
    bfloat16, which is 20 times slower than batched float32 on a CPU that emulates bfloat16.
    """

    def __init__(self, params: Any, products: torch.dtype = torch.float32, **settings: Any) -> None:
        super().__init__(params, **settings)
        self.products = products
        for group in self.param_groups:
            group.setdefault("orthogonal", False)

    @overload
    def step(self, closure: None = None) -> None: ...
    @overload
    def step(self, closure: Callable[[], float]) -> float: ...
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """Take one step on every group; the closure, if given, is evaluated first."""
        loss = None
        if closure is not None:
            # Not in AdamW's step, because Lightning's closure clears and clips the gradients of all groups.
            with torch.enable_grad():
                loss = closure()
        all_groups = self.param_groups
        self.param_groups = [group for group in all_groups if not group["orthogonal"]]
        try:
            super().step()
        finally:
            self.param_groups = all_groups
        for group in all_groups:
            if group["orthogonal"]:
                self._orthogonal_step(group)
        return loss

    @torch.no_grad()
    def _orthogonal_step(self, group: dict[str, Any]) -> None:
        alike: defaultdict[torch.Size, list[Tensor]] = defaultdict(list)
        for weight in group["params"]:
            if weight.grad is not None:
                alike[weight.shape].append(weight)
        for shape, weights in alike.items():
            gradients = [weight.grad for weight in weights if weight.grad is not None]
            momenta = [self._momentum(weight) for weight in weights]
            torch._foreach_lerp_(momenta, gradients, 1 - MOMENTUM)
            ahead = torch._foreach_lerp(gradients, momenta, MOMENTUM)
            updates = orthogonalise(torch.stack(list(ahead)), self.products)
            torch._foreach_mul_(weights, 1 - group["lr"] * group["weight_decay"])
            torch._foreach_add_(weights, list(updates.unbind()), alpha=-group["lr"] * 0.2 * math.sqrt(max(shape)))

    def _momentum(self, weight: Tensor) -> Tensor:
        state = self.state[weight]
        if not state:
            # AdamW expects a step count in every state that it loads.
            state.update(momentum=torch.zeros_like(weight), step=torch.zeros(()))
        momentum: Tensor = state["momentum"]
        return momentum


def orthogonalise(matrices: Tensor, products: torch.dtype = torch.float32, steps: int = NEWTON_SCHULZ_STEPS) -> Tensor:
    """Bring the singular values of K matrices close to 1 by Newton-Schulz steps: (K, M, N) -> (K, M, N).

    After three steps, singular values of at least 2 % of a matrix's Frobenius norm lie between about 0.68 and 1.2, and
    smaller ones have grown up to 41-fold; training does not need exactly 1 (Jordan et al. 2024). `products` is the data
    type of intermediate matrix products; the result has the data type of `matrices`.
    """
    first, second, third = NEWTON_SCHULZ_COEFFICIENTS
    tall = matrices.shape[1] > matrices.shape[2]
    rows = matrices.mT if tall else matrices
    rows = (rows / (rows.norm(dim=(1, 2), keepdim=True) + 1e-7)).to(products)
    is_large = rows.shape[1] >= _LEAST_SIDE and rows.device.type == "cpu" and products == torch.float32
    if is_large and has_faster_kernel():
        rows = torch.stack([_newton_schulz_by_onednn(each, steps) for each in rows])
        return rows.mT if tall else rows
    for _ in range(steps):
        gram = rows @ rows.mT
        rows = torch.baddbmm(rows, torch.baddbmm(gram, gram, gram, beta=second, alpha=third), rows, beta=first)
    rows = rows.to(matrices.dtype)
    return rows.mT if tall else rows


def _newton_schulz_by_onednn(rows: Tensor, steps: int) -> Tensor:
    first, second, third = NEWTON_SCHULZ_COEFFICIENTS
    rows = rows.contiguous()
    for _ in range(steps):
        gram = onednn_product(rows, rows)
        factor = onednn_product(gram, gram.t()).mul_(third).add_(gram, alpha=second)
        rows = onednn_product(factor, rows.t()).add_(rows, alpha=first)
    return rows


def learning_rate_schedule(settings: Optimizer) -> Callable[[int], float]:
    """Return a function that maps a step to the learning rate, as a fraction of the highest rate.

    With `decay=cooldown`, the rate is constant before it decays to zero (Hägele et al. 2024, "Scaling laws and
    compute-optimal training beyond fixed training durations").
    """
    warmup = max(1, round(settings.steps * settings.warmup))

    def share(step: int) -> float:
        if step < warmup:
            return (step + 1) / warmup
        left = max(0.0, (settings.steps - step) / max(1, settings.steps - warmup))
        match settings.decay:
            case "linear":
                return left
            case "cosine":
                return 0.5 - 0.5 * math.cos(math.pi * left)
            case "cooldown":
                return min(1.0, left / COOLDOWN)
            case _:
                return 1.0

    return share
