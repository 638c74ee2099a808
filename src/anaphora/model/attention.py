"""Self-attention: one definition of mixing, one of the weights, and the projections that the variants choose.

B batch, T tokens, H heads, D features a head, W width, Q queries asked for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from anaphora.errors import UserError
from anaphora.model import settings
from anaphora.model.position import Position
from anaphora.parts import extensible


def attend(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, dropout: float = 0.0, scale: float | None = None
) -> Tensor:
    """Mix `value` rows by softmax(query @ key.T / sqrt(D) + bias), Vaswani et al. 2017, section 3.2.1.

    Args:
        query: (B, H, Q, D).
        key: (B, H, T, D).
        value: (B, H, T, V) for any V.
        bias: broadcastable to (B, H, Q, T); -inf forbids a pair. None adds nothing, in half the time that zeros take.
        dropout: share of the weights set to zero; the caller passes 0 in evaluation.
        scale: what scores are multiplied by instead of 1 / sqrt(D).

    Returns:
        (B, H, Q, V). A query that may attend to nothing gets zeros, not NaN.
    """
    if bias is not None:
        bias = bias.to(query.dtype)
    if _slow_when_fused(query, key):
        scores = _scaled(query, key, scale)
        if bias is None:
            return functional.dropout(scores.softmax(dim=-1), dropout) @ value
        # What `normalised` does for rows without an allowed key, on the bias, which all heads share, instead of scores.
        nothing = bias.amax(dim=-1, keepdim=True) == -math.inf
        weights = (scores + bias.masked_fill(nothing, 0.0)).softmax(dim=-1)
        return (functional.dropout(weights, dropout) @ value).masked_fill(nothing, 0.0)
    return functional.scaled_dot_product_attention(query, key, value, attn_mask=bias, dropout_p=dropout, scale=scale)


def _slow_when_fused(query: Tensor, key: Tensor) -> bool:
    """Whether torch's fused kernel is the slower way: in bfloat16 on the CPU, up to some 256 tokens.

    There it takes two to eight times as long, forward and backward, as two products and a softmax; at 512 tokens both
    take the same.
    """
    if query.device.type != "cpu" or key.shape[-2] > 256:
        return False
    autocast = torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") == torch.bfloat16
    return autocast or query.dtype == torch.bfloat16


def attention_weights(query: Tensor, key: Tensor, bias: Tensor, scale: float | None = None) -> Tensor:
    """The weights with which `attend` mixes, before dropout: softmax(query @ key.T / sqrt(D) + bias).

    Args:
        query: (B, H, Q, D).
        key: (B, H, T, D).
        bias: broadcastable to (B, H, Q, T); -inf forbids a pair.
        scale: as in `attend`.

    Returns:
        (B, H, Q, T), rows summing to 1; a query that may attend to nothing gets zeros.
    """
    return normalised(attention_scores(query, key, bias, scale))


def attention_scores(query: Tensor, key: Tensor, bias: Tensor, scale: float | None = None) -> Tensor:
    """What the softmax sees, query @ key.T / sqrt(D) + bias; shapes and `scale` as in `attention_weights`."""
    return _scaled(query, key, scale) + bias.to(query.dtype)


def products(query: Tensor, key: Tensor) -> Tensor:
    """Every query with every key, query @ key.T: (..., Q, D), (..., T, D) -> (..., Q, T)."""
    return query @ key.transpose(-2, -1)


def _scaled(query: Tensor, key: Tensor, scale: float | None) -> Tensor:
    return products(query, key) / scale_of(query) if scale is None else products(query, key) * scale


def scale_of(query: Tensor) -> float:
    """What the products are divided by, sqrt(D), so that their variance does not grow with D (section 3.2.1)."""
    return math.sqrt(query.shape[-1])


def normalised(scores: Tensor) -> Tensor:
    """The softmax over keys: (..., T) -> (..., T), rows summing to 1; a row of -inf alone gives zeros."""
    nothing = scores.amax(dim=-1, keepdim=True) == -math.inf
    # Rows without any allowed key are softmaxed over zeros and then emptied, so that no NaN reaches a gradient.
    return scores.masked_fill(nothing, 0.0).softmax(dim=-1).masked_fill(nothing, 0.0)


def split(features: Tensor, heads: int) -> Tensor:
    """The features as so many heads: (B, T, W) -> (B, H, T, D)."""
    return features.view(*features.shape[:-1], heads, -1).transpose(1, 2)


def side_by_side(mixed: Tensor) -> Tensor:
    """The heads' features in one row again: (B, H, T, D) -> (B, T, W)."""
    return mixed.transpose(1, 2).flatten(2)


@dataclass(frozen=True)
class Context:
    """What every layer of a batch shares: who may attend to whom, how far apart they stand, and the tokens themselves.

    Attributes:
        embedded: (B, T, W) what the first layer reads.
        places: (B, T) place of each token in its own sentence.
        mask: (B, 1, T, T), 0 where two tokens share a sentence and -inf elsewhere.
        bias: mask plus what the position encoding adds, broadcastable to (B, H, T, T).
        segments: (B, T) number of each token's sentence in its row, -1 for padding.
        plain: whether mask and bias are known to be zero everywhere.
    """

    embedded: Tensor
    places: Tensor
    mask: Tensor
    bias: Tensor
    segments: Tensor
    plain: bool = False


class Edit:
    """What an intervention changes inside one layer's attention: nothing here; subclasses change one place each.

    An edit returns new tensors and leaves those that it is given as they are.
    """

    def scores(self, scores: Tensor) -> Tensor:
        """Before the softmax, bias and mask included: (B, H, T, T) -> same; -inf forbids a pair."""
        return scores

    def weights(self, weights: Tensor) -> Tensor:
        """After the softmax: (B, H, T, T) -> same; nothing makes the rows sum to 1 again."""
        return weights

    def mixed(self, mixed: Tensor) -> Tensor:
        """What each head took from the values: (B, H, T, D) -> same."""
        return mixed


def same_sentence(segments: Tensor) -> Tensor:
    """The additive mask of packed rows: (B, T) sentence numbers, -1 for padding -> (B, 1, T, T) of 0 and -inf.

    Padding attends to nothing and nothing attends to it.
    """
    together = (segments.unsqueeze(-1) == segments.unsqueeze(-2)) & (segments >= 0).unsqueeze(-1)
    empty = torch.zeros((), device=segments.device)
    return torch.where(together, empty, -math.inf).unsqueeze(1)


def only_asking(second: Tensor) -> Tensor:
    """The additive mask of a second sequence, which asks the first and is not asked: (B, T) bool -> (B, 1, 1, T).

    Its tokens are queries alone, so that keys and values come from the first sequence: attention over the output of
    another sequence, Vaswani et al. 2017, section 3.2.3.
    """
    empty = torch.zeros((), device=second.device)
    return torch.where(second, -math.inf, empty)[:, None, None, :]


class Attention(nn.Module):
    """Multi-head attention with projections of its own for query, key and value.

    Subclasses change one thing each: which projections there are, or which bias counts.
    """

    has_maps = True

    def __init__(
        self,
        width: int,
        heads: int,
        position: Position,
        dropout: float,
        head_dropout: float,
        scale: float | None = None,
    ) -> None:
        super().__init__()
        self.heads = heads
        self.scale = scale  # of the scores; None is 1 / sqrt(D)
        self.dropout = dropout
        self.head_dropout = head_dropout
        self.edits: tuple[Edit, ...] = ()  # in the order in which they act
        # Held in a tuple: the encoder owns the module, a layer only asks it.
        self._position = (position,)
        self.make_projections(width)

    def make_projections(self, width: int) -> None:
        """Create what is trained."""
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)

    def project(self, hidden: Tensor, content: Tensor, context: Context) -> tuple[Tensor, Tensor, Tensor]:
        """Query and key of `hidden`, value of `content`, positions applied: (B, T, W) twice -> (B, H, T, D) thrice."""
        query, key, value = self.unturned(hidden, content)
        rotate, places = self._position[0].rotate, context.places
        turned = rotate(query, places)
        return turned, turned if key is query else rotate(key, places), value

    def unturned(self, hidden: Tensor, content: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What `project` gives before positions turn it: (B, T, W) twice -> (B, H, T, D) thrice."""
        return self._split(self.query(hidden)), self._split(self.key(hidden)), self._split(self.value(content))

    def score_bias(self, context: Context) -> Tensor:
        """What is added to the scores: broadcastable to (B, H, T, T)."""
        return context.bias

    def mix(self, query: Tensor, key: Tensor, value: Tensor, context: Context) -> Tensor:
        """What every token takes from the others, heads side by side: three of (B, H, T, D) -> (B, T, W)."""
        dropout = self.dropout if self.training else 0.0
        if self.edits:
            mixed = functional.dropout(self.maps(query, key, context), dropout) @ value
            for edit in self.edits:
                mixed = edit.mixed(mixed)
        else:
            bias = None if context.plain else self.score_bias(context)
            mixed = attend(query, key, value, bias, dropout, self.scale)
        if self.training and self.head_dropout:
            mixed = self._drop_heads(mixed)
        return side_by_side(mixed)

    def finish(self, mixed: Tensor) -> Tensor:
        """The output projection over the heads side by side: (..., W) -> (..., W)."""
        output: Tensor = self.output(mixed)
        return output

    def rows(self, query: Tensor, key: Tensor, context: Context, asked: tuple[Tensor, Tensor]) -> Tensor:
        """The weights of single queries, as the edits leave them.

        Args:
            query, key: (B, H, T, D) as `project` gave them.
            asked: row and token of each query, two of (Q,).

        Returns:
            (Q, H, T).
        """
        row, token = asked
        if self.edits:
            return self.maps(query, key, context)[row, :, token]
        bias = self.score_bias(context)
        bias = bias.expand(query.shape[0], self.heads, -1, -1)[row, :, token].unsqueeze(2)
        return attention_weights(query[row, :, token].unsqueeze(2), key[row], bias, self.scale).squeeze(2)

    def maps(self, query: Tensor, key: Tensor, context: Context) -> Tensor:
        """The weights of every query, as the edits leave them: (B, H, T, T)."""
        scores = attention_scores(query, key, self.score_bias(context), self.scale)
        for edit in self.edits:
            scores = edit.scores(scores)
        weights = normalised(scores)
        for edit in self.edits:
            weights = edit.weights(weights)
        return weights

    def _split(self, features: Tensor) -> Tensor:
        return split(features, self.heads)

    def _drop_heads(self, mixed: Tensor) -> Tensor:
        kept = torch.rand(mixed.shape[0], self.heads, 1, 1, device=mixed.device) >= self.head_dropout
        # The heads that stay speak louder, so that the sum keeps its scale (Zhou et al. 2020, section 3).
        share = kept.float().mean(dim=1, keepdim=True).clamp(min=1.0 / self.heads)
        return mixed * (kept / share).to(mixed.dtype)


class SharedQueryKey(Attention):
    """One projection serves as query and as key, so that raw scores are symmetric."""

    def make_projections(self, width: int) -> None:
        self.query = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)

    def unturned(self, hidden: Tensor, content: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        shared = self._split(self.query(hidden))
        return shared, shared, self._split(self.value(content))


class Uniform(Attention):
    """Every score is zero and no position bias counts: each token takes the mean of its sentence's values."""

    def make_projections(self, width: int) -> None:
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)

    def unturned(self, hidden: Tensor, content: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        value = self._split(self.value(content))
        nothing = torch.zeros_like(value)
        return nothing, nothing, value

    def score_bias(self, context: Context) -> Tensor:
        return context.mask


class ParameterFree(Attention):
    """softmax(X X^T / sqrt(D)) X on each head's slice of the features; positions still turn the scores."""

    def make_projections(self, width: int) -> None:
        """Nothing is trained."""

    def unturned(self, hidden: Tensor, content: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        features = self._split(hidden)
        return features, features, self._split(content)

    def finish(self, mixed: Tensor) -> Tensor:
        return mixed


class Recurrent(Attention):
    """A recurrent network in each direction in attention's place: it reads each sentence word by word, without maps.

    Each direction has half of the width, so that a layer has about as many weights as one of attention.
    """

    has_maps = False
    name: str
    network_class: type[nn.GRU] | type[nn.LSTM]

    def make_projections(self, width: int) -> None:
        self.network = self.network_class(width, width // 2, batch_first=True, bidirectional=True)

    def project(self, hidden: Tensor, content: Tensor, context: Context) -> tuple[Tensor, Tensor, Tensor]:
        """What the network reads, in the shape of queries, keys and values: (B, T, W) -> (B, 1, T, W) thrice."""
        read = self._split(hidden)
        return read, read, read

    def mix(self, query: Tensor, key: Tensor, value: Tensor, context: Context) -> Tensor:
        """The network's states, every sentence read alone: three of (B, 1, T, W) -> (B, T, W), zeros for padding."""
        if self.edits:
            raise UserError(self._refusal())
        rows = value.squeeze(1)
        real = context.segments >= 0
        row = torch.arange(len(rows), device=rows.device).unsqueeze(1).expand_as(context.segments)
        numbers = torch.stack((row[real], context.segments[real]), dim=1)
        _, sentence, lengths = torch.unique(numbers, dim=0, return_inverse=True, return_counts=True)
        places = context.places[real]
        first = places.new_zeros(len(lengths)).scatter_reduce(0, sentence, places, "amin", include_self=False)
        places = places - first[sentence]
        padded = rows.new_zeros(len(lengths), int(lengths.max()), rows.shape[-1])
        padded[sentence, places] = rows[real]
        packed = nn.utils.rnn.pack_padded_sequence(padded, lengths.cpu(), batch_first=True, enforce_sorted=False)
        states, _ = nn.utils.rnn.pad_packed_sequence(self.network(packed)[0], batch_first=True)
        mixed = torch.zeros_like(rows)
        mixed[real] = states[sentence, places].to(rows.dtype)
        return mixed

    def finish(self, mixed: Tensor) -> Tensor:
        return mixed

    def rows(self, query: Tensor, key: Tensor, context: Context, asked: tuple[Tensor, Tensor]) -> Tensor:
        """Refused: there are none."""
        raise UserError(self._refusal())

    def maps(self, query: Tensor, key: Tensor, context: Context) -> Tensor:
        """Refused: there are none."""
        raise UserError(self._refusal())

    def _refusal(self) -> str:
        return f"model.attention={self.name} has no attention maps: only what the model answers can be measured"


class Gru(Recurrent):
    """Gated recurrent units, Cho et al. 2014."""

    name = "gru"
    network_class = nn.GRU


class Lstm(Recurrent):
    """Long short-term memory, Hochreiter and Schmidhuber 1997."""

    name = "lstm"
    network_class = nn.LSTM


@extensible(Attention)
def build(chosen: settings.Attention, width: int, position: Position) -> Attention:
    """The attention that the settings name."""
    match chosen:
        case settings.SharedQueryKey(heads=heads, scaled=scaled, dropout=dropout, head_dropout=head_dropout):
            return SharedQueryKey(width, heads, position, dropout, head_dropout, None if scaled else 1.0)
        case settings.MultiHead(heads=heads, scaled=scaled, dropout=dropout, head_dropout=head_dropout):
            return Attention(width, heads, position, dropout, head_dropout, None if scaled else 1.0)
        case settings.Gru():
            return Gru(width, 1, position, 0.0, 0.0)
        case settings.Lstm():
            return Lstm(width, 1, position, 0.0, 0.0)
        case settings.SingleHead(dropout=dropout):
            return Attention(width, 1, position, dropout, 0.0)
        case settings.Uniform(heads=heads):
            return Uniform(width, heads, position, 0.0, 0.0)
        case settings.ParameterFree(heads=heads):
            return ParameterFree(width, heads, position, 0.0, 0.0)
    raise UserError(f"model.attention.kind ({chosen.kind!r}) is not one that this encoder can build")
