"""Which figures a run or a sentence gets, and what their titles say: from records and evidence to this folder.

Where a title would else name a thing, it says what is seen, in one sentence computed from the data. A head is not
praised for what chance, untrained models or shortcuts reach too, and of one sentence only that sentence is spoken of.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.maps.words import word_weights
from anaphora.analysis.results.evidence import Evidence
from anaphora.analysis.results.scores import Cell, Head
from anaphora.analysis.scores.heads import HeadScores, mean_chance
from anaphora.data.example import Example, Span, overlapping
from anaphora.report.figures import style
from anaphora.report.figures.bars import SharePoint, share_points_figure
from anaphora.report.figures.fonts import drawable_text, is_chinese
from anaphora.report.figures.heads import alignment_figure
from anaphora.report.figures.maps import QuadCell, heat_map_figure, pronoun_row_figure
from anaphora.report.figures.sheet import CandidateWords, WordRoles, text_width
from anaphora.report.groups import Group, all_groups
from anaphora.report.headline import bar_text, bars_not_beaten, group_name, groups_by_case, share_text
from anaphora.report.numbers import format_short_percent
from anaphora.report.wording import group_label, head_name, label, language_name, listed, phrase

_WIDEST_MENTION = 1.6
"""Inches that a mention may take in a title."""


def sentence_figures(record: AttentionRecord, maps: NDArray[np.float32], head: Head) -> dict[str, Figure]:
    """The heat map of a head and the pronoun's row, by name.

    Args:
        record: the sentence.
        maps: (L, H, W, W) over its words, in the order of `word_weights`.
        head: which map.
    """
    return {"heat_map": sentence_heat_map(record, maps, head), "pronoun_row": sentence_pronoun_row(record, head)}


def sentence_heat_map(record: AttentionRecord, maps: NDArray[np.float32], head: Head) -> Figure:
    """The whole map of one head: maps are (L, H, W, W) over the sentence's words."""
    row = word_weights(record)
    pronoun, antecedents, distractors = word_roles(record.example, row.spans)
    weights = maps[head.layer, head.head]
    title = attention_title(row.words, weights[pronoun], [pronoun], antecedents, distractors, head)
    return heat_map_figure(row.words, weights, title, pronoun, antecedents, distractors)


def sentence_pronoun_row(record: AttentionRecord, head: Head) -> Figure:
    """The pronoun's row of one head."""
    row = word_weights(record)
    pronoun, antecedents, distractors = word_roles(record.example, row.spans)
    weights = row.weights[head.layer, head.head]
    title = attention_title(row.words, weights, [pronoun], antecedents, distractors, head)
    return pronoun_row_figure(row.words, weights, pronoun, antecedents, distractors, title)


def word_roles(example: Example, words: Sequence[Span]) -> tuple[int, CandidateWords, CandidateWords]:
    """Which words, given by their spans, are the pronoun, the antecedents and the other candidates."""
    pronoun = overlapping(words, example.pronoun)
    named = [[word for span in spans for word in overlapping(words, span)] for spans in example.candidates]
    antecedents = [words for index, words in enumerate(named) if index in example.antecedents]
    distractors = [words for index, words in enumerate(named) if index not in example.antecedents]
    return pronoun[0], antecedents, distractors


def quad_cells(records: Sequence[AttentionRecord], head: Head) -> list[QuadCell]:
    """A quad's items by cue and then by who comes first, with their rows of one head."""
    ordered = sorted(records, key=lambda record: (_cue(record.example), _order(record.example)))
    orders = sorted({_order(record.example) for record in records})
    return [_quad_cell(record, head, orders.index(_order(record.example)) + 1) for record in ordered]


def scores_figure(evidence: Evidence) -> Figure:
    """Task and candidate accuracy of every language and kind of cue, with what luck and shortcuts give."""
    points = []
    for group in all_groups(evidence.scores):
        cell = group.cell
        shortcut = cell.best_shortcut
        ticks = {phrase("measures", "chance"): cell.chance}
        ticks[phrase("figures", "best_shortcut")] = None if shortcut is None else shortcut.accuracy
        ticks[phrase("figures", "untrained_95")] = cell.baselines.get("random_init_95")
        for value, ends, measure in (
            (cell.task_accuracy, cell.intervals.task_accuracy, phrase("measures", "task_accuracy")),
            (cell.candidate_accuracy, cell.intervals.candidate_accuracy, phrase("figures", "candidate_of_head")),
        ):
            if value is not None:
                low, high = ends or (None, None)
                baselines = {name: tick for name, tick in ticks.items() if tick is not None}
                points.append(
                    SharePoint(label=group.label, value=value, low=low, high=high, baselines=baselines, measure=measure)
                )
    axis = phrase("figures", "scoreboard_axis", split=label("splits", evidence.split))
    return share_points_figure(points, scoreboard_title(evidence), axis)


def development_chance(development: HeadScores, languages: Collection[str]) -> dict[str, float]:
    """The mean share of candidates that are right on the development split, for each language that it holds."""
    spoken = np.array([example.language for example in development.examples], dtype=object)
    return {
        language: mean_chance(development.select(spoken == language))
        for language in languages
        if (spoken == language).any()
    }


def alignment_through_training(validations: Sequence[Mapping[str, float]], head: Head, chance: float) -> Figure | None:
    """Every head's candidate accuracy at each validation of the training; None where fewer than two were made."""
    named = [name for name in validations[0] if name.startswith("attention_candidate_accuracy/")] if validations else []
    if len(validations) < 2 or not named:
        return None
    positions = [tuple(int(part) for part in name.rsplit("/")[1].split("_")[1::2]) for name in named]
    layers, heads = (max(position[axis] for position in positions) + 1 for axis in (0, 1))
    scores = np.zeros((len(validations), layers, heads))
    for number, validation in enumerate(validations):
        for name, (layer, index) in zip(named, positions, strict=True):
            scores[number, layer, index] = validation[name]
    accuracy = [validation.get("validation/accuracy", float("nan")) for validation in validations]
    return alignment_figure(
        [int(validation["step"]) for validation in validations],
        scores,
        chance,
        (head.layer, head.head),
        None if np.isnan(accuracy).any() else accuracy,
        _alignment_title(scores[-1], head, chance),
    )


def _alignment_title(accuracies: NDArray[np.float64], head: Head, chance: float) -> str:
    """What the chosen head ends at, beside the best of the others; accuracies are (L, H), of the last validation."""
    chosen = accuracies[head.layer, head.head]
    values = {"accuracy": format_short_percent(chosen), "chance": format_short_percent(chance)}
    values["head"] = head_name(head.layer, head.head)
    others = np.delete(accuracies.ravel(), head.layer * accuracies.shape[1] + head.head)
    if not others.size:
        return phrase("figures", "alignment", **values)
    return phrase("figures", "alignment_beside", other=format_short_percent(others.max()), **values)


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
    bars = {"all_candidates": chance}
    if untrained is not None:
        bars["random_init_95"] = untrained
    highest = max(bars, key=bars.__getitem__)
    may_be_chance = (
        evidence.heads_on_development is not None
        and evidence.protocol is not None
        and evidence.heads_on_development.p[layer][head] >= evidence.protocol.alpha
    )
    values = {"head": head_name(layer, head), "share": share_text(share), "spoken": language_name(language)}
    if may_be_chance or share <= bars[highest]:
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


def _quad_cell(record: AttentionRecord, head: Head, order: int) -> QuadCell:
    row = word_weights(record)
    pronoun, antecedents, distractors = word_roles(record.example, row.spans)
    return QuadCell(
        words=row.words,
        weights=row.weights[head.layer, head.head],
        pronoun=pronoun,
        antecedents=antecedents,
        distractors=distractors,
        label=phrase("figures", "quad_cell", cue=_cue_as_written(record.example) or "?", order=order),
    )


def _cue(example: Example) -> str:
    return example.factors.get("cue", "")


def _cue_as_written(example: Example) -> str:
    """The cue as the text writes it, with an ellipsis where other words stand between its own."""
    words = [re.escape(word) if is_chinese(word) else rf"\b{re.escape(word)}\b" for word in _cue(example).split()]
    whole = re.search(r"\s*".join(words), example.text, re.IGNORECASE)
    if whole:
        return whole[0]
    parted = re.search(".*?".join(f"({word})" for word in words), example.text, re.IGNORECASE)
    if not parted:
        return _cue(example)
    written = parted[1]
    for before, word in itertools.pairwise(range(1, len(words) + 1)):
        between = example.text[parted.end(before) : parted.start(word)]
        written += (between if not between.strip() else " … ") + parted[word]
    return written


def _order(example: Example) -> str:
    return example.factors.get("order", "")


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
