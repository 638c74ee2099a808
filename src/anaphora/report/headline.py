"""The headline numbers as a table for the terminal, and the sentence that one may say about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from anaphora.analysis.evidence.schema.evidence import Evidence
from anaphora.analysis.evidence.schema.scores import Cell
from anaphora.analysis.evidence.schema.typed_json import Interval
from anaphora.report.groups import Group, all_groups
from anaphora.report.numbers import NOT_MEASURED, format_number, format_percent
from anaphora.report.wording import head_name, label, labels, language_name, listed, phrase

if TYPE_CHECKING:
    from rich.table import Table

_LONGEST_NAME = 14
"""Columns of the terminal for a baseline's name; a Chinese character takes two."""
_UNTRAINED = ("random_init", "random_init_95")


def headline_table(evidence: Evidence) -> Table:
    """A row for every language and kind of cue; fits 100 columns without a wrapped cell."""
    from rich import box
    from rich.table import Table

    table = Table(
        title=phrase(
            "headline_table",
            "title",
            split=label("splits", evidence.split),
            head=_head(evidence),
            chosen_on=label("splits", evidence.head.chosen_on),
        ),
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, 0),
        pad_edge=False,
        show_edge=False,
    )
    table.add_column("", no_wrap=True)
    for name in ("items", "task", "candidate", "quad", "mass", "lift", "chance", "best", "untrained"):
        table.add_column(phrase("headline_table", name), justify="right", no_wrap=True)
    for group in all_groups(evidence.scores):
        if group.kind == "all":
            table.add_row(language_name(group.language), *_row_cells(group.cell), style="bold")
        else:
            table.add_row(f" {phrase('kinds', group.kind)}", *_row_cells(group.cell))
    return table


def headline_sentence(evidence: Evidence) -> str:
    """What the numbers allow one to say: a sentence for the languages of which the same can be said.

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
    items = phrase("headline", "unseen_items")
    if evidence.split != "test" or evidence.head.chosen_on == "test":
        items = phrase(
            "headline",
            "items_of",
            split=label("splits", evidence.split),
            chosen_on=label("splits", evidence.head.chosen_on),
        )
    sentences = [
        _accuracy_sentence(case, cases[case], evidence, items) for case in ("points", "unmeasured") if cases[case]
    ]
    sentences += [
        _accuracy_sentence("ordinary", [group], evidence, items, bars=listed(_baselines_not_beaten(group.cell)))
        for group in cases["ordinary"]
    ]
    sentences += [_unsolved_sentence(group, items) for group in cases["unsolved"]]
    below_chance = [
        _name(group)
        for group in cases["unsolved"]
        if _upper_bound(group.cell.task_accuracy, group.cell.intervals.task_accuracy) < (group.cell.chance or 0.0)
    ]
    if below_chance:
        sentences.append(phrase("headline", "below_chance", groups=listed(below_chance)))
    if evidence.reads_candidates and len(cases["unsolved"]) < sum(map(len, cases.values())):
        sentences.append(phrase("headline", "reads_candidates"))
    return phrase("joined", "sentences").join(sentences)


def _head(evidence: Evidence) -> str:
    return head_name(evidence.head.layer, evidence.head.head)


def _name(group: Group[Cell]) -> str:
    name = language_name(group.language)
    if group.kind == "all":
        return name
    return phrase("headline", "group", spoken=name, kind=phrase("kinds", group.kind))


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
    return [
        phrase("headline", "bar", rule=_bar_name(name), share=_share(value))
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


def _accuracy_sentence(case: str, groups: Sequence[Group[Cell]], evidence: Evidence, items: str, **values: str) -> str:
    """How often the head points at the antecedent in some groups, and what that shows."""
    shares = [_share(group.cell.candidate_accuracy) for group in groups]
    if len(groups) > 1:
        shares = [
            phrase("headline", "share_of_group", share=share, group=_name(group))
            for share, group in zip(shares, groups, strict=True)
        ]
    return phrase(
        "headline",
        case,
        groups=listed([_name(group) for group in groups]),
        head=_head(evidence),
        shares=listed(shares),
        items=items,
        chance=" / ".join(dict.fromkeys(_share(group.cell.chance) for group in groups)),
        **values,
    )


def _unsolved_sentence(group: Group[Cell], items: str) -> str:
    cell, best = group.cell, _best_baseline(group.cell)
    if cell.task_accuracy is None:
        return phrase("headline", "no_answers", group=_name(group))
    values = {
        "group": _name(group),
        "share": _share(cell.task_accuracy),
        "items": items,
        "chance": _share(cell.chance),
    }
    if best is None:
        return phrase("headline", "unsolved_without_baseline", **values)
    return phrase("headline", "unsolved", **values, rule=_bar_name(best[0]), best=_share(best[1]))


def _bar_name(name: str) -> str:
    """What a baseline is called in a sentence."""
    return labels("headline_bars").get(name) or label("baselines", name)


def _share(share: float | None) -> str:
    """A share in a sentence, without decimals."""
    if share is None:
        return phrase("headline", "unknown_share")
    # 0.997 is not 100 %.
    return f"{100 * share:.1f} %" if 0.995 <= share < 1 else f"{100 * share:.0f} %"


def _shortened(name: str) -> str:
    from rich.cells import cell_len, set_cell_size

    words = label("baselines", name)
    return words if cell_len(words) <= _LONGEST_NAME else set_cell_size(words, _LONGEST_NAME - 1).rstrip() + "…"
