"""Measures of a run's settings that need no training: saturation of softmax, symmetries, time per training step."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import torch
from torch import Tensor

from anaphora.base.batch import EncoderInput
from anaphora.base.device import evaluation_device, torch_device
from anaphora.model.attention import attention_scores, masked_softmax
from anaphora.model.encoder import Encoder
from anaphora.settings.model.encoder import check_length
from anaphora.settings.run import Config
from anaphora.studies.plan import ANY_LANGUAGE, HEAD_WIDTHS, SENTENCE_LENGTHS
from anaphora.studies.records import GroupMeasures

BATCH_TOKENS = 2048
REPEATS = 3
_KEYS, _QUERIES = 32, 512
_VOCABULARY, _SENTENCE, _SHIFT = 100, 12, 7


def scaling(config: Config, seed: int) -> GroupMeasures:
    """Measure how much the softmax saturates with growing head width, for standard normal queries and keys.

    Returns:
        {"any": {"d_k 4": {"score_variance", "entropy_bits", "gradient_norm"}}}, with one group for each head width in
        `HEAD_WIDTHS`, such as "d_k 4" for width 4. The measures are the variance of the attention scores, the mean
        entropy of the attention weights over 32 keys (at most 5 bits), and the mean Frobenius norm of the softmax's
        Jacobian. See Vaswani et al. 2017, section 3.2.1 and its footnote 4.
    """
    scale = None if getattr(config.model.attention, "scaled", True) else 1.0
    generator = torch.Generator().manual_seed(seed)
    groups: dict[str, dict[str, float | None]] = {}
    for features in HEAD_WIDTHS:
        query, key = (
            torch.randn(1, 1, count, features, generator=generator, dtype=torch.float64) for count in (_QUERIES, _KEYS)
        )
        scores = attention_scores(query, key, torch.zeros((), dtype=torch.float64), scale)
        weights = masked_softmax(scores)
        groups[f"d_k {features}"] = {
            "score_variance": float(scores.var()),
            "entropy_bits": float(torch.special.entr(weights).sum(dim=-1).mean() / torch.log(torch.tensor(2.0))),
            "gradient_norm": float(jacobian_norm(weights).mean()),
        }
    return {ANY_LANGUAGE: groups}


def jacobian_norm(weights: Tensor) -> Tensor:
    """Return the Frobenius norm of softmax's Jacobian, diag(p) - p p^T, for attention weights p: (..., T) -> (...)."""
    square, cube = weights.square().sum(dim=-1), weights.pow(3).sum(dim=-1)
    return (square - 2 * cube + square.square()).clamp(min=0).sqrt()


def symmetry(config: Config, seed: int) -> GroupMeasures:
    """Measure the change of a randomly initialised encoder's hidden states if tokens are permuted or positions shifted.

    Returns:
        {"any": {"all": {"permutation_change", "shift_change"}}}: the root mean square of the change of the hidden
        states, divided by the root mean square of the states. `permutation_change` compares the states of the permuted
        tokens with the permuted states of the original tokens; it is 0 if the encoder is equivariant under permutation.
        `shift_change` compares the states after 7 is added to all positions with the states before; it is 0 if the
        encoder uses only relative positions.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        encoder = Encoder(config.model, _VOCABULARY).double().eval()
        ids, order = torch.randperm(_VOCABULARY)[:_SENTENCE][None], torch.randperm(_SENTENCE)
    positions, segments = torch.arange(_SENTENCE)[None], torch.zeros(1, _SENTENCE, dtype=torch.long)
    with torch.inference_mode():
        states = encoder(EncoderInput(ids, positions, segments))
        permuted = encoder(EncoderInput(ids[:, order], positions, segments))
        shifted = encoder(EncoderInput(ids, positions + _SHIFT, segments))
        size = states.square().mean().sqrt()
        changes = {"permutation_change": permuted - states[:, order], "shift_change": shifted - states}
    return {
        ANY_LANGUAGE: {"all": {name: float(change.square().mean().sqrt() / size) for name, change in changes.items()}}
    }


def step_time(config: Config, seed: int, clock: Callable[[], float] = time.perf_counter) -> GroupMeasures:
    """Measure the time of a training step of the encoder on 2,048 tokens for growing sentence lengths.

    The time is the median of three steps (forward, backward and AdamW). The result has one group for each length:
    {"any": {"tokens 32": {"seconds_per_step"}}}.

    Raises:
        UserError: the model cannot encode the longest sentence (`SENTENCE_LENGTHS`), or the device does not exist.
    """
    check_length(config.model, max(SENTENCE_LENGTHS))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        device = torch_device(evaluation_device(config.trainer.device).device)
        encoder = Encoder(config.model, _VOCABULARY).train().to(device)
        groups: dict[str, dict[str, float | None]] = {}
        for length in SENTENCE_LENGTHS:
            ids = torch.randint(_VOCABULARY, (BATCH_TOKENS // length, length)).to(device)
            groups[f"tokens {length}"] = {"seconds_per_step": _seconds_per_step(encoder, ids, clock)}
    return {ANY_LANGUAGE: groups}


def _seconds_per_step(encoder: Encoder, ids: Tensor, clock: Callable[[], float]) -> float:
    positions = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
    tokens = EncoderInput(ids, positions, torch.zeros_like(ids))
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=1e-4)
    taken = []
    for _ in range(REPEATS + 1):  # the first step creates the optimizer state and is not counted
        started = clock()
        optimizer.zero_grad()
        torch.autograd.backward(encoder(tokens).square().mean())
        optimizer.step()
        if ids.is_cuda:
            torch.cuda.synchronize()
        taken.append(clock() - started)
    return median(taken[1:])
