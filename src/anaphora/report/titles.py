"""Figure titles that state the result, computed from the data.

The title of the main figure presents a head's accuracy as a result only if it exceeds chance, shortcut baselines and,
if measured, untrained models. The title of a single sentence makes no claim about others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.evidence.evidence import Evidence
from anaphora.analysis.results.scores import Cell, Head
from anaphora.base.translation import _
from anaphora.report.figures import style
from anaphora.report.figures.fonts import drawable_text, is_chinese
from anaphora.report.figures.maps import QuadCell
from anaphora.report.figures.sheet import CandidateWords, WordRoles, text_width
from anaphora.report.headline import (
    group_name,
    groups_by_case,
    share_text,
    task_threshold,
    threshold_text,
    unmet_thresholds,
)
from anaphora.report.numbers import format_short_percent
from anaphora.report.wording import Group, group_label, head_name, label, language_name, listed, split_names

_WIDEST_MENTION = 1.6
"""Maximum width of a mention in a title, in inches."""


def alignment_title(accuracies: NDArray[np.float64], head: Head, chance: float) -> str:
    """Return a title with the candidate accuracies of the chosen head and the best other head after training.

    `accuracies` are those of all heads, (L, H), at the last validation.
    """
    chosen = accuracies[head.layer, head.head]
    values = {"accuracy": format_short_percent(chosen), "chance": format_short_percent(chance)}
    values["head"] = head_name(head.layer, head.head)
    others = np.delete(accuracies.ravel(), head.layer * accuracies.shape[1] + head.head)
    if not others.size:
        return _(
            "At the end of training, {head} has a candidate accuracy of {accuracy} %\n(development split, chance "
            "{chance} %)"
        ).format(**values)
    return _(
        "At the end of training, {head} has a candidate accuracy of {accuracy} %,\nthe best other head {other} % "
        "(development split, chance {chance} %)"
    ).format(other=format_short_percent(others.max()), **values)


def scoreboard_title(evidence: Evidence) -> str:
    """Return a title that states the accuracy of the chosen head, for each group of items in `groups_by_case`.

    Groups with the same result share a line. A group that does not exceed a baseline has a line of its own, which also
    names the baseline.
    """
    cases = groups_by_case(evidence)
    lines = []

    def add(text: str, groups: Sequence[Group[Cell]], **values: str) -> None:
        if groups:
            of_cells = {
                "groups": listed([group_name(group) for group in groups]),
                "head": head_name(evidence.head.layer, evidence.head.head),
                "shares": _listed_shares([group.cell.candidate_accuracy for group in groups]),
                "chance": _listed_shares([group.cell.chance for group in groups]),
                "split": label(split_names(), evidence.split),
            }
            lines.append(text.format(**(of_cells | values)))

    above = _(
        "In {groups}, {head} gives the antecedent more weight than every other candidate in {shares} of {split} items; "
        "chance {chance}"
    )
    add(above, [*cases["points"], *cases["unmeasured"]])
    without_interval = _(
        "In {groups}, {head} gives the antecedent more weight than every other candidate in {shares} of "
        "{split} items, from too few templates or groups for an interval"
    )
    add(without_interval, cases["open"])
    for group in cases["ordinary"]:
        bars = unmet_thresholds(group.cell)
        highest = max(bars, key=bars.__getitem__)
        text = _(
            "In {groups}, {head} gives the antecedent more weight than every other candidate in {shares} of "
            "{split} items, not clearly above {bar}"
        )
        add(text, [group], bar=threshold_text(highest, bars[highest]))
    unsolved = _(
        "In {groups}, the model answers {shares} of {split} items correctly (chance {chance}): the task is not solved"
    )
    answered = [group for group in cases["unsolved"] if group.cell.task_accuracy is not None]
    if wrong := [group for group in answered if task_threshold(group.cell) is None]:
        add(unsolved, wrong, shares=_listed_shares([group.cell.task_accuracy for group in wrong]))
    for group in answered:
        if bar := task_threshold(group.cell):
            text = _(
                "In {groups}, the model answers {shares} of {split} items correctly, not clearly above {bar}: the task "
                "counts as not solved"
            )
            add(text, [group], shares=share_text(group.cell.task_accuracy), bar=bar)
    unanswered = _(
        "In {groups}, {head} gives the antecedent more weight than every other candidate in {shares} of {split} items "
        "(chance {chance}); the model’s answers are not measured"
    )
    add(unanswered, [group for group in cases["unsolved"] if group.cell.task_accuracy is None])
    return "\n".join(lines)


def heads_title(
    scores: NDArray[np.float64], chance: float, untrained: float | None, language: str, evidence: Evidence
) -> str:
    """Return a title with the chosen head's candidate accuracy on the development split of one language.

    A second line names the best head of the language if its accuracy is higher.

    Args:
        scores: (L, H) candidate accuracies; NaN in layers without attention.
        chance: chance accuracy on these items.
        untrained: 95th percentile of candidate accuracy over untrained models; None if not measured.
        evidence: results of the run, with the chosen head and its p-value on the development split.
    """
    layer, head = evidence.head.layer, evidence.head.head
    share = float(scores[layer, head])
    bars = {"all_candidates": chance}
    if untrained is not None:
        bars["random_init_95"] = untrained
    highest = max(bars, key=bars.__getitem__)
    p = evidence.heads_on_development.p[layer][head] if evidence.heads_on_development else None
    may_be_chance = p is not None and evidence.protocol is not None and p >= evidence.protocol.alpha
    values = {"head": head_name(layer, head), "share": share_text(share), "spoken": language_name(language)}
    text = (
        _(
            "In {head}, the antecedent gets more weight than every other candidate in {share} of {spoken} "
            "development items, not clearly above {bar}"
        )
        if may_be_chance or share <= bars[highest]
        else _(
            "In {head}, the antecedent gets more weight than every other candidate in {share} of {spoken} "
            "development items; chance {chance}"
        )
    )
    lines = [text.format(**values, bar=threshold_text(highest, bars[highest]), chance=share_text(chance))]
    best_layer, best_head = (int(index) for index in np.unravel_index(np.nanargmax(scores), scores.shape))
    best = float(scores[best_layer, best_head])
    if best > share:
        lines.append(
            _("Higher on these items: {head}, {share}").format(
                head=head_name(best_layer, best_head), share=share_text(best)
            )
        )
    return "\n".join(lines)


def quad_title(cells: Sequence[QuadCell], language: str, kind: str, head: Head) -> str:
    """Return a title with the number of sentences of a quad (two cues, two candidate orders) that a head gets right."""
    right = sum(cell.antecedent_is_strongest() for cell in cells)
    if right == len(cells):
        text = _(
            "{group}: in all {count} sentences of this quad, {head} gives the antecedent more weight than every other "
            "candidate"
        )
    elif right:
        text = _(
            "{group}: in {right} of the {count} sentences of this quad, {head} gives the antecedent more weight than "
            "every other candidate"
        )
    else:
        text = _(
            "{group}: in none of the {count} sentences of this quad does {head} give the antecedent more weight than "
            "every other candidate"
        )
    group, named = group_label(language, kind), head_name(head.layer, head.head)
    return text.format(group=group, head=named, count=len(cells), right=right)


def attention_title(
    words: Sequence[str],
    weights: NDArray[np.floating],
    attending: Sequence[int],
    antecedents: CandidateWords,
    distractors: CandidateWords,
    head: Head,
) -> str:
    """Return a title that names the candidate or word with the most weight and its share of the attention row.

    If every antecedent has a smaller share, the title also names the antecedent with the largest share. If no share is
    at least one half, the title says that the attention is spread over several words. If two words or candidates have
    the largest share after rounding, the title names both; if more have it, the title names only the antecedent.

    Args:
        weights: (W,) attention weights on the words.
        attending: indices of the query words, such as those of the pronoun.
        antecedents, distractors: word indices of each correct candidate, and of each incorrect candidate.
    """
    roles = WordRoles(len(words), attending, antecedents, distractors)
    units = list(_attended_units(words, weights, roles, attending))
    heaviest = max(units, key=lambda unit: unit.weight)
    antecedent = max((unit for unit in units if unit.role == "antecedent"), key=lambda unit: unit.weight, default=None)
    values = {
        "word": _mention(words, attending),
        "head": head_name(head.layer, head.head),
        "attended": heaviest.name,
        "share": share_text(heaviest.weight),
    }
    if antecedent is not None:
        values |= {"antecedent": antecedent.name, "antecedent_share": share_text(antecedent.weight)}
    tied = [unit for unit in units if share_text(unit.weight) == values["share"]]
    if len(tied) > 1:
        return _tied_title(tied, antecedent).format(**values | {"attended": tied[0].name, "other": tied[1].name})
    spread = round(heaviest.weight, 2) < 0.5  # as the title shows it
    if antecedent is not None and heaviest.weight > antecedent.weight:
        text = (
            _(
                "In this sentence, “{word}” spreads its weight in {head}: “{attended}” gets most ({share}), and its "
                "antecedent “{antecedent}” gets {antecedent_share}"
            )
            if spread
            else _(
                "In this sentence, “{word}” gives {share} of its weight in {head} to “{attended}” and "
                "{antecedent_share} to its antecedent “{antecedent}”"
            )
        )
    elif spread:
        text = _(
            "In this sentence, “{word}” spreads its weight in {head}: nothing gets half of it, and “{attended}” gets "
            "most ({share})"
        )
    else:
        of_role = {
            "antecedent": _(
                "In this sentence, “{word}” gives {share} of its weight in {head} to its antecedent “{attended}”"
            ),
            "attending": _("In this sentence, “{word}” gives {share} of its weight in {head} to itself"),
        }
        text = of_role.get(
            heaviest.role, _("In this sentence, “{word}” gives {share} of its weight in {head} to “{attended}”")
        )
    return text.format(**values)


def _tied_title(tied: Sequence[_AttendedUnit], antecedent: _AttendedUnit | None) -> str:
    """Return the title, with placeholders, for an attention row in which several words tie for the largest share."""
    if len({unit.name for unit in tied}) == len(tied) == 2:
        if antecedent is None or antecedent in tied:
            return _(
                "In this sentence, “{word}” spreads its weight in {head}: “{attended}” and “{other}” get most "
                "({share} each)"
            )
        return _(
            "In this sentence, “{word}” spreads its weight in {head}: “{attended}” and “{other}” get most "
            "({share} each), and its antecedent “{antecedent}” gets {antecedent_share}"
        )
    if antecedent is None:
        return _(
            "In this sentence, “{word}” spreads its weight in {head}: no word stands out, and the largest share is "
            "{share}"
        )
    return _(
        "In this sentence, “{word}” spreads its weight in {head}: no word stands out, and its antecedent "
        "“{antecedent}” gets {antecedent_share}"
    )


@dataclass(frozen=True)
class _AttendedUnit:
    """Candidate or word of a sentence, with its share of an attention row.

    `role` is "antecedent" or "distractor" for a candidate, "attending" for the query words, otherwise "word".
    """

    name: str
    role: str
    weight: float


def _attended_units(
    words: Sequence[str], weights: NDArray[np.floating], roles: WordRoles, attending: Sequence[int]
) -> Iterator[_AttendedUnit]:
    for role, candidates in (("antecedent", roles.antecedents), ("distractor", roles.distractors)):
        for indices in candidates:
            yield _AttendedUnit(_mention(words, indices), role, float(weights[indices].sum()))
    in_candidates = {index for indices in (*roles.antecedents, *roles.distractors) for index in indices}
    yield _AttendedUnit(_mention(words, attending), "attending", float(weights[list(attending)].sum()))
    for index in range(len(words)):
        if index not in in_candidates and index not in attending:
            yield _AttendedUnit(_mention(words, [index]), "word", float(weights[index]))


def _mention(words: Sequence[str], indices: Sequence[int]) -> str:
    """Return the first contiguous words of a mention, shortened to fit a title."""
    first = [index for number, index in enumerate(indices) if index == indices[0] + number]
    text = ("" if is_chinese(words[first[0]]) else " ").join(words[index] for index in first)
    if _is_too_wide(text):
        while _is_too_wide(f"{text}…"):
            text = text[:-1].rstrip()
        text = f"{text}…"
    return text


def _is_too_wide(text: str) -> bool:
    return text_width(drawable_text(text), style.TEXT + 1, bold=True) > _WIDEST_MENTION


def _listed_shares(shares: Sequence[float | None]) -> str:
    """Return the shares as a list in a sentence, or as a single share if all are equal after rounding."""
    texts = [share_text(share) for share in shares]
    return texts[0] if len(set(texts)) == 1 else listed(texts)
