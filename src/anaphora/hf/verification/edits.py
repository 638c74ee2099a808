"""Search for the operations at which a model's attention can be edited, and verification of edits.

A forward pass over two texts locates two operations of each block: the softmax that computes the attention weights, and
the matrix product of the weights and the values. For the verification, copies of one text run in a single pass, and in
each copy one block is edited. In the first copy for a block, all edges (attention from a query token to key tokens) of
each head are knocked out except one. In the second copy, the query's attention weights are replaced by weights with
this edge alone, and in the third copy, the query's output of each head is replaced by the output with this edge alone.
The replacements are computed independently, from the weights and values of the text without intervention. All three
copies must have the same final hidden states. One edge is kept, since its weight is then exactly 1 in any data type; if
one edge were removed instead, rounding to half precision could hide the effect in a deep model. In shapes, B is the
number of texts, H of heads, T of tokens, K of keys, L of blocks and D of features per head.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from anaphora.base.errors import UserError
from anaphora.hf import interface
from anaphora.hf.editing import EditPoint, Place, PlacedOperations, RowOrder, edited_attention
from anaphora.hf.verification.forward import eager_maps, reading_mode, run_model, whole_texts
from anaphora.hf.verification.observation import AttentionInSteps, running_modules
from anaphora.hf.verification.reading import MapReading
from anaphora.model.mixer import Edit

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_ORDERS = tuple(RowOrder(axes) for axes in permutations((0, 1, 2)))  # type: ignore[arg-type]
_WITHOUT_SINK = (slice(None, -1), slice(1, None))
"""Columns of the tokens if a softmax has one further column, for an attention sink."""
_ROUNDING = {torch.float16: 1e-3, torch.bfloat16: 1e-2}
_ROUNDING_OF_FLOATS = 1e-5
"""Maximum relative difference between two computations of the same weights or states."""
_SHARE_OF_EFFECT = 0.05
"""Maximum difference between the knockout and the independent computation, as a share of the knockout's effect."""


@dataclass(frozen=True)
class _Product:
    """Matrix product whose factors could be attention weights, (N, R, K), and values, (N, K, D).

    R is the number of attention rows in each of N pairs of matrices. If `transposed` is True, the model multiplies the
    transposed matrices in reverse order; both factors are stored in the shapes above.
    """

    place: Place
    factor: Tensor
    values: Tensor
    transposed: bool


class _Recorder(PlacedOperations):  # type: ignore[no-untyped-call]
    """Recorder of softmaxes and matrix products that could be steps of attention over a given number of tokens."""

    def __init__(self, running: Sequence[str], tokens: int) -> None:
        super().__init__(running)
        self.tokens = tokens
        self.softmaxes: list[tuple[Place, Tensor]] = []
        self.products: list[_Product] = []

    def softmax(self, place: Place, scores: Tensor, compute: Callable[[Tensor], Tensor]) -> Tensor:
        weights = compute(scores)
        if weights.shape[-1] in (self.tokens, self.tokens + 1):
            self.softmaxes.append((place, weights.detach().clone()))
        return weights

    def product(self, place: Place, left: Tensor, right: Tensor, compute: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        factors = ((left, right, False), (right.transpose(-2, -1), left.transpose(-2, -1), True))
        for factor, values, transposed in factors:
            if factor.shape[-1] == self.tokens and bool((factor >= 0).all()):
                weights, mixed = (one.detach().clone().reshape(-1, *one.shape[-2:]) for one in (factor, values))
                self.products.append(_Product(place, weights, mixed, transposed))
        return compute(left, right)


def edit_points(
    model: PreTrainedModel, reading: MapReading, ids: Tensor, maps: Sequence[Tensor] | None = None
) -> tuple[EditPoint, ...]:
    """Return, for each Transformer block of a text encoder, the operations at which its attention can be edited.

    These are the softmax that computes the attention weights, and the product of the weights and the values.

    Args:
        model: text encoder or decoder of `transformers`.
        reading: method by which its attention maps are read.
        ids: (2, T) ids of two texts of ordinary tokens; T must differ from every dimension of the model's parameters.
        maps: attention maps of both texts, (2, H, T, T) for each block, if they are known; None to read them.

    Raises:
        UserError: a block cannot be edited, or its operations are ambiguous; the message gives the reason.
    """
    given, record, _ = _record(model, reading, ids)
    maps = given if maps is None else maps
    points = tuple(_point(one, record, number) for number, one in enumerate(maps))
    places = [place for point in points for place in (point.softmax, point.product)]
    if len(set(places)) < len(places):
        raise UserError("two blocks have the same weights, so that they cannot be told apart")
    _check(model, reading, points, ids[:1], [one[:1] for one in maps])
    return points


def _record(model: PreTrainedModel, reading: MapReading, ids: Tensor) -> tuple[list[Tensor], _Recorder, Tensor]:
    """Run texts through a model; return the blocks' maps, (B, H, T, T), the recorded operations and final states."""
    inputs = whole_texts(ids, reading.has_types)
    with torch.no_grad(), reading_mode(model, reading.implementation):
        tap = interface.AttentionTap()
        if reading.implementation == interface.NAME:
            with AttentionInSteps(), interface.tapped(tap):  # as below, since fused attention rounds differently
                run_model(model, inputs)
        with running_modules(model) as running, AttentionInSteps(), _Recorder(running, ids.shape[1]) as record:
            outputs = run_model(model, inputs, **reading.options)
    return tap.weights or eager_maps(outputs), record, outputs[0]


def _point(maps: Tensor, record: _Recorder, number: int) -> EditPoint:
    """Locate the softmax and the product of a block by the weights of its attention map; `number` is its index."""
    sizes = (maps.shape[0], maps.shape[1], maps.shape[2])
    product, order = _nearest(maps, [(one, one.factor) for one in record.products], sizes, number)
    factor = order.to_maps(product.factor, sizes)
    copies = [one for one in record.products if one.factor.shape == product.factor.shape]
    if sum(torch.equal(one.factor, product.factor) for one in copies) > 1:
        raise UserError(f"the weights of block {number} enter two products")
    softmaxes = [
        ((place, columns), weights[..., columns])
        for place, weights in record.softmaxes
        for columns in (_WITHOUT_SINK if weights.shape[-1] > record.tokens else (slice(None),))
    ]
    (softmax, columns), scores = _nearest(factor, softmaxes, sizes, number)
    return EditPoint(softmax, product.place, scores, order, columns, product.transposed)


def _nearest(maps: Tensor, named: Sequence[tuple[Any, Tensor]], sizes: tuple[int, int, int], number: int) -> Any:
    """Return the name of the matrix in `named` closest to an attention map, and the order of its rows (`RowOrder`).

    `sizes` are the numbers of texts, heads and queries of the map; `number` is the block's index, for messages.

    Raises:
        UserError: no matrix equals the map up to rounding.
    """
    distances = [
        (float((order.to_maps(matrix, sizes).float() - maps.float()).abs().max()), place, order)
        for place, (_, matrix) in enumerate(named)
        if matrix.numel() == maps.numel()
        for order in _ORDERS
    ]
    distance, place, order = min(distances, key=lambda one: one[0], default=(1.0, 0, _ORDERS[0]))
    if not distance <= _rounding(maps.dtype):
        raise UserError(f"no softmax gives the weights by which block {number} mixes values")
    return named[place][0], order


def _rounding(dtype: torch.dtype) -> float:
    return _ROUNDING.get(dtype, _ROUNDING_OF_FLOATS)


def _check(
    model: PreTrainedModel, reading: MapReading, points: Sequence[EditPoint], ids: Tensor, maps: Sequence[Tensor]
) -> None:
    """Check that attention knockout gives the same final hidden states as an independent computation.

    In each head, all edges of the last token are knocked out except the edge with the second largest weight. In
    decoders, the states of earlier tokens must not change.
    """
    _, record, plain = _record(model, reading, ids)
    query, blocks, rows = ids.shape[1] - 1, len(points), 3 * len(points) + 1
    edits: dict[int, list[Edit]] = {}
    for block, (one, point) in enumerate(zip(maps, points, strict=True)):
        given = one[0, :, query].double()  # (H, T)
        largest, places = given.topk(2)
        keys = torch.where(largest[:, 1] > 0, places[:, 1], places[:, 0])  # (H,)
        own = given.gather(1, keys[:, None])
        sink = (1 - given.sum(dim=1, keepdim=True)).clamp(min=0) if reading.has_sink else 0.0
        left = torch.zeros_like(given).scatter(1, keys[:, None], own / (own + sink))
        mixed = _by_hand(left, query, point, record, one.shape[1])
        edits[block] = [
            _InOneText(1 + block, query, keys=keys),
            _InOneText(1 + blocks + block, query, weights=left),
            _InOneText(1 + 2 * blocks + block, query, mixed=mixed),
        ]
    inputs = whole_texts(ids.expand(rows, -1), reading.has_types)
    sizes = (rows, maps[0].shape[1], ids.shape[1])
    with reading_mode(model, reading.implementation), edited_attention(model, points, edits, sizes):
        states = run_model(model, inputs, **reading.options)[0]
    if states.shape[1:] != plain.shape[1:]:
        raise UserError(f"two readings of one text give {tuple(plain.shape[1:])} and {tuple(states.shape[1:])} numbers")
    _check_states(states.double(), plain[0].double(), reading.is_decoder, _rounding(plain.dtype))


def _by_hand(weights: Tensor, query: int, point: EditPoint, record: _Recorder, heads: int) -> Tensor:
    """Compute the output of each head at one token, (H, D), from attention weights, (H, T), and recorded values."""
    (product,) = (one for one in record.products if one.place == point.product and one.transposed == point.transposed)
    count, rows, _ = product.factor.shape
    numbers = torch.arange(count * rows, device=weights.device)[:, None]
    row = point.weights.to_maps(numbers, (1, heads, record.tokens))[0, :, query, 0]
    return torch.einsum("hk,hkd->hd", weights, product.values[row // rows].double())


def _check_states(states: Tensor, plain: Tensor, is_decoder: bool, rounding: float) -> None:
    """Check the final hidden states of copies of one text, (3L + 1, T, W).

    The first copy has no edit and must agree with `plain`, the states of the text alone. The three copies for each
    block, in which the last token is edited, must agree with one another.
    """
    blocks = len(states) // 3
    noise, noise_of_last = (rounding * float(part.norm()) for part in (plain, plain[-1]))
    if not float((states[0] - plain).norm()) <= noise:
        raise UserError("a text in a batch with copies of itself gives other numbers than alone")
    cut, *by_hand = (states[1 + kind * blocks : 1 + (kind + 1) * blocks] for kind in range(3))
    for block in range(blocks):
        effect = cut[block] - states[0]
        if not float(effect[-1].norm()) > noise_of_last:
            raise UserError(f"knocking out edges in block {block} changes nothing")
        if is_decoder and not float(effect[:-1].norm()) <= noise:
            raise UserError(f"knocking out edges of the last token in block {block} changes earlier tokens")
        for difference in (cut[block] - one[block] for one in by_hand):
            for rows, least in ((slice(None), noise), (slice(-1, None), noise_of_last)):
                if not float(difference[rows].norm()) <= least + _SHARE_OF_EFFECT * float(effect[rows].norm()):
                    raise UserError(f"knocking out edges in block {block} does not give what is computed without them")


class _InOneText(Edit):
    """Edit that masks all keys but one, or replaces weights or outputs, in every head at one query token of a text."""

    def __init__(self, text: int, query: int, **given: Tensor) -> None:
        self.text, self.query = text, query
        self.given: Mapping[str, Tensor] = given

    def scores(self, scores: Tensor) -> Tensor:
        if "keys" not in self.given:
            return scores
        keys = self.given["keys"]
        heads = torch.arange(len(keys), device=keys.device)
        changed = scores.clone()
        changed[self.text, :, self.query] = float("-inf")
        changed[self.text, heads, self.query, keys] = scores[self.text, heads, self.query, keys]
        return changed

    def weights(self, weights: Tensor) -> Tensor:
        return self._replaced("weights", weights)

    def mixed(self, mixed: Tensor) -> Tensor:
        return self._replaced("mixed", mixed)

    def _replaced(self, name: str, table: Tensor) -> Tensor:
        if name not in self.given:
            return table
        changed = table.clone()
        changed[self.text, :, self.query] = self.given[name].to(table.dtype)
        return changed
