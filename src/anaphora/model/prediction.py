"""Prediction heads, which score candidate antecedents or labels from hidden states or attention rows.

An item is one pronoun (or masked token) with its candidates; its query tokens are those of the pronoun or mask. In
shapes, R is the number of batch rows, T of tokens per row, N of items, M of candidates per item, K of query tokens, C
of candidate tokens, V of tokens in the vocabulary, S of slots, L of layers, and H of heads; W is the width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from anaphora.base.batch import Batch
from anaphora.base.errors import UserError
from anaphora.base.translation import N_
from anaphora.settings.vocabulary import CLS, NONE


@dataclass(frozen=True)
class EncoderOutput:
    """Output of the encoder for a batch.

    Attributes:
        hidden: (R * T, W) hidden states; zero at tokens that neither the prediction head nor the output layer needs.
        rows: (L, K, H, T) attention rows of the query tokens; None if they are not needed.
    """

    hidden: Tensor
    rows: Tensor | None


def group_mean(values: Tensor, owners: Tensor, size: int) -> Tensor:
    """Return the mean of the values of each group, (size, ...), grouped as in `group_sum`; zeros for empty groups."""
    count = group_sum(values.new_ones(len(owners)), owners, size)
    return group_sum(values, owners, size) / count.clamp(min=1).view(-1, *[1] * (values.dim() - 1))


def group_sum(values: Tensor, owners: Tensor, size: int) -> Tensor:
    """Return the sum of the values of each group, (size, ...).

    `owners`, (K,), has the group index of each of the `values`, (K, ...), in [0, size).
    """
    return values.new_zeros(size, *values.shape[1:]).index_add(0, owners, values)


def query_vectors(output: EncoderOutput, batch: Batch) -> Tensor:
    """Return one vector per item, the mean over the tokens of its pronoun (or mask): (N, W)."""
    return group_mean(output.hidden[batch.query_positions], batch.query_items, len(batch.present))


def candidate_vectors(output: EncoderOutput, batch: Batch) -> Tensor:
    """Return one vector per candidate, the mean over the tokens of all its mentions: (N, M, W)."""
    items, most = batch.present.shape
    vectors = output.hidden[batch.candidate_positions]
    return group_mean(vectors, batch.candidate_owners, items * most).view(items, most, -1)


def candidate_masses(rows: Tensor, batch: Batch) -> Tensor:
    """Return the attention mass on each candidate, summed over its tokens and averaged over the query tokens.

    The attention rows are those of one layer: (K, H, T) -> (N, H, M).
    """
    items, most = batch.present.shape
    per_item = group_mean(rows, batch.query_items, items)  # (N, H, T)
    columns = batch.candidate_positions % rows.shape[-1]
    owner_items = batch.candidate_owners // most
    weights = per_item[owner_items, :, columns]  # (C, H)
    return group_sum(weights, batch.candidate_owners, items * most).view(items, most, -1).transpose(1, 2)


def full_precision(values: Tensor) -> Tensor:
    """Convert float16 and bfloat16 to float32: in bfloat16, a log-probability of -9 has an error of up to 0.03."""
    return values.float() if values.dtype in (torch.bfloat16, torch.float16) else values


class PredictionHead(nn.Module):
    """Base class of prediction heads; used directly, it is the head of a model that predicts no antecedents.

    The last column of the scores, (N, M + 1), is the score of "none of the candidates"; it is -inf unless
    `none_of_them` is True.
    """

    def __init__(self, none_of_them: bool = False) -> None:
        super().__init__()
        self.none_of_them = none_of_them

    def needs_rows(self) -> bool:
        """Return whether the prediction head needs attention rows (`EncoderOutput.rows`)."""
        return False

    def read_positions(self, batch: Batch) -> tuple[Tensor, ...]:
        """Return the indices, among all R * T tokens, of the hidden states that the head needs: tensors (P,)."""
        return ()

    def marks(self, slots: Tensor) -> Tensor | None:
        """Return vectors that mark the candidates, (R, T, W), to be added to the token embeddings; None for no vectors.

        `slots`, (R, T), has the number, from 1, of the candidate to which each token belongs, and 0 for other tokens.
        """
        return None

    def scores(self, output: EncoderOutput, batch: Batch) -> Tensor:
        """Return the scores of the candidates, and of "none of the candidates" last, (N, M + 1), at least in float32.

        If an item has fewer than M candidates, the scores of the missing ones are -inf.

        Raises:
            UserError: the model has no prediction head (this base class).
        """
        raise UserError("this run was trained without a prediction head (task.prediction=none): it answers nothing")

    def loss(self, scores: Tensor, batch: Batch) -> Tensor:
        """Return -log of the summed probability of each item's antecedents, or of "none of the candidates": (N,).

        The probabilities are the softmax of `scores`.
        """
        return scores.logsumexp(dim=1) - scores.masked_fill(~batch.right_answers, -math.inf).logsumexp(dim=1)

    def _only_present(self, scores: Tensor, none: Tensor, batch: Batch) -> Tensor:
        if not self.none_of_them:
            none = torch.full_like(none, -math.inf)
        return full_precision(torch.cat((scores.masked_fill(~batch.present, -math.inf), none.unsqueeze(1)), dim=1))


class Word(PredictionHead):
    """Prediction head that predicts the antecedent's word from the pronoun's vector, over the whole vocabulary.

    A candidate's score is the mean log-probability of its tokens; the score of "none of the candidates" is the
    log-probability of the token [NONE].
    """

    def __init__(self, output: nn.Module, none_of_them: bool) -> None:
        super().__init__(none_of_them)
        self._output = (output,)  # in a tuple, so that it is not registered as a submodule

    def read_positions(self, batch: Batch) -> tuple[Tensor, ...]:
        return (batch.query_positions,)

    def scores(self, output: EncoderOutput, batch: Batch) -> Tensor:
        logits = full_precision(self._output[0](query_vectors(output, batch))).log_softmax(dim=-1)  # (N, V)
        items, most = batch.present.shape
        words = batch.ids.flatten()[batch.candidate_positions]
        token_logits = logits[batch.candidate_owners // most, words]
        candidates = group_mean(token_logits, batch.candidate_owners, items * most).view(items, most)
        return self._only_present(candidates, logits[:, NONE], batch)

    def loss(self, scores: Tensor, batch: Batch) -> Tensor:
        """Return the negative mean score of each item's antecedents, or of "none of the candidates": (N,)."""
        right = batch.right_answers
        # Scores already are log-probabilities over the vocabulary, so they are not normalised over candidates.
        return -scores.masked_fill(~right, 0.0).sum(dim=1) / right.sum(dim=1)


class Slot(PredictionHead):
    """Prediction head that predicts the number (slot) of the antecedent among the candidates from the pronoun's vector.

    A trained vector for each number, from 1, is added to the token embeddings of the candidate with this number.
    """

    def __init__(self, width: int, slots: int, none_of_them: bool) -> None:
        super().__init__(none_of_them)
        self.table = nn.Embedding(slots + 1, width)
        self.output = nn.Linear(width, slots + 1)

    def marks(self, slots: Tensor) -> Tensor:
        marked: Tensor = self.table(slots) * (slots > 0).unsqueeze(-1)
        return marked

    def read_positions(self, batch: Batch) -> tuple[Tensor, ...]:
        return (batch.query_positions,)

    def scores(self, output: EncoderOutput, batch: Batch) -> Tensor:
        logits: Tensor = self.output(query_vectors(output, batch))  # (N, S + 1); slot 0 is "none of them"
        return self._only_present(logits.gather(1, batch.candidate_slots), logits[:, 0], batch)


class Pointer(PredictionHead):
    """Prediction head whose scores are the logarithms of attention masses of one attention head.

    The score of a candidate is the log attention mass from the pronoun to the candidate; the score of "none of the
    candidates" is the log attention mass to [CLS].
    """

    def __init__(self, layer: int, head: int, none_of_them: bool) -> None:
        super().__init__(none_of_them)
        self.layer, self.head = layer, head

    def needs_rows(self) -> bool:
        return True

    def scores(self, output: EncoderOutput, batch: Batch) -> Tensor:
        assert output.rows is not None
        row = full_precision(output.rows[self.layer][:, self.head : self.head + 1])
        masses = candidate_masses(row, batch)[:, 0]
        items, length = len(batch.present), row.shape[-1]
        # A row has no weight outside its own sentence, and so none on the [CLS] of another sentence.
        openings = (batch.ids == CLS)[batch.query_positions // length]  # (K, T)
        none = group_mean((row[:, 0] * openings).sum(dim=1), batch.query_items, items)
        tiny = torch.finfo(masses.dtype).tiny
        return self._only_present(masses.clamp(min=tiny).log(), none.clamp(min=tiny).log(), batch)

    def loss(self, scores: Tensor, batch: Batch) -> Tensor:
        """Return -log of the attention mass on each item's antecedents, not normalised over candidates: (N,)."""
        # The whole row already sums to one, so mass on other tokens counts as a wrong answer.
        return -scores.masked_fill(~batch.right_answers, -math.inf).logsumexp(dim=1)


class Bilinear(PredictionHead):
    """Prediction head with the scores p @ A @ c / sqrt(W), where p is the pronoun's vector and c the candidate's.

    The matrix A, and the vector that stands for "none of the candidates", are trained.
    """

    def __init__(self, width: int, none_of_them: bool) -> None:
        super().__init__(none_of_them)
        self.pairs = nn.Linear(width, width, bias=False)
        self.none = nn.Parameter(torch.zeros(width))

    def read_positions(self, batch: Batch) -> tuple[Tensor, ...]:
        return (batch.query_positions, batch.candidate_positions)

    def scores(self, output: EncoderOutput, batch: Batch) -> Tensor:
        query = self.pairs(query_vectors(output, batch)) / math.sqrt(output.hidden.shape[-1])
        scores = torch.einsum("nw,nmw->nm", query, candidate_vectors(output, batch))
        return self._only_present(scores, query @ self.none, batch)


class Pair(PredictionHead):
    """Prediction head that scores [p; c; p * c] with a network; p is the pronoun's vector and c the candidate's.

    The network has one hidden layer, after the pairwise scorer of Lee et al. 2017, section 4. A trained vector stands
    for "none of the candidates". If `heads` is above 0, the pronoun's log attention mass on the candidate in every head
    is a further input.
    """

    def __init__(self, width: int, hidden: int, heads: int, dropout: float, none_of_them: bool) -> None:
        super().__init__(none_of_them)
        self.heads = heads
        self.none = nn.Parameter(torch.zeros(width))
        first = nn.Linear(3 * width + heads, hidden)
        self.network = nn.Sequential(nn.Dropout(dropout), first, nn.GELU(), nn.Dropout(dropout), nn.Linear(hidden, 1))

    def needs_rows(self) -> bool:
        return self.heads > 0

    def read_positions(self, batch: Batch) -> tuple[Tensor, ...]:
        return (batch.query_positions, batch.candidate_positions)

    def scores(self, output: EncoderOutput, batch: Batch) -> Tensor:
        query = query_vectors(output, batch).unsqueeze(1)
        candidates = candidate_vectors(output, batch)
        listed = torch.cat((candidates, self.none.to(candidates.dtype).expand_as(query)), dim=1)  # (N, M + 1, W)
        read = [query.expand_as(listed), listed, query * listed]
        if self.heads:
            read.append(functional.pad(self._log_masses(output, batch), (0, 0, 0, 1)))
        scores = self.network(torch.cat(read, dim=-1)).squeeze(-1)
        return self._only_present(scores[:, :-1], scores[:, -1], batch)

    @staticmethod
    def _log_masses(output: EncoderOutput, batch: Batch) -> Tensor:
        """Return 2 + log10 of each head's attention mass on each candidate, clamped at 1e-6: (N, M, L * H)."""
        assert output.rows is not None
        masses = torch.cat([candidate_masses(layer, batch) for layer in output.rows], dim=1)  # (N, L * H, M)
        return masses.transpose(1, 2).clamp(min=1e-6).log10() + 2


class Label(PredictionHead):
    """Prediction head that predicts the label of a text, from the mean of the hidden states or from the first one.

    In the scores, (N, M + 1), N is the number of texts, and labels take the place of candidates.
    """

    def __init__(self, width: int, labels: int, pooling: str) -> None:
        super().__init__()
        self.pooling = pooling
        self.output = nn.Linear(width, labels)

    def read_positions(self, batch: Batch) -> tuple[Tensor, ...]:
        inside = batch.segments >= 0
        if self.pooling == "first":
            inside = inside & (batch.positions == 0)
        return (inside.flatten().nonzero().squeeze(1),)

    def scores(self, output: EncoderOutput, batch: Batch) -> Tensor:
        """Score the labels of texts: (N, M + 1); the last column, "none of the labels", is -inf.

        Raises:
            UserError: the batch has pronouns.
        """
        if len(batch.query_positions):
            raise UserError(
                N_("this run answers no pronoun question: it predicts labels of texts (task.prediction=label)")
            )
        (positions,) = self.read_positions(batch)
        texts = group_mean(output.hidden[positions], batch.segments.flatten()[positions], len(batch.present))
        logits: Tensor = self.output(texts)
        return self._only_present(logits, logits[:, 0], batch)
