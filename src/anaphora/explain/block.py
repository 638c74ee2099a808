"""Steps of a walk-through that explain one Transformer block: its attention and its feed-forward network.

In shapes, T is the number of tokens, W the width and D the number of features per head.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from anaphora.base.errors import UserError
from anaphora.base.translation import _
from anaphora.explain.steps import (
    MatrixLabels,
    all_heads_steps,
    attention_steps,
    labelled_matrix,
    output_projection_step,
    projection_step,
)
from anaphora.explain.walk import Matrix, Steps
from anaphora.model.attention import Attention, attend
from anaphora.model.layers import Block
from anaphora.model.mixer import NO_MAPS, AttentionContext


class BlockSteps:
    """Steps that explain one Transformer block, collected in `steps`; `labels` are the labels of the tokens."""

    def __init__(self, block: Block, labels: tuple[str, ...]) -> None:
        self.block, self.labels = block, labels
        self.steps = Steps()

    def _tokens(self, name: str, values: Tensor) -> Matrix:
        return labelled_matrix(name, values[0], self.labels)

    def add_attention(self, hidden: Tensor, context: AttentionContext, head: int) -> tuple[Matrix, Tensor]:
        """Add the steps from the block's input, (1, T, W), to its first residual sum, showing one head's attention.

        Return the sum, and the concatenated outputs of all heads, (1, T, W).

        Raises:
            UserError: the block has no attention.
        """
        block, labels, steps = self.block, self.labels, self.steps
        attention = block.attention
        if not isinstance(attention, Attention):
            raise UserError(NO_MAPS)
        start = normed = self._tokens("X", hidden)
        norm = _("norm")
        read, content = block.attention_inputs(hidden, context)
        if block.is_pre_norm:
            normed = steps.add(
                "norm",
                _("Normalise each row"),
                _("Every token’s numbers are brought to one scale before attention reads them. Rows do not mix here."),
                (start, norm, "=", self._tokens("N", read)),
            )
        value_source = normed
        if block.value_norm is not None:
            value_source = steps.add(
                "content",
                _("What the values are made of"),
                _(
                    "In this run, values are made of the tokens’ own vectors in every layer and not of the hidden "
                    "states, so that a weight on a token is a weight on that word."
                ),
                (self._tokens("E", context.embeddings), norm, "=", self._tokens("C", content)),
            )
        unrotated = attention.unrotated(read, content)
        query, key, value = attention.project(read, content, context)
        for letter, name, source, vectors in zip(
            ("Q", "K", "V"), ("query", "key", "value"), (normed, normed, value_source), unrotated, strict=True
        ):
            weight, projection_bias = _head_weights(attention, name, head)
            steps.append(projection_step(letter, source, weight, projection_bias, vectors[0, head]))
        if not torch.equal(query, unrotated[0]):
            turns: list[Matrix | str] = []
            for letter, before, after in (("Q", unrotated[0], query), ("K", unrotated[1], key)):
                turns += [self._tokens(letter, before[:, head]), _("turn"), "=", self._tokens(letter, after[:, head])]
            steps.add(
                "turn",
                _("Positions turn queries and keys"),
                _(
                    "Rotary encoding: pairs of numbers are turned by an angle that grows with the token’s "
                    "position. How well two tokens match then also depends on how far apart they are."
                ),
                tuple(turns),
            )
        bias = attention.score_bias(context)
        matrix_labels = MatrixLabels(labels, labels)
        steps += attention_steps(matrix_labels, query, key, value, bias, head, attention.scale)
        mixed = attention.mix(query, key, value, context)
        if attention.heads > 1:
            weights = attention.maps(query, key, context)
            outputs = attend(query, key, value, bias, scale=attention.scale)
            steps += all_heads_steps(matrix_labels, weights, outputs, head)
        update = attention.finish(mixed)
        update_matrix = labelled_matrix("M", mixed[0], labels)
        output = cast("nn.Linear | None", getattr(attention, "output", None))
        if output is not None:
            steps.append(output_projection_step(matrix_labels, mixed[0], output.weight.T, output.bias, update[0]))
            update_matrix = steps[-1].result
        residual = steps.add(
            "residual",
            _("Add it to what was there"),
            _("The residual connection: attention adds to a token’s vector and does not replace it."),
            (start, "+", update_matrix, "=", self._tokens("Z", hidden + update)),
        )
        return residual, mixed

    def add_feed_forward(self, hidden: Tensor, mixed: Tensor, summed: Matrix, layer: int) -> Tensor:
        """Add the steps from the first residual sum to the block's output; return the output, (1, T, W).

        Args:
            hidden: the block's input, (1, T, W).
            mixed, summed: concatenated outputs of all heads, and the first residual sum, from `add_attention`.
            layer: index of the block, which the titles of the steps contain.
        """
        block, steps = self.block, self.steps
        norm = _("norm")
        ff_input = half = block.add_attention(hidden, mixed)
        if block.is_pre_norm:
            ff_input = block.feed_forward_norm(half)
            ff_input_matrix = steps.add(
                "second_norm",
                _("Normalise each row again"),
                _("Every token’s numbers are brought to one scale before the feed-forward network reads them."),
                (summed, norm, "=", self._tokens("N", ff_input)),
            )
        else:
            ff_input_matrix = summed = steps.add(
                "first_norm",
                _("Normalise each row"),
                _("Every token’s numbers are brought to one scale after the sum."),
                (summed, norm, "=", self._tokens("N", half)),
            )
        inside = block.feed_forward.inside(ff_input)
        ff_output = block.feed_forward(ff_input)
        text = _(
            "Each token alone is widened to {inside} numbers, of which an activation lets some pass, and narrowed "
            "again to {features}."
        ).format(inside=inside.shape[-1], features=ff_output.shape[-1])
        widened = (ff_input_matrix, _("widen, activate"), "=", self._tokens("F", inside))
        narrowed = (_("narrow"), "=", self._tokens("G", ff_output))
        ff_output_matrix = steps.add("feed_forward", _("The feed-forward network"), text, (*widened, *narrowed))
        output_states = block.complete(hidden, mixed)
        output = self._tokens("X′", output_states)
        second_sum = steps.add(
            "second_residual",
            _("Add it again: the output of layer {layer}").format(layer=layer),
            _("The second residual connection ends the block."),
            (summed, "+", ff_output_matrix, "=", output if block.is_pre_norm else self._tokens("Z′", half + ff_output)),
        )
        if not block.is_pre_norm:
            steps.add(
                "last_norm",
                _("Normalise: the output of layer {layer}").format(layer=layer),
                _("The block ends with a normalisation after its second sum."),
                (second_sum, norm, "=", output),
            )
        return output_states


def _head_weights(attention: Attention, name: str, head: int) -> tuple[Tensor | None, Tensor | None]:
    """Return one head's slices of a projection's weight, (W, D), and bias, (D,); None for a missing weight or bias."""
    linear = getattr(attention, name, None)
    if not isinstance(linear, nn.Linear):
        return None, None
    size = linear.out_features // attention.heads
    rows = slice(head * size, (head + 1) * size)
    return linear.weight[rows].T, None if linear.bias is None else linear.bias[rows]
