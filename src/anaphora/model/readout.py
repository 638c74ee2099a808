"""How the answer leaves the encoder: from the query's vector, from one attention row, or from pairs of vectors.

R rows, T tokens a row, N items, M candidates at most, W width, V vocabulary, S slots, L layers, H heads. The query of
an item is the token (or tokens) at which the question stands.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from anaphora.errors import UserError
from anaphora.model import settings
from anaphora.parts import extensible
from anaphora.specials import CLS, NONE


class Questions(Protocol):
    """What is asked of a batch of packed rows; flat positions are row * T + token.

    Attributes:
        ids: (R, T).
        places, segments: (R, T) place in the item; number of the item, -1 for padding.
        slots: (R, T) slot of the candidate that a token belongs to, 0 for none.
        query_positions, query_items: (K,) flat position of every query token and its item.
        candidate_positions, candidate_owners: (C,) flat position of every candidate token and item * M + candidate.
        present: (N, M) which candidates an item has.
        gold: (N, M) which of them are right; none set means "none of them".
        candidate_slots: (N, M) slot of each candidate.
    """

    @property
    def ids(self) -> Tensor: ...
    @property
    def places(self) -> Tensor: ...
    @property
    def segments(self) -> Tensor: ...
    @property
    def slots(self) -> Tensor: ...
    @property
    def query_positions(self) -> Tensor: ...
    @property
    def query_items(self) -> Tensor: ...
    @property
    def candidate_positions(self) -> Tensor: ...
    @property
    def candidate_owners(self) -> Tensor: ...
    @property
    def present(self) -> Tensor: ...
    @property
    def gold(self) -> Tensor: ...
    @property
    def candidate_slots(self) -> Tensor: ...


@dataclass(frozen=True)
class Seen:
    """What the encoder made of a batch.

    Attributes:
        hidden: (R * T, W), zeros where neither the read-out nor a hidden word looks.
        rows: (L, K, H, T) attention rows of the query tokens, or None where nobody asked.
    """

    hidden: Tensor
    rows: Tensor | None


def group_mean(values: Tensor, owners: Tensor, size: int) -> Tensor:
    """The mean of each owner's values: (K, ...), (K,) -> (size, ...); an owner of nothing gets zeros."""
    total = values.new_zeros(size, *values.shape[1:]).index_add(0, owners, values)
    count = values.new_zeros(size).index_add(0, owners, values.new_ones(len(owners)))
    return total / count.clamp(min=1).view(-1, *[1] * (values.dim() - 1))


def group_sum(values: Tensor, owners: Tensor, size: int) -> Tensor:
    """The sum of each owner's values: (K, ...), (K,) -> (size, ...)."""
    return values.new_zeros(size, *values.shape[1:]).index_add(0, owners, values)


def query_vectors(seen: Seen, asked: Questions) -> Tensor:
    """One vector an item, the mean over its query tokens: (N, W)."""
    return group_mean(seen.hidden[asked.query_positions], asked.query_items, len(asked.present))


def candidate_vectors(seen: Seen, asked: Questions) -> Tensor:
    """One vector a candidate, the mean over the tokens of all its mentions: (N, M, W)."""
    items, most = asked.present.shape
    each = seen.hidden[asked.candidate_positions]
    return group_mean(each, asked.candidate_owners, items * most).view(items, most, -1)


def candidate_masses(rows: Tensor, asked: Questions) -> Tensor:
    """The weight that each item's query puts on each candidate, tokens summed and query tokens averaged.

    Args:
        rows: (K, H, T), attention rows of one layer.

    Returns:
        (N, H, M).
    """
    items, most = asked.present.shape
    per_item = group_mean(rows, asked.query_items, items)  # (N, H, T)
    places = asked.candidate_positions % rows.shape[-1]
    owner_items = asked.candidate_owners // most
    weights = per_item[owner_items, :, places]  # (C, H)
    return group_sum(weights, asked.candidate_owners, items * most).view(items, most, -1).transpose(1, 2)


class Readout(nn.Module):
    """No answer at all; the subclasses give one.

    The last column of the scores is "none of them", at -inf where the settings do not allow it.
    """

    def __init__(self, none_of_them: bool = False) -> None:
        super().__init__()
        self.none_of_them = none_of_them

    def needs_rows(self) -> bool:
        """Whether `Seen.rows` is asked for."""
        return False

    def looks_at(self, asked: Questions) -> tuple[Tensor, ...]:
        """The flat positions whose hidden states it reads; none here."""
        return ()

    def marks(self, slots: Tensor) -> Tensor | None:
        """What is added to the embedding: (R, T) -> (R, T, W), or None for nothing, as here."""
        return None

    def scores(self, seen: Seen, asked: Questions) -> Tensor:
        """How well each candidate answers: (N, M + 1), -inf for absent ones."""
        raise UserError("this run was trained without a read-out (task.readout=no_readout): it answers nothing")

    def loss(self, seen: Seen, asked: Questions) -> Tensor:
        """The loss of each item: (N,); -log of the share of the right answers among all."""
        scores = self.scores(seen, asked)
        right = torch.cat((asked.gold, ~asked.gold.any(dim=1, keepdim=True)), dim=1)
        return scores.logsumexp(dim=1) - scores.masked_fill(~right, -math.inf).logsumexp(dim=1)

    def _only_present(self, scores: Tensor, none: Tensor, asked: Questions) -> Tensor:
        if not self.none_of_them:
            none = torch.full_like(none, -math.inf)
        return torch.cat((scores.masked_fill(~asked.present, -math.inf), none.unsqueeze(1)), dim=1)


class Word(Readout):
    """The antecedent's word at the query's vector, over the whole vocabulary.

    A candidate of several tokens scores their mean, and so does the loss.
    """

    def __init__(self, output: nn.Module, none_of_them: bool) -> None:
        super().__init__(none_of_them)
        self._output = (output,)  # the resolver owns it

    def looks_at(self, asked: Questions) -> tuple[Tensor, ...]:
        return (asked.query_positions,)

    def scores(self, seen: Seen, asked: Questions) -> Tensor:
        logits: Tensor = self._output[0](query_vectors(seen, asked)).log_softmax(dim=-1)  # (N, V)
        items, most = asked.present.shape
        words = asked.ids.flatten()[asked.candidate_positions]
        each = logits[asked.candidate_owners // most, words]
        candidates = group_mean(each, asked.candidate_owners, items * most).view(items, most)
        return self._only_present(candidates, logits[:, NONE], asked)

    def loss(self, seen: Seen, asked: Questions) -> Tensor:
        scores = self.scores(seen, asked)
        right = torch.cat((asked.gold, ~asked.gold.any(dim=1, keepdim=True)), dim=1)
        # Scores are log-probabilities over the vocabulary already: nothing is normalised over the candidates.
        return -scores.masked_fill(~right, 0.0).sum(dim=1) / right.sum(dim=1)


class Slot(Readout):
    """The antecedent's slot at the query's vector; the slots' vectors mark the candidates in the input."""

    def __init__(self, width: int, slots: int, none_of_them: bool) -> None:
        super().__init__(none_of_them)
        self.table = nn.Embedding(slots + 1, width)
        self.output = nn.Linear(width, slots + 1)

    def marks(self, slots: Tensor) -> Tensor:
        marked: Tensor = self.table(slots) * (slots > 0).unsqueeze(-1)
        return marked

    def looks_at(self, asked: Questions) -> tuple[Tensor, ...]:
        return (asked.query_positions,)

    def scores(self, seen: Seen, asked: Questions) -> Tensor:
        logits: Tensor = self.output(query_vectors(seen, asked))  # (N, S + 1); slot 0 is "none of them"
        return self._only_present(logits.gather(1, asked.candidate_slots), logits[:, 0], asked)


class Pointer(Readout):
    """One attention row is the answer: a candidate scores the log of its mass, "none of them" that of [CLS]."""

    def __init__(self, layer: int, head: int, none_of_them: bool) -> None:
        super().__init__(none_of_them)
        self.layer, self.head = layer, head

    def needs_rows(self) -> bool:
        return True

    def scores(self, seen: Seen, asked: Questions) -> Tensor:
        assert seen.rows is not None
        row = seen.rows[self.layer][:, self.head : self.head + 1]
        masses = candidate_masses(row, asked)[:, 0]
        items, length = len(asked.present), row.shape[-1]
        none = group_mean((row[:, 0] * self._openings(asked, length)).sum(dim=1), asked.query_items, items)
        tiny = torch.finfo(masses.dtype).tiny
        return self._only_present(masses.clamp(min=tiny).log(), none.clamp(min=tiny).log(), asked)

    def loss(self, seen: Seen, asked: Questions) -> Tensor:
        scores = self.scores(seen, asked)
        right = torch.cat((asked.gold, ~asked.gold.any(dim=1, keepdim=True)), dim=1)
        # The whole row sums to one already, so its mass on anything else is a wrong answer too.
        return -scores.masked_fill(~right, -math.inf).logsumexp(dim=1)

    @staticmethod
    def _openings(asked: Questions, length: int) -> Tensor:
        """Where the [CLS] of each query token's own sentence stands: (K, T)."""
        opens = asked.ids == CLS
        sentence = opens.long().cumsum(dim=1)
        row = asked.query_positions // length
        return opens[row] & (sentence[row] == sentence.flatten()[asked.query_positions].unsqueeze(1))


class Bilinear(Readout):
    """query @ A @ candidate for each pair of vectors; "none of them" is a vector of its own."""

    def __init__(self, width: int, none_of_them: bool) -> None:
        super().__init__(none_of_them)
        self.pairs = nn.Linear(width, width, bias=False)
        self.none = nn.Parameter(torch.zeros(width))

    def looks_at(self, asked: Questions) -> tuple[Tensor, ...]:
        return (asked.query_positions, asked.candidate_positions)

    def scores(self, seen: Seen, asked: Questions) -> Tensor:
        query = self.pairs(query_vectors(seen, asked)) / math.sqrt(seen.hidden.shape[-1])
        scores = torch.einsum("nw,nmw->nm", query, candidate_vectors(seen, asked))
        return self._only_present(scores, query @ self.none, asked)


class Pair(Readout):
    """A network with one hidden layer over [p; c; p * c], the pronoun's vector p and each candidate's vector c.

    After the mention-pair scorer of Lee et al. 2017, section 4. "None of them" is a candidate with a vector of its own.
    With `heads` the network also reads the logarithm of the weight that each of so many heads puts on the candidate.
    """

    def __init__(self, width: int, hidden: int, heads: int, dropout: float, none_of_them: bool) -> None:
        super().__init__(none_of_them)
        self.heads = heads
        self.none = nn.Parameter(torch.zeros(width))
        first = nn.Linear(3 * width + heads, hidden)
        self.network = nn.Sequential(nn.Dropout(dropout), first, nn.GELU(), nn.Dropout(dropout), nn.Linear(hidden, 1))

    def needs_rows(self) -> bool:
        return self.heads > 0

    def looks_at(self, asked: Questions) -> tuple[Tensor, ...]:
        return (asked.query_positions, asked.candidate_positions)

    def scores(self, seen: Seen, asked: Questions) -> Tensor:
        query = query_vectors(seen, asked).unsqueeze(1)
        candidates = candidate_vectors(seen, asked)
        listed = torch.cat((candidates, self.none.to(candidates.dtype).expand_as(query)), dim=1)  # (N, M + 1, W)
        read = [query.expand_as(listed), listed, query * listed]
        if self.heads:
            read.append(functional.pad(self._weights(seen, asked), (0, 0, 0, 1)))
        scores = self.network(torch.cat(read, dim=-1)).squeeze(-1)
        return self._only_present(scores[:, :-1], scores[:, -1], asked)

    @staticmethod
    def _weights(seen: Seen, asked: Questions) -> Tensor:
        """The decimal logarithm of every head's weight on each candidate: (N, M, L * H), 0 for one percent."""
        assert seen.rows is not None
        masses = torch.cat([candidate_masses(layer, asked) for layer in seen.rows], dim=1)  # (N, L * H, M)
        return masses.transpose(1, 2).clamp(min=1e-6).log10() + 2


class Label(Readout):
    """The label of a whole text, from the mean of its tokens' states or the first one; labels are the candidates."""

    def __init__(self, width: int, labels: int, pooling: str) -> None:
        super().__init__()
        self.pooling = pooling
        self.output = nn.Linear(width, labels)

    def looks_at(self, asked: Questions) -> tuple[Tensor, ...]:
        inside = asked.segments >= 0
        if self.pooling == "first":
            inside = inside & (asked.places == 0)
        return (inside.flatten().nonzero().squeeze(1),)

    def scores(self, seen: Seen, asked: Questions) -> Tensor:
        if len(asked.query_positions):
            raise UserError("this run answers no pronoun question: it tells labels of texts (task.readout=label)")
        (positions,) = self.looks_at(asked)
        texts = group_mean(seen.hidden[positions], asked.segments.flatten()[positions], len(asked.present))
        logits: Tensor = self.output(texts)
        return self._only_present(logits, logits[:, 0], asked)


@extensible(Readout)
def build(chosen: settings.Readout, model: settings.Model, output: nn.Module) -> Readout:
    """The read-out that the settings name; `output` turns vectors into vocabulary logits."""
    match chosen:
        case settings.NoReadout():
            return Readout()
        case settings.Word(none_of_them=none_of_them):
            return Word(output, none_of_them)
        case settings.Slot(slots=slots, none_of_them=none_of_them):
            return Slot(model.width, slots, none_of_them)
        case settings.Pointer(layer=layer, head=head, none_of_them=none_of_them):
            return Pointer(layer, head, none_of_them)
        case settings.Bilinear(none_of_them=none_of_them):
            return Bilinear(model.width, none_of_them)
        case settings.Pair(hidden=hidden, attention=attention, dropout=dropout, none_of_them=none_of_them):
            heads = model.layers * settings.heads_of(model.attention) if attention else 0
            return Pair(model.width, hidden, heads, dropout, none_of_them)
        case settings.Label(labels=labels, pooling=pooling):
            return Label(model.width, len(labels), pooling)
    raise UserError(f"task.readout.kind ({chosen.kind!r}) is not one that can be built")
