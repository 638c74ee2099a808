"""The headline numbers as a table for the terminal, and the sentence that one may say about them.

Both read the summary of one run: a plain dict of `split`, `head` and `languages`, whose cells ("en", and in it "set"
and "role") hold shares in [0, 1], None where a measure does not apply. Layers and heads are counted from 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

Cell = Mapping[str, Any]

LANGUAGES = {"en": "English", "zh": "Chinese"}
_KINDS = {"set": "set cues", "role": "role cues"}
_ABSENT = "–"
_LONGEST_NAME = 14
_UNTRAINED = ("random_init", "random_init_95")


def headline(metrics: Mapping[str, Any]) -> Table:
    """A row for every language and kind of cue; fits 100 columns without a wrapped cell."""
    from rich import box
    from rich.table import Table

    head = metrics["head"]
    where = f"layer {head['layer']} head {head['head']} (chosen on {head['chosen_on']})"
    table = Table(
        title=f"{metrics['split']} split, {where}, shares in %",
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, 0),
        pad_edge=False,
        show_edge=False,
    )
    table.add_column("", no_wrap=True)
    for name in ("items", "task", "candidate\n[95 %]", "quad", "mass", "lift\n(times)", "chance"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("best\nbaseline", justify="right", no_wrap=True)
    table.add_column("untrained\nmean / 95th", justify="right", no_wrap=True)
    for language, whole in metrics["languages"].items():
        table.add_row(LANGUAGES.get(language, language), *_fields(whole), style="bold")
        for kind, name in _KINDS.items():
            if kind in whole:
                table.add_row(f" {name}", *_fields(whole[kind]))
    return table


def honest_sentence(metrics: Mapping[str, Any]) -> str:
    """What the numbers allow one to say, in English: a sentence for the languages of which the same can be said.

    A task counts as solved where the lower bound of its accuracy is above chance and every baseline and the accuracy
    at least half way from chance to 1; below chance, that is said. A head stands out where the lower bound of its
    candidate accuracy is above chance, every baseline and the 95th percentile of untrained models. A kind of cue is
    named where its case differs from that of its language.
    """
    cases: dict[str, list[tuple[str, Cell]]] = {"points": [], "unmeasured": [], "ordinary": [], "unsolved": []}
    for language, whole in metrics["languages"].items():
        name = LANGUAGES.get(language, language)
        case = _case(whole)
        cases[case].append((name, whole))
        for kind, words in _KINDS.items():
            if kind in whole and _case(whole[kind]) != case:
                cases[_case(whole[kind])].append((f"{name} {words}", whole[kind]))

    head = metrics["head"]
    where = f"layer {head['layer']} head {head['head']}"
    what = "unseen items"
    if metrics["split"] != "test" or head["chosen_on"] == "test":
        what = f"{metrics['split']} items (the head was chosen on {head['chosen_on']} items)"
    sentences = []
    if cases["points"]:
        sentences.append(
            f"{_aim(cases['points'], where, what)}, above every baseline and 95 % of untrained models; this shows "
            "where the head points, not that the model uses it: that takes the causal tests."
        )
    if cases["unmeasured"]:
        sentences.append(
            f"{_aim(cases['unmeasured'], where, what)}; untrained models were not measured, so this is no finding yet."
        )
    sentences += [
        f"{_aim([(name, cell)], where, what)}, which is not clearly above {_all_of(_not_beaten(cell))}: "
        "no evidence that this head points at antecedents."
        for name, cell in cases["ordinary"]
    ]
    sentences += [
        f"In {name} the model answers {_percent(cell['task_accuracy'])} of {what} rightly ({_bar(cell)}): the task is "
        "not solved, so where its heads point should not be read as alignment."
        for name, cell in cases["unsolved"]
    ]
    reversed_ = [name for name, cell in cases["unsolved"] if _high(cell, "task_accuracy") < (cell.get("chance") or 0.0)]
    if reversed_:
        sentences.append(
            f"In {_all_of(reversed_)} that is below chance: what the model has learned turns round on these items."
        )
    if metrics.get("reads_candidates") and len(cases["unsolved"]) < sum(map(len, cases.values())):
        sentences.append(
            "This model's read-out compares the candidates' own states with the pronoun's: its answers need no "
            "attention between them."
        )
    return " ".join(sentences)


def _fields(cell: Cell) -> list[str]:
    baselines = cell.get("baselines") or {}
    best = _best_baseline(cell)
    untrained = [_number(baselines.get(name)) for name in _UNTRAINED]
    bounds = (cell.get("intervals") or {}).get("candidate_accuracy")
    span = f" [{_number(bounds[0])}, {_number(bounds[1])}]" if bounds else ""
    lift = cell.get("lift")
    return [
        _ABSENT if cell.get("items") is None else f"{cell['items']}",
        _number(cell.get("task_accuracy")),
        _number(cell.get("candidate_accuracy")) + span,
        _number(cell.get("quad_accuracy")),
        _number(cell.get("antecedent_mass")),
        _ABSENT if lift is None else f"{lift:.1f}",
        _number(cell.get("chance")),
        f"{_short(best[0])} {_number(best[1])}" if best else _ABSENT,
        " / ".join(untrained) if set(untrained) != {_ABSENT} else _ABSENT,
    ]


def _case(cell: Cell) -> str:
    task = cell.get("task_accuracy")
    chance = cell.get("chance") or 0.0
    best = _best_baseline(cell)
    bar = max(chance, best[1]) if best else chance
    if task is None or task < (1 + chance) / 2 or _low(cell, "task_accuracy") <= bar:
        return "unsolved"
    if _not_beaten(cell):
        return "ordinary"
    return "points" if (cell.get("baselines") or {}).get("random_init_95") is not None else "unmeasured"


def _not_beaten(cell: Cell) -> list[str]:
    """What the head's candidate accuracy is not clearly above, each with its number."""
    low = _low(cell, "candidate_accuracy")
    baselines = {"chance": cell.get("chance"), **(cell.get("baselines") or {})}
    names = {"random_init": "the mean of untrained models", "random_init_95": "the 95th percentile of untrained models"}
    return [
        f"{names.get(name, name.replace('_', ' '))} ({_percent(value)})"
        for name, value in baselines.items()
        if value is not None and low <= value
    ]


def _best_baseline(cell: Cell) -> tuple[str, float] | None:
    known = {
        name: value
        for name, value in (cell.get("baselines") or {}).items()
        if value is not None and name not in _UNTRAINED
    }
    # A rule that gets no further than chance tells more than chance, whose number stands beside it already.
    return max(known.items(), key=lambda pair: (pair[1], pair[0] != "chance")) if known else None


def _low(cell: Cell, measure: str) -> float:
    bounds = (cell.get("intervals") or {}).get(measure)
    value = bounds[0] if bounds else cell.get(measure)
    return 0.0 if value is None else float(value)


def _high(cell: Cell, measure: str) -> float:
    bounds = (cell.get("intervals") or {}).get(measure)
    value = bounds[1] if bounds else cell.get(measure)
    return 1.0 if value is None else float(value)


def _aim(named: Sequence[tuple[str, Cell]], where: str, what: str) -> str:
    shares = [_percent(cell["candidate_accuracy"]) + (f" ({name})" if len(named) > 1 else "") for name, cell in named]
    chances = list(dict.fromkeys(_percent(cell["chance"]) for _, cell in named))
    return (
        f"In {_all_of([name for name, _ in named])} the pronoun's strongest candidate at {where} is the antecedent "
        f"in {_all_of(shares)} of {what} (chance {' / '.join(chances)})"
    )


def _bar(cell: Cell) -> str:
    best = _best_baseline(cell)
    return f"chance {_percent(cell['chance'])}" + (
        f", best baseline {best[0].replace('_', ' ')} {_percent(best[1])}" if best else ""
    )


def _all_of(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _percent(share: float | None) -> str:
    if share is None:
        return "an unknown share"
    # 0.997 is not 100 %.
    return f"{100 * share:.1f} %" if 0.995 <= share < 1 else f"{100 * share:.0f} %"


def _number(share: float | None) -> str:
    return _ABSENT if share is None else f"{100 * share:.1f}"


def _short(name: str) -> str:
    words = name.replace("_", " ")
    return words if len(words) <= _LONGEST_NAME else words[: _LONGEST_NAME - 1] + "…"
