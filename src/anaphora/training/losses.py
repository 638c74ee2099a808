"""What training minimises: the loss of the prediction head, of masked tokens, of minimal pairs and of supervision."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from anaphora.base.batch import Batch
from anaphora.model.prediction import EncoderOutput, group_mean
from anaphora.model.pronoun_model import PronounModel
from anaphora.settings.training import Supervision, Task


@dataclass(frozen=True)
class Losses:
    """The parts of a step's loss, each a mean over what it concerns, and their weighted sum."""

    total: Tensor
    parts: dict[str, Tensor]


def losses(model: PronounModel, batch: Batch, task: Task) -> Losses:
    """The loss of one batch."""
    output = model.forward_with_rows(batch) if task.supervision.weight else model(batch)
    parts: dict[str, Tensor] = {}
    total = output.hidden.new_zeros(())
    if task.prediction.kind != "none":
        scores = model.prediction_head.scores(output, batch)
        parts["answer"] = model.prediction_head.loss(scores, batch).mean()
        total = total + parts["answer"]
        if len(batch.minimal_pairs):
            parts["minimal_pair_contrast"] = minimal_pair_contrast_loss(scores, batch.minimal_pairs)
            total = total + task.minimal_pair_contrast * parts["minimal_pair_contrast"]
    if len(batch.masked_positions):
        parts["masked_lm"] = masked_lm_loss(model, output, batch)
        total = total + task.masked_lm_weight * parts["masked_lm"]
    if task.supervision.weight:
        parts["supervision"] = supervision_loss(output, batch, task.supervision)
        total = total + task.supervision.weight * parts["supervision"]
    return Losses(total, parts)


def masked_lm_loss(model: PronounModel, output: EncoderOutput, batch: Batch) -> Tensor:
    """The mean cross-entropy of the masked tokens, in nats."""
    logits = model.output(output.hidden[batch.masked_positions])
    return functional.cross_entropy(logits, batch.ids.flatten()[batch.masked_positions])


def minimal_pair_contrast_loss(scores: Tensor, minimal_pairs: Tensor) -> Tensor:
    """How likely the items of a minimal pair get the same answer, each by itself, mean over the pairs; in [0, 1].

    The sum over the answers of one item's share times the other's; after the mutual exclusivity of twin sentences in
    Klein and Nabi 2020. No label is read but that the answers differ.

    Args:
        scores: (N, M + 1) as prediction heads give them.
        minimal_pairs: (Q, 2) items, at least one pair of different answers.
    """
    shares = scores.softmax(dim=1)
    return (shares[minimal_pairs[:, 0]] * shares[minimal_pairs[:, 1]]).sum(dim=1).mean()


def supervision_loss(output: EncoderOutput, batch: Batch, settings: Supervision) -> Tensor:
    """KL(target || row) of the chosen layers and heads, in nats, mean over the items that have an antecedent.

    The target spreads evenly over the antecedent's tokens; the row is the mean over the pronoun's tokens.
    """
    assert output.rows is not None
    rows = output.rows[settings.layers][:, :, settings.heads]  # (layers, K, heads, T)
    items, most = batch.present.shape
    length = rows.shape[-1]
    gold = batch.gold.flatten()[batch.candidate_owners]
    owners, positions = batch.candidate_owners[gold] // most, batch.candidate_positions[gold] % length
    count = group_sizes(owners, items)
    share = 1.0 / count[owners]
    divergence = rows.new_zeros(())
    for layer in rows:
        weights = group_mean(layer, batch.query_items, items)[owners, :, positions]  # (G, heads)
        log_weights = weights.clamp(min=torch.finfo(weights.dtype).tiny).log()
        divergence = divergence + (share * (share.log() - log_weights.mean(dim=1))).sum()
    return divergence / len(rows) / (count > 0).sum().clamp(min=1)


def group_sizes(owners: Tensor, size: int) -> Tensor:
    """How many values each owner has: (K,) -> (size,)."""
    return torch.zeros(size, device=owners.device).index_add(0, owners, torch.ones(len(owners), device=owners.device))
