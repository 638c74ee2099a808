"""Attention step by step, from the encoder's own functions in float64: B = 1, H heads, Q queries, T tokens, D features.

The steps of a calculation with matrices of one's own, and those that it shares with a trained encoder.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from anaphora.base.errors import UserError
from anaphora.explain.matrices import Calculation, row_index
from anaphora.explain.phrases import Phrases
from anaphora.explain.walk import Matrix, Step, Walkthrough
from anaphora.model.attention import (
    attend,
    attention_scores,
    dot_products,
    masked_softmax,
    merge_heads,
    score_divisor,
    split_heads,
)

_LARGE_SCORE = 100.0
"""From this score on, the text of the softmax's shift names the score itself."""


@dataclass(frozen=True)
class MatrixLabels:
    """What rows and columns are called.

    Attributes:
        queries, tokens: the rows that attend and those attended to.
        values: features of the values that are shown, empty for numbers.
    """

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
    """A tensor (R, C) or (Q, R, C) with its labels; columns without labels are numbered from 1."""
    array: NDArray[np.float64] = values.detach().double().numpy()
    labels = tuple(columns) or numbered_labels(array.shape[-1])
    return Matrix(name, array, tuple(rows), labels, axes, followed, weights)


def numbered_labels(count: int) -> tuple[str, ...]:
    """Labels from 1."""
    return tuple(str(number + 1) for number in range(count))


def walk_through_calculation(
    calculation: Calculation, words: Phrases, head: int = 0, row: str | None = None
) -> Walkthrough:
    """The walk-through of one's own matrices.

    Raises:
        UserError: there is no such head or row.
    """
    if head >= calculation.heads:
        raise UserError(f"head ({head}) must be below heads ({calculation.heads})")
    labels = MatrixLabels(calculation.queries, calculation.tokens, calculation.value_features)
    steps, query, key, value = (
        _given_steps(calculation, words) if calculation.x is None else _projection_steps(calculation, words, head)
    )
    if calculation.x is not None and "W_V" not in calculation.projections and not labels.values:
        labels = replace(labels, values=calculation.features)
    size = value.shape[-1]
    labels_of_head = replace(labels, values=labels.values[head * size : (head + 1) * size])
    steps += attention_steps(words, labels_of_head, query, key, value, None, head, calculation.scaled)
    heads = attend(query, key, value, None, scale=_scale(calculation.scaled))
    if calculation.heads > 1:
        weights = masked_softmax(_scores(query, key, None, calculation.scaled))
        steps += all_heads_steps(words, labels, weights, heads, head)
    if calculation.final is not None:
        final = torch.from_numpy(calculation.final)
        mixed = merge_heads(heads)
        steps.append(output_projection_step(words, labels, mixed[0], final, None, functional.linear(mixed, final.T)[0]))
    checked = tuple(replace(step, slips=calculation.slips.get(step.name, ())) for step in steps)
    for name in calculation.slips:
        if name not in {step.name for step in steps}:
            raise UserError(f"slips: step {name!r} must be one of {', '.join(step.name for step in steps)}")
    return Walkthrough(
        calculation.name,
        calculation.title,
        calculation.about,
        words.language,
        calculation.queries,
        calculation.row if row is None else row_index(row, calculation.queries),
        checked,
        calculation.notes,
    )


def _given_steps(calculation: Calculation, words: Phrases) -> tuple[list[Step], Tensor, Tensor, Tensor]:
    query, key, value = (torch.from_numpy(calculation.given[name]) for name in ("Q", "K", "V"))
    parts = (
        labelled_matrix("Q", query, calculation.queries),
        labelled_matrix("K", key, calculation.tokens, followed=False),
        labelled_matrix("V", value, calculation.tokens, calculation.value_features, followed=False),
    )
    step = Step("given", words("given", "title"), words("given", "text"), parts)
    query, key, value = (split_heads(vectors.unsqueeze(0), calculation.heads) for vectors in (query, key, value))
    return [step], query, key, value


def _projection_steps(calculation: Calculation, words: Phrases, head: int) -> tuple[list[Step], Tensor, Tensor, Tensor]:
    assert calculation.x is not None
    x = torch.from_numpy(calculation.x)
    reading = labelled_matrix("X", x, calculation.queries, calculation.features)
    text = words("inputs", "text", features=x.shape[1])
    steps = [Step("inputs", words("inputs", "title"), text, (reading,))]
    source, source_vectors = reading, x
    if calculation.second is not None:
        source = labelled_matrix(
            "C", torch.from_numpy(calculation.second), calculation.tokens, calculation.features, followed=False
        )
        source_vectors = torch.from_numpy(calculation.second)
        steps.append(Step("second", words("second", "title"), words("second", "text"), (source,)))
    projected: list[Tensor] = []
    for name, letter in (("queries", "Q"), ("keys", "K"), ("values", "V")):
        weight = calculation.projections.get(f"W_{letter}")
        read, vectors = (reading, x) if letter == "Q" else (source, source_vectors)
        if weight is not None:
            whole = split_heads(functional.linear(vectors, torch.from_numpy(weight).T).unsqueeze(0), calculation.heads)
        else:  # without W_K the queries serve as keys
            whole = projected[0] if letter == "K" else split_heads(vectors.unsqueeze(0), calculation.heads)
        projected.append(whole)
        size = whole.shape[-1]
        head_weight = None if weight is None else torch.from_numpy(weight)[:, head * size : (head + 1) * size]
        labels = calculation.value_features if letter == "V" else ()
        if weight is None and letter == "V" and not labels:
            labels = calculation.features
        columns = labels[head * size : (head + 1) * size] if len(labels) == size * calculation.heads else ()
        steps.append(projection_step(words, name, letter, read, head_weight, None, whole[0, head], columns))
    return steps, projected[0], projected[1], projected[2]


def projection_step(
    words: Phrases,
    name: str,
    letter: str,
    read: Matrix,
    weight: Tensor | None,
    bias: Tensor | None,
    projected: Tensor,
    columns: tuple[str, ...] = (),
) -> Step:
    """Queries, keys or values of one head: what was read, times a matrix (W, D), plus a bias (D,), is (T, D)."""
    result = labelled_matrix(letter, projected, read.rows, columns, followed=read.followed)
    if weight is None:
        empty = letter != "V" and not bool(projected.any())
        text = words(name, "empty" if empty else "none")
        return Step(name, words(name, "title"), text, (result,))
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
    return Step(name, words(name, "title"), words(name, "text"), (*parts, "=", result))


def _scores(query: Tensor, key: Tensor, bias: Tensor | None, scaled: bool) -> Tensor:
    return attention_scores(query, key, query.new_zeros(()) if bias is None else bias, _scale(scaled))


def _scale(scaled: bool) -> float | None:
    return None if scaled else 1.0


def attention_steps(
    words: Phrases,
    labels: MatrixLabels,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None,
    head: int,
    scaled: bool = True,
) -> list[Step]:
    """From queries, keys and values to the output of one head.

    Args:
        query: (1, H, Q, D); key, value: (1, H, T, D).
        bias: broadcastable to (1, H, Q, T), or None.
        head: whose steps these are.
        scaled: whether products are divided by the square root of D.
    """
    across = ("tokens", "tokens")

    def cells(name: str, whole: Tensor, weights: bool = False) -> Matrix:
        return labelled_matrix(name, whole[0, head], labels.queries, labels.tokens, across, weights=weights)

    def column(name: str, values: Tensor) -> Matrix:
        return labelled_matrix(name, values, labels.queries, ("",), ("tokens", "one"))

    def step(name: str, parts: tuple[Matrix | str, ...], **values: object) -> Step:
        return Step(name, words(name, "title"), words(name, "text", **values), parts)

    size, root = query.shape[-1], score_divisor(query)
    queries = labelled_matrix("Q", query[0, head], labels.queries)
    transposed = labelled_matrix(
        "K^T", key[0, head].T, numbered_labels(size), labels.tokens, ("features", "tokens"), followed=False
    )
    current = cells("S", dot_products(query, key))
    steps = [step("products", (queries, "×", transposed, "=", current))]
    if scaled:
        divisor = f"{root:.4f}".rstrip("0").rstrip(".")
        whole = _scores(query, key, None, scaled)
        steps.append(step("scale", (current, f"÷ {divisor}", "=", cells("S′", whole)), size=size, root=divisor))
        current = steps[-1].result
    scores = _scores(query, key, bias, scaled)
    if bias is not None and bool(bias.expand_as(scores)[0, head].any()):
        steps.append(step("bias", (current, "+", cells("B", bias.expand_as(scores)), "=", cells("S″", scores))))
        current = steps[-1].result
    largest = scores.amax(dim=-1, keepdim=True)
    shifted = scores - largest
    top = float(largest[0, head].max())
    text = words("shift", "text")
    if top >= _LARGE_SCORE:
        text = words.joined(text, words("shift", "large", top=f"{top:.2f}", figures=int(top / math.log(10)) + 1))
    subtraction = (current, "−", column("max", largest[0, head]), "=", cells("D", shifted))
    steps.append(Step("shift", words("shift", "title"), text, subtraction))
    exponentials = shifted.exp()
    total = column("z", exponentials[0, head].sum(dim=-1, keepdim=True))
    steps.append(
        step("exponential", ("exp", cells("D", shifted), "=", cells("E", exponentials), words("signs", "sum"), total))
    )
    weights = masked_softmax(scores)
    head_map = cells("A", weights, weights=True)
    steps.append(step("weights", (cells("E", exponentials), "÷", total, "=", head_map)))
    values = labelled_matrix("V", value[0, head], labels.tokens, labels.values, followed=False)
    share = weights[0, head].unsqueeze(-1)  # (Q, T, 1)
    weighted_values = share * value[0, head]  # (Q, T, D)
    row = labelled_matrix("a", share, labels.tokens, ("",), ("tokens", "one"), followed=False, weights=True)
    weighted = labelled_matrix("a · V", weighted_values, labels.tokens, values.columns, followed=False)
    steps.append(step("weighted", (row, "·", values, "=", weighted)))
    mixed = attend(query, key, value, bias, scale=_scale(scaled))
    output = labelled_matrix("O", mixed[0, head], labels.queries, values.columns)
    steps.append(step("output", (head_map, "×", values, "=", output)))
    return steps


def all_heads_steps(words: Phrases, labels: MatrixLabels, weights: Tensor, mixed: Tensor, head: int) -> list[Step]:
    """Every head's map (1, H, Q, T), and their outputs (1, H, Q, D) put side by side."""
    count = weights.shape[1]
    across = ("tokens", "tokens")
    maps = [
        labelled_matrix(f"A_{number}", head_map, labels.queries, labels.tokens, across, weights=True)
        for number, head_map in enumerate(weights[0])
    ]
    text = words("heads", "text", heads=count, head=head)
    outputs: list[Matrix | str] = []
    for number, output in enumerate(mixed[0]):
        outputs += [labelled_matrix(f"O_{number}", output, labels.queries), "|"]
    together = merge_heads(mixed)[0]
    together_text = words("together", "text", heads=count, features=together.shape[-1])
    return [
        Step("heads", words("heads", "title"), text, tuple(maps)),
        Step(
            "together",
            words("together", "title"),
            together_text,
            (*outputs[:-1], "=", labelled_matrix("M", together, labels.queries)),
        ),
    ]


def output_projection_step(
    words: Phrases, labels: MatrixLabels, mixed: Tensor, weight: Tensor, bias: Tensor | None, projected: Tensor
) -> Step:
    """The output projection: (Q, W) times a matrix (W, any), plus a bias."""
    parts: list[Matrix | str] = [
        labelled_matrix("M", mixed, labels.queries),
        "×",
        labelled_matrix("W_O", weight, numbered_labels(len(weight)), axes=("features", "features"), followed=False),
    ]
    if bias is not None:
        parts += ["+", labelled_matrix("b_O", bias.unsqueeze(0), ("",), axes=("one", "features"), followed=False)]
    result = labelled_matrix("Y", projected, labels.queries)
    return Step("projected", words("projected", "title"), words("projected", "text"), (*parts, "=", result))
