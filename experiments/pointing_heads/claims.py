"""Test of the claims in claims.toml on the measurements. N is the number of items."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anaphora.analysis.scores.statistics import cluster_interval, holm
from anaphora.base.console import say
from anaphora.base.files import write_json
from experiments.pointing_heads.items import CORPORA, FORM_TYPES, MEANING_TYPES, READINGS
from experiments.pointing_heads.measure import KINDS_OF_COPY, stored_parts
from experiments.pointing_heads.rows import RULES, Part

Parts = Mapping[str, Part]
Floats = NDArray[np.float64]

STANDS, FALLS, UNDECIDED = "stands", "falls", "not decided"
CLAIMS = "claims.json"
ALPHA = 0.05
COPIES = 20
"""Number of untrained and of shuffled copies in the claim; fewer can refute the claim, but not confirm it."""


class UnmeasuredError(Exception):
    """Error for a claim whose measurement is missing."""


@dataclass(frozen=True)
class Number:
    """Value that supports or refutes a claim.

    Attributes:
        of: name of the `Reading`, corpus or head.
        value: value in the claim's unit, not rounded.
        interval: 95 % interval; None if there is none.
        holds: whether the claim's rule holds for the value.
        note: baseline of a comparison, or p-value.
    """

    of: str
    value: float | str
    interval: tuple[float, float] | None
    holds: bool
    note: str = ""


@dataclass(frozen=True)
class Decision:
    """Verdict on a claim, with the values behind it."""

    name: str
    verdict: str
    numbers: tuple[Number, ...]
    reason: str = ""


def write_claims(output: str) -> None:
    """Test all claims, write the verdicts, and print a line for each value."""
    decisions = decide(stored_parts(output))
    write_json(Path(output) / CLAIMS, [asdict(rounded(decision)) for decision in decisions])
    for decision in map(rounded, decisions):
        say(f"{decision.name}: {decision.verdict} {decision.reason}".strip())
        for number in decision.numbers:
            say(f"  {number.of}: {number.value} {number.interval or ''} {number.note}".rstrip())


def rounded(decision: Decision) -> Decision:
    """Round the values of a decision for a file; pages round the exact values, since rounding twice adds an error."""
    numbers = (
        number if isinstance(number.value, str) else replace(number, value=round(number.value, _decimals(number)))
        for number in decision.numbers
    )
    return replace(decision, numbers=tuple(numbers))


def _decimals(number: Number) -> int:
    return max(2, digits(number.interval))


def digits(interval: tuple[float, float] | None) -> int:
    """Return the number of decimals needed to show the interval's width: 3 if both ends are below 1, else 1."""
    return 3 if interval is not None and max(map(abs, interval)) < 1 else 1


def rules() -> dict[str, dict[str, Any]]:
    """Return the preregistered claims."""
    return tomllib.loads(Path(__file__).with_name("claims.toml").read_text(encoding="utf-8"))


def decide(parts: Parts) -> list[Decision]:
    """Return the verdict on each claim, in the order of the file; "not decided" if a measurement is missing."""
    decisions = []
    for name, rule in rules().items():
        try:
            numbers = tuple(_NUMBERS[name](parts, rule))
        except UnmeasuredError as error:
            decisions.append(Decision(name, UNDECIDED, (), f"{error} was not measured"))
            continue
        stands = _transfers(numbers, rule) if name == "transfers" else all(number.holds for number in numbers)
        copies = fewest_copies(parts) if name == "beats_copies" else COPIES
        if stands and copies < COPIES:
            decisions.append(Decision(name, UNDECIDED, numbers, f"there are {copies} of {COPIES} copies"))
        else:
            decisions.append(Decision(name, STANDS if stands else FALLS, numbers))
    return decisions


def interval_of(values: ArrayLike, part: Part, bounds: tuple[float, float]) -> tuple[float, float] | None:
    """Return the bootstrap interval of the mean over groups, in the unit of the values; missing values are ignored."""
    numbers = floats(values)
    there = np.flatnonzero(~np.isnan(numbers))
    ends = cluster_interval(numbers[there], [part["group"][item] for item in there], bounds=bounds)
    return None if ends is None else (round(ends[0], 4), round(ends[1], 4))


def accuracy(part: Part, right: ArrayLike) -> tuple[float, tuple[float, float] | None]:
    """Return an accuracy in %, with its interval."""
    values = 100 * floats(right)
    return mean(values), interval_of(values, part, (0, 100))


def difference(part: Part, one: ArrayLike, other: ArrayLike) -> tuple[float, tuple[float, float] | None]:
    """Return the difference of two accuracies in points, with its interval."""
    values = 100 * (floats(one) - floats(other))
    return mean(values), interval_of(values, part, (-100, 100))


def floats(values: ArrayLike) -> Floats:
    """Return values as an array; None becomes NaN."""
    return np.array(values, dtype=np.float64)


def mean(values: ArrayLike) -> float:
    """Return the mean of the values that are not missing."""
    return float(np.nanmean(floats(values)))


def percent(shares: ArrayLike) -> float:
    """Return the mean of the shares that are not missing in %, rounded to two decimals."""
    return round(mean(100 * floats(shares)), 2)


def best_shortcut(part: Part, names: Sequence[str] | None = None) -> str:
    """Return the shortcut with the highest accuracy."""
    shortcuts: Mapping[str, list[float]] = part["shortcuts"]
    return max(names or shortcuts, key=lambda name: mean(100 * floats(shortcuts[name])))


def of_types(part: Part, types: Sequence[str]) -> NDArray[np.bool_]:
    """Return a mask of the items with one of the given types of cue, (N,)."""
    return np.isin(part["type"], types)


def _of(parts: Parts, name: str) -> Part:
    if name not in parts:
        raise UnmeasuredError(name)
    return parts[name]


def _everyday(parts: Parts) -> Iterator[tuple[str, Part]]:
    for reading in READINGS:
        yield reading.name, _of(parts, f"everyday-{reading.name}")


def _above(interval: tuple[float, float] | None, margin: float) -> bool:
    return interval is not None and interval[0] > margin


def _points(parts: Parts, rule: Mapping[str, Any]) -> Iterator[Number]:
    read = list(_everyday(parts))
    corrected = holm([min(1.0, part["p"] * part["heads"]) for _, part in read])
    for (name, part), p in zip(read, corrected, strict=True):
        value, interval = accuracy(part, part["right"])
        holds = value >= rule["least"] and _above(interval, 50) and bool(p < ALPHA)
        yield Number(name, value, interval, holds, f"p = {p:.4f}")


def _same_head(parts: Parts, _rule: Mapping[str, Any]) -> Iterator[Number]:
    heads = {language: _of(parts, f"development-e5-{language}")["ranked"][0] for language in ("en", "zh")}
    for language, (layer, head) in heads.items():
        yield Number(language, f"{layer}.{head}", None, heads["en"] == heads["zh"])


def _beats_shortcut(parts: Parts, rule: Mapping[str, Any]) -> Iterator[Number]:
    for reading, (name, part) in zip(READINGS, _everyday(parts), strict=True):
        shortcuts = _of(parts, f"shortcuts-{reading.language}")
        best = best_shortcut(shortcuts)
        value, interval = difference(part, part["right"], shortcuts["shortcuts"][best])
        note = f"{best}: {percent(shortcuts['shortcuts'][best])}"
        yield Number(name, value, interval, _above(interval, rule["margin"]), note)


def copies_of(parts: Parts, model: str, of: str) -> dict[str, list[float]]:
    """Return the accuracies of the heads chosen in a model's untrained and shuffled copies, by kind of copy.

    `of` is the name of the `Reading` or corpus on which they were measured.
    """
    return {
        kind: [
            part["accuracy"][of]
            for name, part in parts.items()
            if name.startswith(f"copy-{model}-{kind}-") and of in part["accuracy"]
        ]
        for kind in KINDS_OF_COPY
    }


EVERYDAY = tuple((reading.model, reading.name) for reading in READINGS)
"""Model and name of each `Reading`; all are measured on everyday sentences."""


def fewest_copies(parts: Parts, measured: Iterable[tuple[str, str]] = EVERYDAY) -> int:
    """Return the smallest number of measured copies over models, kinds of copy and `Reading`s or corpora."""
    return min(len(values) for model, name in measured for values in copies_of(parts, model, name).values())


def _beats_copies(parts: Parts, _rule: Mapping[str, Any]) -> Iterator[Number]:
    for reading, (name, part) in zip(READINGS, _everyday(parts), strict=True):
        value, interval = accuracy(part, part["right"])
        for kind, values in copies_of(parts, reading.model, name).items():
            if not values:
                raise UnmeasuredError(f"copy-{reading.model}-{kind}")
            note = f"best of {len(values)} {kind}: {max(values)}, their mean {round(mean(values), 2)}"
            yield Number(name, value, interval, max(values) < value, note)


def _one_head(parts: Parts, rule: Mapping[str, Any]) -> Iterator[Number]:
    for name, part in _everyday(parts):
        value, interval = difference(part, part["right"], part["second"])
        yield Number(name, value, interval, _above(interval, rule["margin"]), f"second: {percent(part['second'])}")


def _words_decide(parts: Parts, rule: Mapping[str, Any]) -> Iterator[Number]:
    for name, part in _everyday(parts):
        right = 100 * floats(part["right"])
        form, meaning = of_types(part, FORM_TYPES), of_types(part, MEANING_TYPES)
        value = float(right[form].mean() - right[meaning].mean())
        # To first order the difference of two means varies like the mean of these values, whose mean is the difference.
        own = (
            form * (right - right[form].mean()) / form.mean()
            - meaning * (right - right[meaning].mean()) / meaning.mean()
        )
        interval = interval_of(value + own, part, (-100, 100))
        note = f"{right[form].mean():.1f} and {right[meaning].mean():.1f}"
        yield Number(name, value, interval, value >= rule["margin"] and _above(interval, 0), note)


def _no_roles(parts: Parts, rule: Mapping[str, Any]) -> Iterator[Number]:
    right, groups = [], []
    for name, part in _everyday(parts):
        if name.startswith("e5"):
            chosen = np.flatnonzero(of_types(part, ("role",)))
            right += [part["right"][item] for item in chosen]
            groups += [part["group"][item] for item in chosen]
    value, interval = accuracy({"group": groups}, right)
    holds = interval is not None and rule["low"] <= interval[0] and interval[1] <= rule["high"]
    yield Number("e5", value, interval, holds, f"{len(set(groups))} pairs")


def _pronoun_alone(parts: Parts, rule: Mapping[str, Any]) -> Iterator[Number]:
    for name, part in _everyday(parts):
        rows = part["neighbours"]
        best = max(rows, key=lambda one: mean(100 * floats(rows[one])))
        value, interval = difference(part, part["right"], rows[best])
        yield Number(name, value, interval, _above(interval, rule["margin"]), f"{best}: {percent(rows[best])}")


def _noun_in_place(parts: Parts, rule: Mapping[str, Any]) -> Iterator[Number]:
    for name, part in _everyday(parts):
        noun = floats(part["noun"])
        value, interval = difference(part, noun, part["right"])
        with_noun, ends = accuracy(part, noun)
        holds = value >= rule["margin"] and _above(ends, 50)
        note = f"{round(with_noun, 2)} {list(ends or ())} in {int((~np.isnan(noun)).sum())} sentences"
        yield Number(name, value, interval, holds, note)


def _names_exchanged(parts: Parts, rule: Mapping[str, Any]) -> Iterator[Number]:
    for name, part in _everyday(parts):
        stays = 100 * floats(part["stays"])
        interval = interval_of(stays, part, (-100, 100))
        note = f"{int((~np.isnan(stays)).sum())} sentences"
        yield Number(name, mean(stays), interval, _above(interval, rule["margin"]), note)


def _of_corpora(parts: Parts, _rule: Mapping[str, Any]) -> Iterator[Number]:
    for model, names in CORPORA.items():
        for corpus in names:
            part = _of(parts, f"corpus-{model}-{corpus}")
            best = best_shortcut(part, RULES[:2])
            value, interval = difference(part, part["right"], part["shortcuts"][best])
            note = f"{percent(part['right'])}, {best}: {percent(part['shortcuts'][best])}"
            yield Number(f"{model} {corpus}", value, interval, _above(interval, 0), note)


def _transfers(numbers: Sequence[Number], rule: Mapping[str, Any]) -> bool:
    held = {model: sum(one.holds for one in numbers if one.of.startswith(f"{model} ")) for model in CORPORA}
    return all(count >= rule["least"] for count in held.values())


def _vector_needs_edge(parts: Parts, rule: Mapping[str, Any]) -> Iterator[Number]:
    for reading in READINGS:
        part = _of(parts, f"vector-{reading.name}")
        edge, matched = floats(part["fall"]["edge"]), floats(part["fall"]["matched"])
        interval = interval_of(edge - matched, part, (-200, 200))
        note = f"falls by {edge.mean():.3f}, matched {matched.mean():.3f}, from {round(mean(part['margin']), 2)}"
        value = float((edge - matched).mean())
        yield Number(reading.name, value, interval, _above(interval, rule["margin"]), note)


def _probe_needs_edge(parts: Parts, rule: Mapping[str, Any]) -> Iterator[Number]:
    for reading in READINGS:
        part = _of(parts, f"probe-{reading.name}")
        right = part["right"]
        value, interval = difference(part, right["matched"], right["edge"])
        note = ", ".join(f"{name} {percent(values)}" for name, values in right.items())
        yield Number(reading.name, value, interval, value >= rule["margin"] and _above(interval, 0), note)


def _likelihoods_need_edge(parts: Parts, rule: Mapping[str, Any]) -> Iterator[Number]:
    part = _of(parts, "likelihoods")
    value, ends = part["difference"], part["interval"]
    interval = None if ends is None else (round(100 * ends[0], 2), round(100 * ends[1], 2))
    right = percent(part["right"])
    note = f"layer {part['head'][0]} head {part['head'][1]} of smollm2; {right} right of {len(part['right'])}"
    yield Number("smollm2", 100 * value, interval, _above(interval, rule["margin"]), note)


_NUMBERS: Mapping[str, Callable[[Parts, Mapping[str, Any]], Iterator[Number]]] = {
    "points": _points,
    "same_head": _same_head,
    "beats_shortcut": _beats_shortcut,
    "beats_copies": _beats_copies,
    "one_head": _one_head,
    "words_decide": _words_decide,
    "no_roles": _no_roles,
    "pronoun_alone": _pronoun_alone,
    "noun_in_place": _noun_in_place,
    "names_exchanged": _names_exchanged,
    "transfers": _of_corpora,
    "vector_needs_edge": _vector_needs_edge,
    "probe_needs_edge": _probe_needs_edge,
    "likelihoods_need_edge": _likelihoods_need_edge,
}
