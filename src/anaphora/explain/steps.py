"""Steps of a walk-through that explain attention, computed by the encoder's own functions.

In shapes, H is the number of heads, Q of queries, T of tokens (keys) and D of features per head; W is the width.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from anaphora.base.translation import _
from anaphora.explain.walk import Matrix, Step, Steps
from anaphora.model.attention import attend, attention_scores, dot_products, masked_softmax, merge_heads, score_divisor
from anaphora.report.wording import joined_sentences

_LARGE_SCORE = 100.0
"""Value from which a largest score leads to a remark on overflow in the explanation of the softmax."""


@dataclass(frozen=True)
class MatrixLabels:
    """Labels of the query tokens, the key tokens and the features of values (empty if features are numbered)."""

    queries: tuple[str, ...]
    tokens: tuple[str, ...]
    values: tuple[str, ...] = ()


def labelled_matrix(
    name: str,
    values: Tensor,
    rows: Sequence[str],
    columns: Sequence[str] = (),
    axes: tuple[str, str] = ("tokens", "features"),
    followed: bool = True,
    weights: bool = False,
) -> Matrix:
    """Convert a tensor to a matrix of a walk-through (`Matrix`); columns without labels are numbered from 1."""
    array: NDArray[np.float64] = values.detach().double().numpy()
    labels = tuple(columns) or numbered_labels(array.shape[-1])
    return Matrix(name, array, tuple(rows), labels, axes, followed, weights)


def numbered_labels(count: int) -> tuple[str, ...]:
    """Return the numbers from 1 to `count` as labels."""
    return tuple(str(number + 1) for number in range(count))


def projection_step(
    letter: str,
    read: Matrix,
    weight: Tensor | None,
    bias: Tensor | None,
    projected: Tensor,
    columns: tuple[str, ...] = (),
) -> Step:
    """Return the step that computes the queries, keys or values of one head, by a matrix product and a bias.

    In shapes, T is the number of tokens, W the width and D the number of features per head.

    Args:
        letter: "Q", "K" or "V".
        read: matrix to be projected, with labelled axes.
        weight: (W, D) weight of the projection; None if queries, keys or values are not projected.
        bias: (D,) or None.
        projected: (T, D) result.
        columns: labels of the result's columns; empty if they are numbered.
    """
    result = labelled_matrix(letter, projected, read.rows, columns, followed=read.followed)
    name, title, text, without = {
        "Q": (
            "queries",
            _("Queries: what each token asks for"),
            _("Each row times W_Q gives that token’s query."),
            _("There is no W_Q here: the vectors themselves are the queries."),
        ),
        "K": (
            "keys",
            _("Keys: what each token offers"),
            _("Each row times W_K gives that token’s key. Keys are compared with queries."),
            _("There is no W_K here: the queries serve as keys too."),
        ),
        "V": (
            "values",
            _("Values: what each token hands over"),
            _("Each row times W_V gives that token’s value. Weights decide how much of it is taken."),
            _("There is no W_V here: the vectors themselves are the values."),
        ),
    }[letter]
    if weight is None:
        if letter != "V" and not bool(projected.any()):
            without = (
                _("This attention is uniform: it asks for nothing, and every query is zero.")
                if letter == "Q"
                else _("This attention is uniform: every key is zero.")
            )
        return Step(name, title, without, (result,))
    parts: list[Matrix | str] = [
        read,
        "×",
        labelled_matrix(f"W_{letter}", weight, read.columns, result.columns, ("features", "features"), followed=False),
    ]
    if bias is not None:
        parts += [
            "+",
            labelled_matrix(f"b_{letter}", bias.unsqueeze(0), ("",), result.columns, ("one", "features"), False),
        ]
    return Step(name, title, text, (*parts, "=", result))


def head_scores(query: Tensor, key: Tensor, bias: Tensor | None, scale: float | None) -> Tensor:
    """Return the attention scores before the softmax: (1, heads, queries, tokens)."""
    return attention_scores(query, key, query.new_zeros(()) if bias is None else bias, scale)


def attention_steps(
    labels: MatrixLabels, query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, head: int, scale: float | None
) -> Steps:
    """Return the steps from queries, keys and values to the output of one head.

    Args:
        query: (1, H, Q, D) queries: H heads, Q queries, D features per head.
        key, value: (1, H, T, D) keys and values of T tokens.
        bias: bias of the scores, broadcastable to (1, H, Q, T), or None.
        scale: factor of the dot products; None to divide them by the square root of D.
    """
    across = ("tokens", "tokens")

    def cells(name: str, whole: Tensor, weights: bool = False) -> Matrix:
        return labelled_matrix(name, whole[0, head], labels.queries, labels.tokens, across, weights=weights)

    def column(name: str, values: Tensor) -> Matrix:
        return labelled_matrix(name, values, labels.queries, ("",), ("tokens", "one"))

    steps = Steps()
    size = query.shape[-1]
    queries = labelled_matrix("Q", query[0, head], labels.queries)
    transposed = labelled_matrix(
        "K^T", key[0, head].T, numbered_labels(size), labels.tokens, ("features", "tokens"), followed=False
    )
    current = steps.add(
        "products",
        _("Compare every query with every key"),
        _(
            "Q times the transpose of K: each cell is the inner product of one query and one key, and is "
            "large if they point the same way. A row belongs to the token that attends, a column to the token "
            "attended to."
        ),
        (queries, "×", transposed, "=", cells("S", dot_products(query, key))),
    )
    if scale is None:
        divisor = f"{score_divisor(query):.4f}".rstrip("0").rstrip(".")
        text = _(
            "With d_k = {size} numbers in a key, products are divided by √{size} = {root}. Otherwise they would grow "
            "with d_k, and the softmax would put nearly all weight on one token."
        ).format(size=size, root=divisor)
        parts = (current, f"÷ {divisor}", "=", cells("S′", head_scores(query, key, None, scale)))
        current = steps.add("scale", _("Divide by the square root of d_k"), text, parts)
    scores = head_scores(query, key, bias, scale)
    if bias is not None and bool(bias.expand_as(scores)[0, head].any()):
        current = steps.add(
            "bias",
            _("Add the effect of the distance"),
            _(
                "The position encoding adds to each score a number that depends only on how far apart the two "
                "tokens are."
            ),
            (current, "+", cells("B", bias.expand_as(scores)), "=", cells("S″", scores)),
        )
    largest = scores.amax(dim=-1, keepdim=True)
    top = float(largest[0, head].max())
    text = _(
        "The largest score of each row is subtracted. The weights stay the same, since a common factor cancels out, "
        "and no exponential is too large to be computed."
    )
    if top >= _LARGE_SCORE:
        large = _(
            "Here the largest score is {top}: e to that power has {figures} figures before the point, and for "
            "scores above 709 it no longer fits into a 64-bit number."
        ).format(top=f"{top:.2f}", figures=int(top / math.log(10)) + 1)
        text = joined_sentences([text, large])
    differences = cells("D", scores - largest)
    subtraction = (current, "−", column("max", largest[0, head]), "=", differences)
    steps.add("shift", _("Softmax, step 1: shift each row"), text, subtraction)
    powers = (scores - largest).exp()
    exponentials = cells("E", powers)
    total = column("z", powers[0, head].sum(dim=-1, keepdim=True))
    steps.add(
        "exponential",
        _("Softmax, step 2: exponentials and their sum"),
        _("e to the power of each shifted score is positive, and 1 for the largest. z is the sum of the row."),
        ("exp", differences, "=", exponentials, _("sum"), total),
    )
    weights = masked_softmax(scores)
    head_map = steps.add(
        "weights",
        _("Softmax, step 3: weights that sum to 1"),
        _(
            "Each exponential divided by its row’s sum. This is the attention map: how much each token takes from "
            "every token, itself included."
        ),
        (exponentials, "÷", total, "=", cells("A", weights, weights=True)),
    )
    values = labelled_matrix("V", value[0, head], labels.tokens, labels.values, followed=False)
    share = weights[0, head].unsqueeze(-1)  # (Q, T, 1)
    row = labelled_matrix("a", share, labels.tokens, ("",), ("tokens", "one"), followed=False, weights=True)
    weighted = labelled_matrix("a · V", share * value[0, head], labels.tokens, values.columns, followed=False)
    steps.add(
        "weighted",
        _("Weigh the values of the current row"),
        _(
            "Each token’s value times the weight that the current row gives it. Tokens with little weight nearly "
            "vanish."
        ),
        (row, "·", values, "=", weighted),
    )
    mixed = attend(query, key, value, bias, scale=scale)
    steps.add(
        "output",
        _("Add them up: the output"),
        _(
            "The weighted values of a row added up, which is the product of A and V: each token’s new vector is a "
            "mixture of all values."
        ),
        (head_map, "×", values, "=", labelled_matrix("O", mixed[0, head], labels.queries, values.columns)),
    )
    return steps


def all_heads_steps(labels: MatrixLabels, weights: Tensor, mixed: Tensor, head: int) -> list[Step]:
    """Return two steps: the attention maps of all heads, (1, H, Q, T), and their concatenated outputs, (1, H, Q, D).

    `head` is the index of the head that the previous steps show.
    """
    count = weights.shape[1]
    maps = [
        labelled_matrix(f"A_{number}", head_map, labels.queries, labels.tokens, ("tokens", "tokens"), weights=True)
        for number, head_map in enumerate(weights[0])
    ]
    text = _(
        "The features are split into {heads:head|heads}, which do the same steps with numbers of their own. Each has "
        "its "
        "own map; the steps before showed head {head}."
    ).format(heads=count, head=head)
    outputs: list[Matrix | str] = []
    for number, output in enumerate(mixed[0]):
        outputs += [labelled_matrix(f"O_{number}", output, labels.queries), "|"]
    together = merge_heads(mixed)[0]
    together_text = _(
        "What the {heads:head|heads} took is put side by side, so that each token again has one row of {features} "
        "numbers."
    ).format(heads=count, features=together.shape[-1])
    parts = (*outputs[:-1], "=", labelled_matrix("M", together, labels.queries))
    return [
        Step("heads", _("The heads side by side"), text, tuple(maps)),
        Step("together", _("Put the heads’ outputs side by side"), together_text, parts),
    ]


def output_projection_step(
    labels: MatrixLabels, mixed: Tensor, weight: Tensor, bias: Tensor | None, projected: Tensor
) -> Step:
    """Return the step of the output projection: the heads' concatenated outputs times `weight`, plus `bias`."""
    parts: list[Matrix | str] = [
        labelled_matrix("M", mixed, labels.queries),
        "×",
        labelled_matrix("W_O", weight, numbered_labels(len(weight)), axes=("features", "features"), followed=False),
    ]
    if bias is not None:
        parts += ["+", labelled_matrix("b_O", bias.unsqueeze(0), ("",), axes=("one", "features"), followed=False)]
    result = labelled_matrix("Y", projected, labels.queries)
    return Step(
        "projected",
        _("Mix the heads: W_O"),
        _("The output projection combines what the heads have read."),
        (*parts, "=", result),
    )
