"""Whether the evidence supports the claim, by one rule for every run, of which every row is shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anaphora.analysis.cells import ALL, KINDS
from anaphora.analysis.settings import CONTROLS

LIFT_ABOVE = 1.0
"""Times uniform attention: the lower end of the lift's interval."""
KNOCK_OUT_ABOVE = 0.10
"""Task accuracy that cutting the gold edge costs more than matched edges: the lower end of its interval."""
FLIPPED_ABOVE = 0.5
"""Of the right twins' answers that follow the twin's row."""
NEAR_CHANCE = 0.10
"""How far from chance still counts as near."""
SCOPE = "layer"
"""Where the rule acts: in all heads of the layer of the head that development chose. Heads of a layer stand
in for each other, so that cutting the edge in one of them costs next to nothing although the answer runs along it; the
tables show the head alone as well."""

RULE: dict[str, float | str] = {
    "lift_above": LIFT_ABOVE,
    "knock_out_above": KNOCK_OUT_ABOVE,
    "flipped_above": FLIPPED_ABOVE,
    "near_chance": NEAR_CHANCE,
    "scope": SCOPE,
}
"""What the protocol's hash covers of it."""

SUPPORTED, NOT_SUPPORTED, NOT_CONTROLLED = "supported", "not supported", "not yet controlled"


def verdict(metrics: Mapping[str, Any], alpha: float) -> dict[str, dict[str, Any]]:
    """The verdict on "this head points at antecedents, and it matters", per language and kind of cue.

    Args:
        metrics: what metrics.json holds: "languages", "significance", "causal", "controls"; parts that are missing
            count as not measured.
        alpha: the largest corrected p that still passes.

    Returns:
        {language: {kind: {"verdict", "rows"}}}, kinds "set" and "role", or "all" for items without a kind. Each row
        holds "rule", "question", "value", "interval", "needed" and "passed"; None is "not measured", which never
        counts as passed. Without every trained control the verdict is "not yet controlled"; with them it is
        "supported" if each row passes, else "not supported".
    """
    return {
        language: {
            kind: _verdict(metrics, language, kind, alpha)
            for kind in ([name for name in KINDS if name in whole] or [ALL])
        }
        for language, whole in metrics.get("languages", {}).items()
    }


def _verdict(metrics: Mapping[str, Any], language: str, kind: str, alpha: float) -> dict[str, Any]:
    whole = metrics["languages"][language]
    cell = whole if kind == ALL else whole[kind]
    causal = _at(metrics, "causal", "languages", language, kind)
    rows = [
        _significance(_at(metrics, "significance", language, kind, "p_holm"), alpha),
        _lift(cell),
        _quads(cell),
        _knock_out(_at(causal, "knock_out", SCOPE, "gold_minus_matched")),
        _patch(_at(causal, "patch", SCOPE)),
    ]
    if kind == "role":
        rows.append(_uniform(_at(metrics, "controls", "uniform", "languages", language, kind)))
    trained = sum(_at(metrics, "controls", name) is not None for name in CONTROLS)
    rows.append(_controls(trained))
    if trained < len(CONTROLS):
        told = NOT_CONTROLLED
    else:
        told = SUPPORTED if all(row["passed"] is True for row in rows) else NOT_SUPPORTED
    return {"verdict": told, "rows": rows}


def _significance(p: float | None, alpha: float) -> dict[str, Any]:
    return _row(
        "significance",
        "Does the head find the antecedent more often than luck would, after correction for all languages and kinds?",
        p,
        None,
        f"p < {alpha:g}",
        None if p is None else p < alpha,
    )


def _lift(cell: Mapping[str, Any]) -> dict[str, Any]:
    ends = _at(cell, "intervals", "lift")
    return _row(
        "lift",
        "Does the antecedent get more weight than its share of the sentence?",
        _at(cell, "lift"),
        ends,
        f"interval above {LIFT_ABOVE:g}",
        None if ends is None else ends[0] > LIFT_ABOVE,
    )


def _quads(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Quad accuracy against single items' baselines: a harder bar than the baselines' own quad accuracy."""
    quad = _at(cell, "quad_accuracy")
    listed = {"chance": _at(cell, "chance"), **(_at(cell, "baselines") or {})}
    known = {name: value for name, value in listed.items() if value is not None}
    best = max(known, key=lambda name: known[name], default=None)
    passed = None
    if quad is not None and best is not None:
        # Without untrained models a baseline is missing: the rest can be lost to, but not all be beaten.
        passed = quad > known[best] and (True if "random_init_95" in known else None)
    named = "" if best is None else f" (best: {best.replace('_', ' ')} {known[best]:.3f})"
    return _row(
        "quad accuracy",
        "Is it right in all four cells of a block more often than any baseline is in a single one?",
        quad,
        _at(cell, "intervals", "quad_accuracy"),
        f"above every baseline{named}",
        passed,
    )


def _knock_out(difference: Mapping[str, Any] | None) -> dict[str, Any]:
    ends = _at(difference, "interval")
    return _row(
        "knock-out",
        "Does cutting the edge from pronoun to antecedent in the head's layer cost more right answers than cutting "
        "matched edges?",
        _at(difference, "value"),
        ends,
        f"interval above {100 * KNOCK_OUT_ABOVE:g} points",
        None if ends is None else ends[0] > KNOCK_OUT_ABOVE,
    )


def _patch(found: Mapping[str, Any] | None) -> dict[str, Any]:
    flipped = _at(found, "flipped")
    return _row(
        "pattern patch",
        "Does the answer follow when the pronoun's rows in that layer are replaced by those of the twin?",
        flipped,
        _at(found, "interval"),
        f"more than {100 * FLIPPED_ABOVE:g} % of right twins",
        None if flipped is None else flipped > FLIPPED_ABOVE,
    )


def _uniform(cell: Mapping[str, Any] | None) -> dict[str, Any]:
    accuracy, chance = _at(cell, "task_accuracy"), _at(cell, "chance")
    return _row(
        "uniform attention",
        "Is the task out of reach for the same model, trained the same way, whose attention says nothing?",
        accuracy,
        None,
        f"task accuracy within {100 * NEAR_CHANCE:g} points of chance" + (f" ({chance:.3f})" if chance else ""),
        near_chance(accuracy, chance),
    )


def _controls(trained: int) -> dict[str, Any]:
    return _row(
        "trained controls",
        "Have the controls been trained at the same data, steps and stopping?",
        trained,
        None,
        f"{len(CONTROLS)} of {len(CONTROLS)}",
        True if trained == len(CONTROLS) else None,
    )


def near_chance(accuracy: float | None, chance: float | None) -> bool | None:
    """Whether an accuracy is about what a blind choice gives; None where one of the two is not known."""
    return None if accuracy is None or chance is None else abs(accuracy - chance) <= NEAR_CHANCE


def _row(
    rule: str, question: str, value: float | None, interval: list[float] | None, needed: str, passed: bool | None
) -> dict[str, Any]:
    return {
        "rule": rule,
        "question": question,
        "value": value,
        "interval": interval,
        "needed": needed,
        "passed": passed,
    }


def _at(found: Any, *names: str) -> Any:
    """What stands under a path of names; None where it breaks off."""
    for name in names:
        if found is None:
            return None
        found = found.get(name)
    return found
