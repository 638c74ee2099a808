"""The headline numbers as a table for the terminal, and the sentence that one may say about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from anaphora.analysis.evidence.schema.evidence import Evidence
from anaphora.analysis.evidence.schema.scores import Cell
from anaphora.analysis.evidence.schema.typed_json import Interval
from anaphora.report.groups import Group, all_groups
from anaphora.report.numbers import NOT_MEASURED, format_number, format_percent
from anaphora.report.wording import language_name, phrase

if TYPE_CHECKING:
    from rich.table import Table

_LONGEST_NAME = 14
_UNTRAINED = ("random_init", "random_init_95")


def headline_table(evidence: Evidence) -> Table:
    """A row for every language and kind of cue; fits 100 columns without a wrapped cell."""
    from rich import box
    from rich.table import Table

    table = Table(
        title=f"{evidence.split} split, {_head(evidence)} (chosen on {evidence.head.chosen_on}), shares in %",
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
    for group in all_groups(evidence.scores):
        if group.kind == "all":
            table.add_row(language_name(group.language), *_row_cells(group.cell), style="bold")
        else:
            table.add_row(f" {phrase('kinds', group.kind)}", *_row_cells(group.cell))
    return table


def headline_sentence(evidence: Evidence) -> str:
    """What the numbers allow one to say, in English: a sentence for the languages of which the same can be said.

    A task counts as solved where the lower bound of its accuracy is above chance and every baseline and the accuracy
    at least half way from chance to 1; below chance, that is said. A head stands out where the lower bound of its
    candidate accuracy is above chance, every baseline and the 95th percentile of untrained models. A kind of cue is
    named where its case differs from that of its language.
    """
    cases: dict[str, list[Group[Cell]]] = {"points": [], "unmeasured": [], "ordinary": [], "unsolved": []}
    of_language = {language: _case(whole) for language, whole in evidence.languages.items()}
    for group in all_groups(evidence.scores):
        case = _case(group.cell)
        if group.kind == "all" or case != of_language[group.language]:
            cases[case].append(group)
    where = _head(evidence)
    what = "unseen items"
    if evidence.split != "test" or evidence.head.chosen_on == "test":
        what = f"{evidence.split} items (the head was chosen on {evidence.head.chosen_on} items)"
    sentences = []
    if cases["points"]:
        sentences.append(
            f"{_accuracy_clause(cases['points'], where, what)}, above every baseline and 95 % of untrained models; "
            "this shows where the head points, not that the model uses it: that takes the causal tests."
        )
    if cases["unmeasured"]:
        sentences.append(
            f"{_accuracy_clause(cases['unmeasured'], where, what)}; untrained models were not measured, so this is no "
            "finding yet."
        )
    sentences += [
        f"{_accuracy_clause([group], where, what)}, which is not clearly above "
        f"{_join_words(_baselines_not_beaten(group.cell))}: no evidence that this head points at antecedents."
        for group in cases["ordinary"]
    ]
    sentences += [
        f"In {_name(group)} the model answers {_share(group.cell.task_accuracy)} of {what} rightly "
        f"({_chance_and_best(group.cell)}): the task is not solved, so where its heads point should not be read as "
        "alignment."
        for group in cases["unsolved"]
    ]
    below_chance = [
        _name(group)
        for group in cases["unsolved"]
        if _upper_bound(group.cell.task_accuracy, group.cell.intervals.task_accuracy) < (group.cell.chance or 0.0)
    ]
    if below_chance:
        sentences.append(
            f"In {_join_words(below_chance)} that is below chance: what the model has learned turns round on these "
            "items."
        )
    if evidence.reads_candidates and len(cases["unsolved"]) < sum(map(len, cases.values())):
        sentences.append(
            "This model's prediction head compares the candidates' own states with the pronoun's: its answers need no "
            "attention between them."
        )
    return " ".join(sentences)


def _head(evidence: Evidence) -> str:
    return f"layer {evidence.head.layer} head {evidence.head.head}"


def _name(group: Group[Cell]) -> str:
    name = language_name(group.language)
    return name if group.kind == "all" else f"{name} {phrase('kinds', group.kind)}"


def _row_cells(cell: Cell) -> list[str]:
    best = _best_baseline(cell)
    untrained = [format_percent(cell.baselines.get(name)) for name in _UNTRAINED]
    return [
        f"{cell.items}",
        format_percent(cell.task_accuracy),
        format_percent(cell.candidate_accuracy, cell.intervals.candidate_accuracy),
        format_percent(cell.quad_accuracy),
        format_percent(cell.antecedent_mass),
        format_number(cell.lift, 1),
        format_percent(cell.chance),
        f"{_shortened(best[0])} {format_percent(best[1])}" if best else NOT_MEASURED,
        " / ".join(untrained) if set(untrained) != {NOT_MEASURED} else NOT_MEASURED,
    ]


def _case(cell: Cell) -> str:
    task, chance = cell.task_accuracy, cell.chance or 0.0
    best = _best_baseline(cell)
    bar = max(chance, best[1]) if best else chance
    if task is None or task < (1 + chance) / 2 or _lower_bound(task, cell.intervals.task_accuracy) <= bar:
        return "unsolved"
    if _baselines_not_beaten(cell):
        return "ordinary"
    return "points" if cell.baselines.get("random_init_95") is not None else "unmeasured"


def _baselines_not_beaten(cell: Cell) -> list[str]:
    """What the head's candidate accuracy is not clearly above, each with its number."""
    low = _lower_bound(cell.candidate_accuracy, cell.intervals.candidate_accuracy)
    names = {"random_init": "the mean of untrained models", "random_init_95": "the 95th percentile of untrained models"}
    return [
        f"{names.get(name, name.replace('_', ' '))} ({_share(value)})"
        for name, value in {"chance": cell.chance, **cell.baselines}.items()
        if value is not None and low <= value
    ]


def _best_baseline(cell: Cell) -> tuple[str, float] | None:
    known = {name: value for name, value in cell.baselines.items() if value is not None and name not in _UNTRAINED}
    # A rule that gets no further than chance tells more than chance, whose number stands beside it already.
    return max(known.items(), key=lambda pair: (pair[1], pair[0] != "chance")) if known else None


def _lower_bound(value: float | None, ends: Interval | None) -> float:
    return ends.low if ends else value or 0.0


def _upper_bound(value: float | None, ends: Interval | None) -> float:
    if ends:
        return ends.high
    return 1.0 if value is None else value


def _accuracy_clause(groups: Sequence[Group[Cell]], where: str, what: str) -> str:
    shares = [
        _share(group.cell.candidate_accuracy) + (f" ({_name(group)})" if len(groups) > 1 else "") for group in groups
    ]
    chances = list(dict.fromkeys(_share(group.cell.chance) for group in groups))
    return (
        f"In {_join_words([_name(group) for group in groups])} the pronoun's strongest candidate at {where} is the "
        f"antecedent in {_join_words(shares)} of {what} (chance {' / '.join(chances)})"
    )


def _chance_and_best(cell: Cell) -> str:
    best = _best_baseline(cell)
    named = f", best baseline {best[0].replace('_', ' ')} {_share(best[1])}" if best else ""
    return f"chance {_share(cell.chance)}{named}"


def _join_words(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _share(share: float | None) -> str:
    """A share in a sentence, without decimals."""
    if share is None:
        return "an unknown share"
    # 0.997 is not 100 %.
    return f"{100 * share:.1f} %" if 0.995 <= share < 1 else f"{100 * share:.0f} %"


def _shortened(name: str) -> str:
    words = name.replace("_", " ")
    return words if len(words) <= _LONGEST_NAME else words[: _LONGEST_NAME - 1] + "…"
