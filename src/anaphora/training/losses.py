"""Training losses, and the division of a batch among data-parallel processes (ranks).

The loss is a weighted sum of up to five parts: predicted antecedents (or labels), masked tokens, unmasked tokens,
minimal pairs and attention supervision.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional

from anaphora.base.batch import Batch
from anaphora.model.prediction import EncoderOutput, full_precision, group_mean, group_sum
from anaphora.model.pronoun_model import PronounModel
from anaphora.settings.training import Supervision, Task


@dataclass(frozen=True)
class BatchShare(Batch):
    """Rows (token sequences) of a batch that are assigned to one of several data-parallel ranks.

    Attributes:
        weights: (5,) factor of each loss part in `PARTS`: ranks * n / N, if n of the N elements of the part, such as
            items or masked tokens, are in these rows. The mean over ranks is then the value for the whole batch.
        tokens: scalar, number of tokens in the whole batch without padding.
    """

    weights: Tensor
    tokens: Tensor

    @property
    def real_tokens(self) -> int:
        """Return the number of tokens in the whole batch without padding.

        The tokens of all ranks are counted, because the reported training speed is that of all ranks together.
        """
        return int(self.tokens)


@dataclass(frozen=True)
class Losses:
    """Loss of a training step.

    Attributes:
        total: weighted sum of the parts.
        parts: each part of the loss, keyed by its name in `PARTS`: the mean over the part's elements, such as items or
            masked tokens. If the batch is a `BatchShare`, each mean is multiplied by the part's factor in
            `BatchShare.weights`.
    """

    total: Tensor
    parts: dict[str, Tensor]


PARTS = ("answer", "minimal_pair_contrast", "masked_lm", "own_token", "supervision")
"""Parts of a loss: means over items, minimal pairs, masked tokens, unmasked tokens, and items with an antecedent."""


def share_of_rank(batch: Batch, rank: int, ranks: int) -> BatchShare:
    """Return the rows of a batch that are assigned to one rank.

    A rank without rows gets the first row (or minimal pair) with weight 0, so that every rank has gradients to reduce.
    """
    share = take_share(batch, rank, ranks)
    weights = _part_counts(share) * ranks / _part_counts(batch).clamp(min=1)
    if not len(share.ids):
        share = take_share(batch, 0, len(batch.ids))
    return BatchShare(**vars(share), weights=weights, tokens=torch.tensor(batch.real_tokens))


def _part_counts(batch: Batch) -> Tensor:
    """Return the number of elements over which each of `PARTS` averages: (5,)."""
    gold = batch.gold.flatten()[batch.candidate_owners]
    with_antecedent = torch.unique(batch.candidate_owners[gold] // batch.gold.shape[1])
    counted = (batch.items, batch.minimal_pairs, batch.masked_positions, batch.own_positions, with_antecedent)
    return torch.tensor([float(len(each)) for each in counted])


def losses(model: PronounModel, batch: Batch, task: Task) -> Losses:
    """Compute the total loss of a batch and its parts; in a `BatchShare`, each part is multiplied by its weight."""
    output = model.forward_with_rows(batch) if task.supervision.weight else model(batch)
    parts: dict[str, Tensor] = {}
    if task.prediction.kind != "none":
        scores = model.prediction_head.scores(output, batch)
        parts["answer"] = model.prediction_head.loss(scores, batch).mean()
        if len(batch.minimal_pairs):
            parts["minimal_pair_contrast"] = minimal_pair_contrast_loss(scores, batch.minimal_pairs)
    if len(batch.masked_positions):
        parts["masked_lm"] = token_loss(model, output, batch, batch.masked_positions)
    if len(batch.own_positions):
        parts["own_token"] = token_loss(model, output, batch, batch.own_positions)
    if task.supervision.weight:
        parts["supervision"] = supervision_loss(output, batch, task.supervision)
    if isinstance(batch, BatchShare):
        parts = {name: part * batch.weights[PARTS.index(name)] for name, part in parts.items()}
    factors = {
        "answer": 1.0,
        "minimal_pair_contrast": task.minimal_pair_contrast,
        "masked_lm": task.masked_lm_weight,
        "own_token": task.own_token_weight,
        "supervision": task.supervision.weight,
    }
    total = output.hidden.new_zeros(()) if parts else 0 * output.hidden.sum()  # no masked token: zero gradients
    for name, part in parts.items():
        total = total + factors[name] * part
    if not total.requires_grad:  # a pointer head on uniform attention, for instance: zero gradients
        total = total + 0 * sum(weight.sum() for weight in model.parameters() if weight.requires_grad)
    return Losses(total, parts)


def token_loss(model: PronounModel, output: EncoderOutput, batch: Batch, positions: Tensor) -> Tensor:
    """Compute the mean cross-entropy, in nats, of the original tokens at the given positions.

    Args:
        model: model whose output layer computes the logits over the vocabulary.
        output: output of the encoder.
        batch: batch with R rows of T tokens.
        positions: indices into the batch flattened to (R * T).
    """
    logits = full_precision(model.output(output.hidden[positions]))
    return functional.cross_entropy(logits, batch.ids.flatten()[positions])


def minimal_pair_contrast_loss(scores: Tensor, minimal_pairs: Tensor) -> Tensor:
    """Compute the mean probability that both items of a minimal pair get the same prediction, in [0, 1].

    This is the mutual-exclusivity loss of Klein and Nabi 2020: the sum over the possible predictions of the product of
    their probabilities for the two items. It needs to know only that the antecedents differ.

    Args:
        scores: (N, M + 1) scores of N items; the columns are M candidates and "none of the candidates".
        minimal_pairs: (Q, 2) item indices of at least one pair with different antecedents.
    """
    shares = scores.softmax(dim=1)
    return (shares[minimal_pairs[:, 0]] * shares[minimal_pairs[:, 1]]).sum(dim=1).mean()


def supervision_loss(output: EncoderOutput, batch: Batch, settings: Supervision) -> Tensor:
    """Compute KL(target || weights) in nats, the loss of attention supervision.

    The weights are the attention weights from the pronoun, averaged over the pronoun's tokens. The target is uniform
    over the antecedent's tokens. The loss is averaged over the supervised layers and heads and over the items with an
    antecedent; it is 0 if no item has an antecedent.
    """
    assert output.rows is not None
    rows = output.rows[settings.layers][:, :, settings.heads]  # (layers, K, heads, T)
    items, most = batch.present.shape
    length = rows.shape[-1]
    gold = batch.gold.flatten()[batch.candidate_owners]
    owners, positions = batch.candidate_owners[gold] // most, batch.candidate_positions[gold] % length
    count = group_sum(torch.ones(len(owners), device=owners.device), owners, items)
    share = 1.0 / count[owners]
    divergence = rows.new_zeros(())
    for layer in rows:
        weights = group_mean(full_precision(layer), batch.query_items, items)[owners, :, positions]  # (G, heads)
        log_weights = weights.clamp(min=torch.finfo(weights.dtype).tiny).log()
        divergence = divergence + (share * (share.log() - log_weights.mean(dim=1))).sum()
    return divergence / len(rows) / (count > 0).sum().clamp(min=1)


def take_share(batch: Batch, rank: int, count: int) -> Batch:
    """Return the rows of a batch that are assigned to process `rank` of `count` processes; there may be none.

    These are every `count`-th row, starting with row `rank`; the rows of a minimal pair count as one row. Random
    choices for the whole batch, such as which tokens are masked, are kept.
    """
    return take_rows(batch, (_row_groups(batch) % count == rank).nonzero().squeeze(1))


def take_rows(batch: Batch, rows: Tensor) -> Batch:
    """Return a batch of the rows with these indices, (S,), ascending; minimal pairs with a missing item are dropped."""
    length, most = batch.ids.shape[1], batch.present.shape[1]
    new_rows = _new_numbers(rows, len(batch.ids))
    segments = batch.segments[rows]
    items = torch.unique(segments[segments >= 0])
    new_items = _new_numbers(items, len(batch.items))

    def moved(positions: Tensor) -> Tensor:
        """Convert positions in the flattened batch to positions in the new one; -1 if the row is left out."""
        row = new_rows[positions // length]
        return torch.where(row < 0, -1, row * length + positions % length)

    queries, candidates = map(moved, (batch.query_positions, batch.candidate_positions))
    masked, own = map(moved, (batch.masked_positions, batch.own_positions))
    owners = batch.candidate_owners[candidates >= 0]
    pairs = new_items[batch.minimal_pairs]
    return replace(
        batch,
        inputs=batch.inputs[rows],
        ids=batch.ids[rows],
        positions=batch.positions[rows],
        segments=torch.where(segments >= 0, new_items[segments], -1),
        words=batch.words[rows],
        slots=batch.slots[rows],
        query_positions=queries[queries >= 0],
        query_items=new_items[batch.query_items[queries >= 0]],
        candidate_positions=candidates[candidates >= 0],
        candidate_owners=new_items[owners // most] * most + owners % most,
        present=batch.present[items],
        gold=batch.gold[items],
        candidate_slots=batch.candidate_slots[items],
        masked_positions=masked[masked >= 0],
        own_positions=own[own >= 0],
        items=batch.items[items],
        minimal_pairs=pairs[(pairs >= 0).all(dim=1)],
    )


def _row_groups(batch: Batch) -> Tensor:
    """Return the group index of each row: (R,), ascending from 0; rows of a minimal pair share a group."""
    begins = torch.ones(len(batch.ids), dtype=torch.bool)
    row_of = torch.empty(len(batch.items), dtype=torch.long)
    row, _ = (batch.segments >= 0).nonzero(as_tuple=True)
    row_of[batch.segments[batch.segments >= 0]] = row
    for first, last in row_of[batch.minimal_pairs].sort(dim=1).values.tolist():
        begins[first + 1 : last + 1] = False  # rows of a minimal pair are contiguous
    return begins.long().cumsum(dim=0) - 1


def _new_numbers(kept: Tensor, size: int) -> Tensor:
    """Return the index in `kept` of each integer below `size`; -1 for integers that are not in `kept`: (size,)."""
    numbers = torch.full((size,), -1)
    numbers[kept] = torch.arange(len(kept))
    return numbers
