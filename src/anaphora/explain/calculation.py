"""Walk-through of attention computed from given matrices, in float64."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional

from anaphora.base.checks import one_among
from anaphora.base.errors import UserError
from anaphora.base.translation import _, spoken_language
from anaphora.explain.matrices import Calculation, row_index
from anaphora.explain.steps import (
    MatrixLabels,
    all_heads_steps,
    attention_steps,
    head_scores,
    labelled_matrix,
    output_projection_step,
    projection_step,
)
from anaphora.explain.walk import Steps, Walkthrough
from anaphora.model.attention import attend, masked_softmax, merge_heads, split_heads


def walk_through_calculation(calculation: Calculation, head: int = 0, row: str | None = None) -> Walkthrough:
    """Return the walk-through of a calculation, in the language that `spoken_in` has set.

    Args:
        head: index of the head whose attention is shown in detail.
        row: label or index of the query token whose attention row is highlighted; by default `calculation.row`.

    Raises:
        UserError: the head or row does not exist, or the calculation lists errata for a step that does not exist.
    """
    if head >= calculation.heads:
        raise UserError(f"head ({head}) must be below heads ({calculation.heads})")
    labels = MatrixLabels(calculation.queries, calculation.tokens, calculation.value_features)
    steps, query, key, value = (
        _projection_steps(calculation, head) if "X" in calculation.matrices else _given_steps(calculation)
    )
    if "X" in calculation.matrices and "W_V" not in calculation.matrices and not labels.values:
        labels = replace(labels, values=calculation.features)
    size = value.shape[-1]
    labels_of_head = replace(labels, values=labels.values[head * size : (head + 1) * size])
    steps += attention_steps(labels_of_head, query, key, value, None, head, calculation.scale)
    heads = attend(query, key, value, None, scale=calculation.scale)
    if calculation.heads > 1:
        weights = masked_softmax(head_scores(query, key, None, calculation.scale))
        steps += all_heads_steps(labels, weights, heads, head)
    if "W_O" in calculation.matrices:
        final = torch.from_numpy(calculation.matrices["W_O"])
        mixed = merge_heads(heads)
        steps.append(output_projection_step(labels, mixed[0], final, None, functional.linear(mixed, final.T)[0]))
    checked = tuple(replace(step, slips=calculation.slips.get(step.name, ())) for step in steps)
    for name in calculation.slips:
        if name not in {step.name for step in steps}:
            raise UserError(f"slips: step {name!r} must be {one_among([step.name for step in steps])}")
    return Walkthrough(
        calculation.name,
        calculation.title,
        calculation.about,
        spoken_language(),
        calculation.queries,
        calculation.row if row is None else row_index(row, calculation.queries),
        checked,
        calculation.notes,
    )


def _given_steps(calculation: Calculation) -> tuple[Steps, Tensor, Tensor, Tensor]:
    query, key, value = (torch.from_numpy(calculation.matrices[name]) for name in ("Q", "K", "V"))
    steps = Steps()
    steps.add(
        "given",
        _("Q, K and V are given"),
        _(
            "This calculation begins after the projections: a query asks, each key says what its token offers, and "
            "each value holds what is handed over."
        ),
        (
            labelled_matrix("Q", query, calculation.queries),
            labelled_matrix("K", key, calculation.tokens, followed=False),
            labelled_matrix("V", value, calculation.tokens, calculation.value_features, followed=False),
        ),
    )
    query, key, value = (split_heads(vectors.unsqueeze(0), calculation.heads) for vectors in (query, key, value))
    return steps, query, key, value


def _projection_steps(calculation: Calculation, head: int) -> tuple[Steps, Tensor, Tensor, Tensor]:
    x = source_vectors = torch.from_numpy(calculation.matrices["X"])
    text = _(
        "One row for each token. A row is the token’s vector: {features} numbers that stand for what is known about it."
    ).format(features=x.shape[1])
    steps = Steps()
    reading = labelled_matrix("X", x, calculation.queries, calculation.features)
    source = steps.add("inputs", _("The input X"), text, (reading,))
    if "C" in calculation.matrices:
        source_vectors = torch.from_numpy(calculation.matrices["C"])
        source = steps.add(
            "second",
            _("The sequence that is read"),
            _(
                "Another sequence C, one row for each of its tokens. Queries are made of X, keys and values of C: "
                "X asks, C answers."
            ),
            (labelled_matrix("C", source_vectors, calculation.tokens, calculation.features, followed=False),),
        )
    projected: list[Tensor] = []
    for letter in ("Q", "K", "V"):
        weight = calculation.matrices.get(f"W_{letter}")
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
        steps.append(projection_step(letter, read, head_weight, None, whole[0, head], columns))
    return steps, projected[0], projected[1], projected[2]
