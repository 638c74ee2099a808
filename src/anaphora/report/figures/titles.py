"""What a figure shows, in one sentence computed from its data: the title of figures that would else name a thing.

A head is not praised for what chance, untrained models or shortcuts reach too, and of one sentence only that sentence
is spoken of.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.evidence.schema.evidence import Evidence
from anaphora.analysis.evidence.schema.scores import Cell
from anaphora.analysis.scores.heads import Head
from anaphora.report.figures import style
from anaphora.report.figures.fonts import drawable_text, is_chinese
from anaphora.report.figures.maps import QuadCell
from anaphora.report.figures.sheet import CandidateWords, WordRoles, text_width
from anaphora.report.groups import Group
from anaphora.report.headline import bar_text, bars_not_beaten, group_name, groups_by_case, share_text
from anaphora.report.wording import group_label, head_name, label, language_name, listed, phrase

_WIDEST_MENTION = 1.6
"""Inches that a mention may take in a title."""


def scoreboard_title(evidence: Evidence) -> str:
    """How often the chosen head gives the antecedent most, a line for all groups of which the same can be said.

    Groups and cases are those of `headline_sentence`.
    """
    cases = groups_by_case(evidence)
    above = [*cases["points"], *cases["unmeasured"]]
    answered = [group for group in cases["unsolved"] if group.cell.task_accuracy is not None]
    unanswered = [group for group in cases["unsolved"] if group.cell.task_accuracy is None]
    lines = [_groups_line("scoreboard_above", above, evidence)] if above else []
    for group in cases["ordinary"]:
        bars = bars_not_beaten(group.cell)
        highest = max(bars, key=bars.__getitem__)
        lines.append(_groups_line("scoreboard_ordinary", [group], evidence, bar=bar_text(highest, bars[highest])))
    if answered:
        shares = _listed_shares([group.cell.task_accuracy for group in answered])
        lines.append(_groups_line("scoreboard_unsolved", answered, evidence, shares=shares))
    if unanswered:
        lines.append(_groups_line("scoreboard_no_answers", unanswered, evidence))
    return "\n".join(lines)


def heads_title(
    scores: NDArray[np.float64], chance: float, untrained: float | None, language: str, evidence: Evidence
) -> str:
    """How often the chosen head gives the antecedent most in one language on the development split.

    Args:
        scores: (L, H) candidate accuracy of every head there.
        chance: of these items.
        untrained: what 95 % of untrained models stay below, where it was measured.
        language: of the items.
        evidence: for the chosen head and its p on that split.
    """
    layer, head = evidence.head.layer, evidence.head.head
    share = float(scores[layer, head])
    bars = {"chance": chance}
    if untrained is not None:
        bars["random_init_95"] = untrained
    highest = max(bars, key=bars.__getitem__)
    may_be_luck = (
        evidence.heads_on_development is not None
        and evidence.protocol is not None
        and evidence.heads_on_development.p[layer][head] >= evidence.protocol.alpha
    )
    values = {"head": head_name(layer, head), "share": share_text(share), "spoken": language_name(language)}
    if may_be_luck or share <= bars[highest]:
        lines = [phrase("figures", "heads_ordinary", **values, bar=bar_text(highest, bars[highest]))]
    else:
        lines = [phrase("figures", "heads_above", **values, chance=share_text(chance))]
    best_layer, best_head = (int(place) for place in np.unravel_index(np.argmax(scores), scores.shape))
    best = float(scores[best_layer, best_head])
    if best > share:
        lines.append(phrase("figures", "heads_higher", head=head_name(best_layer, best_head), share=share_text(best)))
    return "\n".join(lines)


def quad_title(cells: Sequence[QuadCell], language: str, kind: str, head: Head) -> str:
    """In how many sentences of a quad the head gives the antecedent more weight than every other candidate."""
    right = sum(cell.antecedent_is_strongest() for cell in cells)
    name = "quad_all" if right == len(cells) else "quad_some" if right else "quad_none"
    group, named = group_label(language, kind), head_name(head.layer, head.head)
    return phrase("figures", name, group=group, head=named, count=len(cells), right=right)


def attention_title(
    words: Sequence[str],
    weights: NDArray[np.floating],
    attending: Sequence[int],
    antecedents: CandidateWords,
    distractors: CandidateWords,
    head: Head,
) -> str:
    """Which word or candidate gets most of a row, with its share; where none gets half, that the row is spread.

    Args:
        words: W words.
        weights: (W,), the row.
        attending: the words whose row it is.
        antecedents: the candidates that are right.
        distractors: the other candidates.
        head: whose row it is.
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
    spread = heaviest.weight < 0.5
    if antecedent is not None and heaviest.weight > antecedent.weight:
        name = "row_spread_other" if spread else "row_other"
        values |= {"antecedent": antecedent.name, "antecedent_share": share_text(antecedent.weight)}
    elif spread:
        name = "row_spread"
    else:
        name = {"antecedent": "row_antecedent", "attending": "row_itself"}.get(heaviest.role, "row_word")
    return phrase("figures", name, **values)


@dataclass(frozen=True)
class _AttendedUnit:
    """A candidate, or a word of none, with its share of a row."""

    name: str
    role: str
    weight: float


def _attended_units(
    words: Sequence[str], weights: NDArray[np.floating], roles: WordRoles, attending: Sequence[int]
) -> Iterator[_AttendedUnit]:
    for role, candidates in (("antecedent", roles.antecedents), ("distractor", roles.distractors)):
        for places in candidates:
            yield _AttendedUnit(_mention(words, places), role, float(weights[places].sum()))
    in_candidates = {place for places in (*roles.antecedents, *roles.distractors) for place in places}
    yield _AttendedUnit(_mention(words, attending), "attending", float(weights[list(attending)].sum()))
    for place in range(len(words)):
        if place not in in_candidates and place not in attending:
            yield _AttendedUnit(_mention(words, [place]), "word", float(weights[place]))


def _mention(words: Sequence[str], places: Sequence[int]) -> str:
    """The words of a mention where it stands first, shortened to what a title has room for."""
    first = [place for number, place in enumerate(places) if place == places[0] + number]
    text = ("" if is_chinese(words[first[0]]) else " ").join(words[place] for place in first)
    if _is_too_wide(text):
        while _is_too_wide(f"{text}…"):
            text = text[:-1].rstrip()
        text = f"{text}…"
    return text


def _is_too_wide(text: str) -> bool:
    return text_width(drawable_text(text), style.TEXT + 1, bold=True) > _WIDEST_MENTION


def _groups_line(name: str, groups: Sequence[Group[Cell]], evidence: Evidence, **values: str) -> str:
    """A line on some groups; the shares are the head's unless others are given."""
    of_cells = {
        "groups": listed([group_name(group) for group in groups]),
        "head": head_name(evidence.head.layer, evidence.head.head),
        "shares": _listed_shares([group.cell.candidate_accuracy for group in groups]),
        "chance": _listed_shares([group.cell.chance for group in groups]),
        "split": label("splits", evidence.split),
    }
    return phrase("figures", name, **(of_cells | values))


def _listed_shares(shares: Sequence[float | None]) -> str:
    """Shares in the order of their groups; one that all groups have, once."""
    texts = [share_text(share) for share in shares]
    return texts[0] if len(set(texts)) == 1 else listed(texts)
