"""What training minimises: the read-out's loss, hidden words, and a pull on the attention where it is asked for."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from anaphora.data.batch import Batch
from anaphora.model.readout import Seen, group_mean
from anaphora.model.resolver import Resolver
from anaphora.training.settings import Supervision, Task


@dataclass(frozen=True)
class Losses:
    """The parts of a step's loss, each a mean over what it concerns, and their weighted sum."""

    total: Tensor
    parts: dict[str, Tensor]


def losses(resolver: Resolver, batch: Batch, task: Task) -> Losses:
    """The loss of one batch."""
    seen = resolver.see_with_rows(batch) if task.supervision.weight else resolver.see(batch)
    parts: dict[str, Tensor] = {}
    total = seen.hidden.new_zeros(())
    if task.readout.kind != "no_readout":
        parts["answer"] = resolver.readout.loss(seen, batch).mean()
        total = total + parts["answer"]
    if len(batch.twins):
        parts["twin_contrast"] = twin_contrast_loss(resolver.readout.scores(seen, batch), batch.twins)
        total = total + task.twin_contrast * parts["twin_contrast"]
    if len(batch.masked_positions):
        parts["hidden_words"] = hidden_words_loss(resolver, seen, batch)
        total = total + task.hidden_words_weight * parts["hidden_words"]
    if task.supervision.weight:
        parts["supervision"] = supervision_loss(seen, batch, task.supervision)
        total = total + task.supervision.weight * parts["supervision"]
    return Losses(total, parts)


def hidden_words_loss(resolver: Resolver, seen: Seen, batch: Batch) -> Tensor:
    """The mean cross-entropy of the hidden tokens, in nats."""
    logits = resolver.output(seen.hidden[batch.masked_positions])
    return functional.cross_entropy(logits, batch.ids.flatten()[batch.masked_positions])


def twin_contrast_loss(scores: Tensor, twins: Tensor) -> Tensor:
    """How likely two twins are given the same answer, each asked by itself, mean over the pairs; in [0, 1].

    The sum over the answers of one twin's share times the other's; after the mutual exclusivity of twins in Klein and
    Nabi 2020. No label is read but that the answers differ.

    Args:
        scores: (N, M + 1) as read-outs give them.
        twins: (Q, 2), at least one pair of different answers.
    """
    shares = scores.softmax(dim=1)
    return (shares[twins[:, 0]] * shares[twins[:, 1]]).sum(dim=1).mean()


def supervision_loss(seen: Seen, batch: Batch, chosen: Supervision) -> Tensor:
    """KL(target || row) of the chosen layers and heads, in nats, mean over the items that have an antecedent.

    The target spreads evenly over the antecedent's tokens; the row is the mean over the pronoun's tokens.
    """
    assert seen.rows is not None
    rows = seen.rows[chosen.layers][:, :, chosen.heads]  # (layers, K, heads, T)
    items, most = batch.present.shape
    length = rows.shape[-1]
    gold = batch.gold.flatten()[batch.candidate_owners]
    owners, places = batch.candidate_owners[gold] // most, batch.candidate_positions[gold] % length
    count = group_mean_count(owners, items)
    share = 1.0 / count[owners]
    divergence = rows.new_zeros(())
    for layer in rows:
        weights = group_mean(layer, batch.query_items, items)[owners, :, places]  # (G, heads)
        log_weights = weights.clamp(min=torch.finfo(weights.dtype).tiny).log()
        divergence = divergence + (share * (share.log() - log_weights.mean(dim=1))).sum()
    return divergence / len(rows) / (count > 0).sum().clamp(min=1)


def group_mean_count(owners: Tensor, size: int) -> Tensor:
    """How many values each owner has: (K,) -> (size,)."""
    return torch.zeros(size, device=owners.device).index_add(0, owners, torch.ones(len(owners), device=owners.device))
