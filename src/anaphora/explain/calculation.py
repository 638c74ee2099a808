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

from anaphora.errors import UserError
from anaphora.explain.matrices import Calculation, which_row
from anaphora.explain.phrases import Phrases
from anaphora.explain.walk import Matrix, Step, Walk
from anaphora.model.attention import attend, attention_scores, normalised, products, scale_of, side_by_side, split

_TELLING = 100.0
"""A score from which on the need for the softmax's shift is told with its own number."""


@dataclass(frozen=True)
class Labels:
    """What rows and columns are called.

    Attributes:
        queries, tokens: the rows that attend and those attended to.
        values: features of a value, empty for numbers.
    """

    queries: tuple[str, ...]
    tokens: tuple[str, ...]
    values: tuple[str, ...] = ()


def matrix(
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
    labels = tuple(columns) or numbered(array.shape[-1])
    return Matrix(name, array, tuple(rows), labels, axes, followed, weights)


def numbered(count: int) -> tuple[str, ...]:
    """Labels from 1."""
    return tuple(str(number + 1) for number in range(count))


def calculate(asked: Calculation, words: Phrases, head: int = 0, row: str | None = None) -> Walk:
    """The walk-through of one's own matrices.

    Raises:
        UserError: there is no such head or row.
    """
    if head >= asked.heads:
        raise UserError(f"head ({head}) must be below heads ({asked.heads})")
    labels = Labels(asked.queries, asked.tokens, asked.value_features)
    steps, query, key, value = _given(asked, words) if asked.x is None else _projected(asked, words, head)
    if asked.x is not None and "W_V" not in asked.projections and not labels.values:
        labels = replace(labels, values=asked.features)
    steps += attention_steps(words, labels, query, key, value, None, head, asked.scaled)
    heads = attend(query, key, value, None, scale=_scale(asked.scaled))
    if asked.heads > 1:
        weights = normalised(_scores(query, key, None, asked.scaled))
        steps += heads_steps(words, labels, weights, heads, head)
    if asked.final is not None:
        final = torch.from_numpy(asked.final)
        mixed = side_by_side(heads)
        steps.append(projected(words, labels, mixed[0], final, None, functional.linear(mixed, final.T)[0]))
    told = tuple(replace(step, slips=asked.slips.get(step.name, ())) for step in steps)
    for name in asked.slips:
        if name not in {step.name for step in steps}:
            raise UserError(f"slips: step {name!r} is not one of {', '.join(step.name for step in steps)}")
    place = asked.row if row is None else which_row(row, asked.queries)
    return Walk(asked.name, asked.title, asked.about, words.language, asked.queries, place, told, asked.notes)


def _given(asked: Calculation, words: Phrases) -> tuple[list[Step], Tensor, Tensor, Tensor]:
    query, key, value = (torch.from_numpy(asked.given[name]) for name in ("Q", "K", "V"))
    parts = (
        matrix("Q", query, asked.queries),
        matrix("K", key, asked.tokens, followed=False),
        matrix("V", value, asked.tokens, asked.value_features, followed=False),
    )
    step = Step("given", words("given", "title"), words("given", "text"), parts)
    one, two, three = (split(each.unsqueeze(0), asked.heads) for each in (query, key, value))
    return [step], one, two, three


def _projected(asked: Calculation, words: Phrases, head: int) -> tuple[list[Step], Tensor, Tensor, Tensor]:
    assert asked.x is not None
    x = torch.from_numpy(asked.x)
    asking = matrix("X", x, asked.queries, asked.features)
    text = words("inputs", "text", features=x.shape[1])
    steps = [Step("inputs", words("inputs", "title"), text, (asking,))]
    offering, offered = asking, x
    if asked.second is not None:
        offering = matrix("C", torch.from_numpy(asked.second), asked.tokens, asked.features, followed=False)
        offered = torch.from_numpy(asked.second)
        steps.append(Step("second", words("second", "title"), words("second", "text"), (offering,)))
    made: list[Tensor] = []
    for name, letter in (("queries", "Q"), ("keys", "K"), ("values", "V")):
        weight = asked.projections.get(f"W_{letter}")
        read, vectors = (asking, x) if letter == "Q" else (offering, offered)
        if weight is not None:
            whole = split(functional.linear(vectors, torch.from_numpy(weight).T).unsqueeze(0), asked.heads)
        else:  # without W_K the queries serve as keys
            whole = made[0] if letter == "K" else split(vectors.unsqueeze(0), asked.heads)
        made.append(whole)
        size = whole.shape[-1]
        mine = None if weight is None else torch.from_numpy(weight)[:, head * size : (head + 1) * size]
        named = asked.value_features if letter == "V" else ()
        if weight is None and letter == "V" and not named:
            named = asked.features
        columns = named[head * size : (head + 1) * size] if len(named) == size * asked.heads else ()
        steps.append(projection(words, name, letter, read, mine, None, whole[0, head], columns))
    return steps, made[0], made[1], made[2]


def projection(
    words: Phrases,
    name: str,
    letter: str,
    read: Matrix,
    weight: Tensor | None,
    bias: Tensor | None,
    made: Tensor,
    columns: tuple[str, ...] = (),
) -> Step:
    """Queries, keys or values of one head: what was read, times a matrix (W, D), plus a bias (D,), is (T, D)."""
    result = matrix(letter, made, read.rows, columns, followed=read.followed)
    if weight is None:
        empty = letter != "V" and not bool(made.any())
        text = words(name, "empty" if empty else "none")
        return Step(name, words(name, "title"), text, (result,))
    parts: list[Matrix | str] = [
        read,
        "×",
        matrix(f"W_{letter}", weight, read.columns, result.columns, ("features", "features"), followed=False),
    ]
    if bias is not None:
        parts += ["+", matrix(f"b_{letter}", bias.unsqueeze(0), ("",), result.columns, ("one", "features"), False)]
    return Step(name, words(name, "title"), words(name, "text"), (*parts, "=", result))


def _scores(query: Tensor, key: Tensor, bias: Tensor | None, scaled: bool) -> Tensor:
    return attention_scores(query, key, query.new_zeros(()) if bias is None else bias, _scale(scaled))


def _scale(scaled: bool) -> float | None:
    return None if scaled else 1.0


def attention_steps(
    words: Phrases,
    labels: Labels,
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
        head: the one that is shown.
        scaled: whether products are divided by the square root of D.
    """
    across = ("tokens", "tokens")

    def cells(name: str, whole: Tensor, weights: bool = False) -> Matrix:
        return matrix(name, whole[0, head], labels.queries, labels.tokens, across, weights=weights)

    def column(name: str, values: Tensor) -> Matrix:
        return matrix(name, values, labels.queries, ("",), ("tokens", "one"))

    def step(name: str, parts: tuple[Matrix | str, ...], **values: object) -> Step:
        return Step(name, words(name, "title"), words(name, "text", **values), parts)

    size, root = query.shape[-1], scale_of(query)
    asked = matrix("Q", query[0, head], labels.queries)
    turned = matrix("K^T", key[0, head].T, numbered(size), labels.tokens, ("features", "tokens"), followed=False)
    current = cells("S", products(query, key))
    steps = [step("products", (asked, "×", turned, "=", current))]
    if scaled:
        told = f"{root:.4f}".rstrip("0").rstrip(".")
        whole = _scores(query, key, None, scaled)
        steps.append(step("scale", (current, f"÷ {told}", "=", cells("S′", whole)), size=size, root=told))
        current = steps[-1].result
    scores = _scores(query, key, bias, scaled)
    if bias is not None and bool(bias.expand_as(scores)[0, head].any()):
        steps.append(step("bias", (current, "+", cells("B", bias.expand_as(scores)), "=", cells("S″", scores))))
        current = steps[-1].result
    most = scores.amax(dim=-1, keepdim=True)
    shifted = scores - most
    top = float(most[0, head].max())
    text = words("shift", "text")
    if top >= _TELLING:
        text = words.joined(text, words("shift", "large", top=f"{top:.2f}", figures=int(top / math.log(10)) + 1))
    away = (current, "−", column("max", most[0, head]), "=", cells("D", shifted))
    steps.append(Step("shift", words("shift", "title"), text, away))
    raised = shifted.exp()
    total = column("z", raised[0, head].sum(dim=-1, keepdim=True))
    steps.append(
        step("exponential", ("exp", cells("D", shifted), "=", cells("E", raised), words("signs", "sum"), total))
    )
    weights = normalised(scores)
    shown = cells("A", weights, weights=True)
    steps.append(step("weights", (cells("E", raised), "÷", total, "=", shown)))
    values = matrix("V", value[0, head], labels.tokens, labels.values, followed=False)
    share = weights[0, head].unsqueeze(-1)  # (Q, T, 1)
    taken = share * value[0, head]  # (Q, T, D)
    row = matrix("a", share, labels.tokens, ("",), ("tokens", "one"), followed=False, weights=True)
    weighted = matrix("a · V", taken, labels.tokens, values.columns, followed=False)
    steps.append(step("weighted", (row, "·", values, "=", weighted)))
    mixed = attend(query, key, value, bias, scale=_scale(scaled))
    output = matrix("O", mixed[0, head], labels.queries, values.columns)
    steps.append(step("output", (shown, "×", values, "=", output)))
    return steps


def heads_steps(words: Phrases, labels: Labels, weights: Tensor, mixed: Tensor, head: int) -> list[Step]:
    """Every head's map (1, H, Q, T), and their outputs (1, H, Q, D) put side by side."""
    count = weights.shape[1]
    across = ("tokens", "tokens")
    maps = [
        matrix(f"A_{number}", each, labels.queries, labels.tokens, across, weights=True)
        for number, each in enumerate(weights[0])
    ]
    text = words("heads", "text", heads=count, head=head)
    outputs: list[Matrix | str] = []
    for number, each in enumerate(mixed[0]):
        outputs += [matrix(f"O_{number}", each, labels.queries), "|"]
    together = side_by_side(mixed)[0]
    told = words("together", "text", heads=count, features=together.shape[-1])
    return [
        Step("heads", words("heads", "title"), text, tuple(maps)),
        Step("together", words("together", "title"), told, (*outputs[:-1], "=", matrix("M", together, labels.queries))),
    ]


def projected(words: Phrases, labels: Labels, mixed: Tensor, weight: Tensor, bias: Tensor | None, made: Tensor) -> Step:
    """The output projection: (Q, W) times a matrix (W, any), plus a bias."""
    parts: list[Matrix | str] = [
        matrix("M", mixed, labels.queries),
        "×",
        matrix("W_O", weight, numbered(len(weight)), axes=("features", "features"), followed=False),
    ]
    if bias is not None:
        parts += ["+", matrix("b_O", bias.unsqueeze(0), ("",), axes=("one", "features"), followed=False)]
    result = matrix("Y", made, labels.queries)
    return Step("projected", words("projected", "title"), words("projected", "text"), (*parts, "=", result))
