"""Edits of attention inside a forward pass of a `transformers` model, whatever its architecture.

Attention is a softmax over scores, followed by a product of the weights with the values. An edit changes the scores,
the weights, or the output of the product; edits of queries, keys and values are not applied. A trial forward pass
locates the softmax and the product (`verification.edits`). In shapes, B is the number of texts, H of heads, Q of
queries, K of keys, T of tokens and D of features per head.
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from anaphora.base.errors import UserError
from anaphora.hf.verification.forward import Inputs, run_model
from anaphora.hf.verification.observation import AttentionInSteps, SingleOperations, running_modules
from anaphora.model.mixer import Edit

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_MASKED = 5_000.0
"""Least distance below a row's maximum at which a score counts as masked; transformers may mask with a finite value of
-10,000 or less."""
_AFTER_SOFTMAX = 1e-2
"""Maximum difference between attention weights and the softmax that computed them, due to rounding in bfloat16."""


@dataclass(frozen=True)
class Place:
    """Location of an operation in a forward pass."""

    module: str  # path of the innermost module that runs the operation
    kind: str  # "softmax" or "product"
    number: int  # index of the operation among those of its kind in the module, from 0


@dataclass(frozen=True)
class RowOrder:
    """Order in which text (axis 0), head (1) and query (2) vary along the rows of a matrix, from slowest to fastest."""

    axes: tuple[int, int, int]

    def to_maps(self, matrix: Tensor, sizes: tuple[int, int, int]) -> Tensor:
        """Reshape a matrix, with one row per text, head and query, to (B, H, Q, columns); `sizes` are B, H and Q."""
        ordered = matrix.reshape(*(sizes[axis] for axis in self.axes), matrix.shape[-1])
        return ordered.movedim((0, 1, 2), self.axes)

    def from_maps(self, maps: Tensor, shape: torch.Size) -> Tensor:
        """Reshape the result of `to_maps` back to `shape`, the shape of the matrix."""
        return maps.permute(*self.axes, 3).reshape(shape)


@dataclass(frozen=True)
class EditPoint:
    """Operations by which one Transformer block computes its attention weights and multiplies them by the values."""

    softmax: Place
    product: Place
    scores: RowOrder  # row order of the scores of the softmax
    weights: RowOrder  # row order of the weights in the product
    columns: slice  # columns of the softmax for tokens; any other column is an attention sink
    transposed: bool  # whether the weights are the second factor of the product, transposed


class PlacedOperations(SingleOperations):  # type: ignore[no-untyped-call]
    """Torch dispatch mode that calls its method `softmax` or `product` for each such operation of a model.

    Subclasses override these methods, which receive the location of the operation in the model.
    """

    def __init__(self, running: Sequence[str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._running = running
        self._counts: Counter[tuple[str, str]] = Counter()

    def run(self, function: Any, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
        name = function.overloadpacket.__name__
        if name == "_softmax":
            first, *rest = arguments
            return self.softmax(self._place("softmax"), first, lambda scores: function(scores, *rest, **options))
        if name in ("bmm", "mm"):
            left, right = arguments
            return self.product(self._place("product"), left, right, function)
        return function(*arguments, **options)

    def _place(self, kind: str) -> Place:
        module = self._running[-1] if self._running else ""
        self._counts[module, kind] += 1
        return Place(module, kind, self._counts[module, kind] - 1)

    def softmax(self, place: Place, scores: Tensor, compute: Callable[[Tensor], Tensor]) -> Tensor:
        """Compute the softmax of scores; the shape stays the same."""
        return compute(scores)

    def product(self, place: Place, left: Tensor, right: Tensor, compute: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        """Compute the product of two matrices or of two batches of matrices."""
        return compute(left, right)


class EditedAttention(PlacedOperations):  # type: ignore[no-untyped-call]
    """Torch dispatch mode that edits the attention of Transformer blocks during a forward pass.

    Args:
        model: name of the model, for error messages.
        running: paths of the running modules, from `running_modules`.
        points: operations of each block with attention at which edits are applied.
        edits: edits of each block, keyed by the index of the block in `points`.
        sizes: numbers B of texts, H of heads and T of tokens in the forward pass.

    Attributes:
        weights: edited attention weights of each block that has run, (B, H, T, T), keyed by the index of the block.
    """

    def __init__(
        self,
        model: str,
        running: Sequence[str],
        points: Sequence[EditPoint],
        edits: Mapping[int, Sequence[Edit]],
        sizes: tuple[int, int, int],
    ) -> None:
        super().__init__(running)
        self._model, self._points, self._edits, self._sizes = model, points, edits, sizes
        self._block_of = {
            place: block for block, point in enumerate(points) for place in (point.softmax, point.product)
        }
        self._softmaxes: dict[int, Tensor] = {}
        self.weights: dict[int, Tensor] = {}

    def softmax(self, place: Place, scores: Tensor, compute: Callable[[Tensor], Tensor]) -> Tensor:
        block = self._block_of.get(place)
        edits = () if block is None else self._edits.get(block, ())
        if block is None or not edits:
            return compute(scores)
        point = self._points[block]
        maps = self._maps(point.scores, scores).clone()
        maps.masked_fill_(maps < maps.amax(dim=-1, keepdim=True) - _MASKED, -math.inf)
        columns = maps[..., point.columns]
        for edit in edits:
            columns = edit.scores(columns)
        maps[..., point.columns] = columns
        nothing = (maps == -math.inf).all(dim=-1, keepdim=True)
        weights = compute(point.scores.from_maps(maps.masked_fill(nothing, 0.0), scores.shape))
        weights = weights.masked_fill(point.scores.from_maps(nothing, torch.Size((*scores.shape[:-1], 1))), 0.0)
        self._softmaxes[block] = self._maps(point.scores, weights)[..., point.columns]
        return weights

    def product(self, place: Place, left: Tensor, right: Tensor, compute: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        """Compute a matrix product; apply any edits of its block to the attention weights and to the result.

        Raises:
            UserError: the attention weights or the product with the values do not consist of B * H * T rows, or weights
                to be edited are not the output of the block's softmax.
        """
        block = self._block_of.get(place)
        if block is None:
            return compute(left, right)
        point, edits = self._points[block], self._edits.get(block, ())
        factor = right.transpose(-2, -1) if point.transposed else left
        weights = self._maps(point.weights, factor)
        if edits and not self._are_from_softmax(block, weights):
            raise UserError(
                f"{self._model}, {place.module}: this text's values are mixed by weights other than its softmax's"
            )
        for edit in edits:
            weights = edit.weights(weights)
        self.weights[block] = weights
        if not edits:
            return compute(left, right)
        factor = point.weights.from_maps(weights, factor.shape)
        mixed = compute(left, factor.transpose(-2, -1)) if point.transposed else compute(factor, right)
        rows = mixed.transpose(-2, -1) if point.transposed else mixed
        maps = self._maps(point.weights, rows)
        for edit in edits:
            maps = edit.mixed(maps)
        rows = point.weights.from_maps(maps, rows.shape)
        return rows.transpose(-2, -1).contiguous() if point.transposed else rows.contiguous()

    def _are_from_softmax(self, block: int, weights: Tensor) -> bool:
        given = self._softmaxes.pop(block, None)
        if given is not None:  # a fully masked row is set to zero after the softmax
            given = given.masked_fill((weights == 0).all(dim=-1, keepdim=True), 0.0)
        return given is not None and torch.allclose(given.float(), weights.float(), _AFTER_SOFTMAX, _AFTER_SOFTMAX)

    def _maps(self, order: RowOrder, matrix: Tensor) -> Tensor:
        if matrix.numel() != math.prod(self._sizes) * matrix.shape[-1]:
            raise UserError(
                f"{self._model}: a block attends in the shape {tuple(matrix.shape)}, unlike in a text that was tried"
            )
        return order.to_maps(matrix, self._sizes)


@contextlib.contextmanager
def edited_attention(
    part: nn.Module, points: Sequence[EditPoint], edits: Mapping[int, Sequence[Edit]], sizes: tuple[int, int, int]
) -> Iterator[EditedAttention]:
    """Edit the attention in a single forward pass inside the `with` block; yield the mode that applies the edits.

    Args:
        part: text encoder or decoder, alone or inside a larger model; the paths in `points` are relative to it.
        points, edits, sizes: as in `EditedAttention`.

    Raises:
        UserError: the forward pass does not compute attention by the operations that the trial forward pass has
            located.
    """
    with (
        running_modules(part) as running,
        torch.no_grad(),
        AttentionInSteps(),
        EditedAttention(type(part).__name__, running, points, edits, sizes) as attention,
    ):
        yield attention
    if len(attention.weights) != len(points):
        raise UserError(
            f"{type(part).__name__}: in a text of {sizes[2]} tokens, {len(attention.weights)} of its {len(points)} "
            "blocks attend to single tokens, unlike in a short one; shorten the text"
        )


def maps_at_points(model: PreTrainedModel, points: Sequence[EditPoint], inputs: Inputs, heads: int) -> list[Tensor]:
    """Return the attention weights of each block, (B, H, T, T), recorded where they are multiplied by the values.

    The forward pass has no edits. The errors are those of `edited_attention` and `run_model`.
    """
    count, length = inputs["input_ids"].shape
    with edited_attention(model, points, {}, (count, heads, length)) as attention:
        run_model(model, inputs)
    return [attention.weights[block] for block in range(len(points))]
