"""Figures of a sentence, from the pronoun's attention rows, and figures of a run, from its results (`Evidence`)."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from anaphora.analysis.evidence.evidence import Evidence
from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.maps.words import word_roles, word_weights
from anaphora.analysis.results.scores import Head
from anaphora.base.translation import _
from anaphora.data.example import Example
from anaphora.report.figures.bars import SharePoint, share_points_figure
from anaphora.report.figures.fonts import is_chinese
from anaphora.report.figures.heads import alignment_figure
from anaphora.report.figures.maps import QuadCell, heat_map_figure, pronoun_row_figure
from anaphora.report.titles import alignment_title, attention_title, scoreboard_title
from anaphora.report.wording import all_groups, label, split_names


def sentence_figures(record: AttentionRecord, maps: NDArray[np.float32], head: Head) -> dict[str, Figure]:
    """Draw the attention map of one head (key "heat_map") and the pronoun's row of this map (key "pronoun_row").

    `maps` has the maps of all heads, (L, H, W, W), over words in the order of `word_weights`.
    """
    return {"heat_map": sentence_heat_map(record, maps, head), "pronoun_row": sentence_pronoun_row(record, head)}


def sentence_heat_map(record: AttentionRecord, maps: NDArray[np.float32], head: Head) -> Figure:
    """Draw the attention map of one head; `maps` has those of all heads, (L, H, W, W), over the sentence's words."""
    row = word_weights(record)
    pronoun, antecedents, distractors = word_roles(record.example, row.spans)
    weights = maps[head.layer, head.head]
    title = attention_title(row.words, weights[pronoun].mean(axis=0), pronoun, antecedents, distractors, head)
    return heat_map_figure(row.words, weights, title, pronoun, antecedents, distractors)


def sentence_pronoun_row(record: AttentionRecord, head: Head) -> Figure:
    """Draw the pronoun's row of the attention map of one head."""
    row = word_weights(record)
    pronoun, antecedents, distractors = word_roles(record.example, row.spans)
    weights = row.weights[head.layer, head.head]
    title = attention_title(row.words, weights, pronoun, antecedents, distractors, head)
    return pronoun_row_figure(row.words, weights, pronoun, antecedents, distractors, title)


def quad_cells(records: Sequence[AttentionRecord], head: Head) -> list[QuadCell]:
    """Return the sentences of a quad with the pronoun's attention in one head, by cue and then candidate order."""
    ordered = sorted(records, key=lambda record: (_cue(record.example), _order(record.example)))
    orders = sorted({_order(record.example) for record in records})
    return [_quad_cell(record, head, orders.index(_order(record.example)) + 1) for record in ordered]


def scores_figure(evidence: Evidence) -> Figure:
    """Draw task accuracy and candidate accuracy, with chance and baselines, of each language and cue category."""
    points = []
    for group in all_groups(evidence.scores):
        cell = group.cell
        shortcut = cell.best_shortcut
        ticks = {_("chance"): cell.chance}
        ticks[_("best shortcut")] = None if shortcut is None else shortcut.accuracy
        ticks[_("untrained, 95th percentile")] = cell.baselines.get("random_init_95")
        for value, ends, measure in (
            (cell.task_accuracy, cell.intervals.task_accuracy, _("task accuracy")),
            (cell.candidate_accuracy, cell.intervals.candidate_accuracy, _("candidate accuracy of the head")),
        ):
            if value is not None:
                low, high = ends or (None, None)
                baselines = {name: tick for name, tick in ticks.items() if tick is not None}
                points.append(
                    SharePoint(label=group.label, value=value, low=low, high=high, baselines=baselines, measure=measure)
                )
    axis = _("accuracy on the {split} split (%), with 95 % intervals over templates").format(
        split=label(split_names(), evidence.split)
    )
    return share_points_figure(points, scoreboard_title(evidence), axis)


def alignment_through_training(validations: Sequence[Mapping[str, float]], head: Head, chance: float) -> Figure | None:
    """Draw the candidate accuracy of every head at each validation during training.

    Args:
        validations: validation records of `training.json`.
        chance: chance accuracy on the development split, 0 to 1.

    Returns:
        The figure; None if there are fewer than two validations, or if the records have no candidate accuracy.
    """
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
        alignment_title(scores[-1], head, chance),
    )


def _quad_cell(record: AttentionRecord, head: Head, order: int) -> QuadCell:
    row = word_weights(record)
    pronoun, antecedents, distractors = word_roles(record.example, row.spans)
    cue = _cue_as_written(record.example)
    return QuadCell(
        words=row.words,
        weights=row.weights[head.layer, head.head],
        pronoun=pronoun,
        antecedents=antecedents,
        distractors=distractors,
        label=(_("cue: {cue} · order {order}") if cue else _("order {order}")).format(cue=cue, order=order),
        text=record.example.text,
    )


def _cue(example: Example) -> str:
    return example.factors.get("cue", "")


def _cue_as_written(example: Example) -> str:
    """Return the cue (the words that decide) as written in the text, with an ellipsis for other words between them.

    If the text does not contain the cue, return it as stored in the example; if the example has no cue, return "".
    """
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
    return example.factors.get("order", "") or example.words(0).lower()
