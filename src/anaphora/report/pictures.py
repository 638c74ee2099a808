"""Which pictures a run or a sentence gets: from records and scores to the figures of `figures`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from anaphora.analysis.record import AttentionRecord
from anaphora.analysis.scores import Head, HeadScores, is_main, macro_weights, quads_of
from anaphora.analysis.words import WordRow, word_weights
from anaphora.data.example import Example, Span
from anaphora.report import figures
from anaphora.report.figures import Candidates, Dot, QuadCell
from anaphora.report.tables import LANGUAGES
from anaphora.report.write import save

KINDS = {"set": "set cues", "role": "role cues"}


def sentence_pictures(
    record: AttentionRecord, maps: NDArray[np.float32], head: Head, folder: Path, formats: Sequence[str]
) -> list[Path]:
    """The heat map of a head and the pronoun's row, as files in a folder.

    Args:
        record: the sentence.
        maps: (L, H, W, W) over its words, in the order of `word_weights`.
        head: which map.
    """
    drawn = {"heat_map": map_picture(record, maps, head), "pronoun_row": row_picture(record, head)}
    return [path for name, figure in drawn.items() for path in save(figure, folder / name, formats)]


def map_picture(record: AttentionRecord, maps: NDArray[np.float32], head: Head) -> Figure:
    """The whole map of one head: maps are (L, H, W, W) over the sentence's words."""
    row = word_weights(record)
    title = f"Attention, layer {head.layer} head {head.head}"
    return figures.heat_map(row.words, maps[head.layer, head.head], title, *roles(record.example, row))


def row_picture(record: AttentionRecord, head: Head) -> Figure:
    """The pronoun's row of one head."""
    row = word_weights(record)
    pronoun, antecedents, distractors = roles(record.example, row)
    title = f"What “{row.words[pronoun]}” attends to, layer {head.layer} head {head.head}"
    weights = row.weights[head.layer, head.head]
    return figures.pronoun_row(row.words, weights, pronoun, antecedents, distractors, title)


def right_and_wrong(measured: HeadScores, head: Head, language: str) -> dict[str, int]:
    """The first main item of a language where the head points at the antecedent, and the first where it does not."""
    found: dict[str, int] = {}
    main = is_main(measured.examples)
    for item, example in enumerate(measured.examples):
        if main[item] and example.language == language:
            right = measured.candidate_accuracy[item, head.layer, head.head] > 0.5
            found.setdefault("right" if right else "wrong", item)
    return found


def roles(example: Example, row: WordRow) -> tuple[int, Candidates, Candidates]:
    """Which words are the pronoun, the antecedents and the other candidates."""
    pronoun = _words_of(row.spans, example.pronoun)
    named = [[place for span in spans for place in _words_of(row.spans, span)] for spans in example.candidates]
    antecedents = [words for index, words in enumerate(named) if index in example.antecedents]
    distractors = [words for index, words in enumerate(named) if index not in example.antecedents]
    return pronoun[0], antecedents, distractors


def quad_picture(records: Sequence[AttentionRecord], head: Head) -> Figure:
    """A block's cells side by side: a row for each cue, a column for each order."""
    return figures.quad(
        quad_cells(records, head),
        f"One block, layer {head.layer} head {head.head}: each cue picks another candidate, in both orders",
    )


def quad_cells(records: Sequence[AttentionRecord], head: Head) -> list[QuadCell]:
    """A block's items in the order of a quad, by cue and then by who comes first, with their rows of one head."""
    ordered = sorted(records, key=lambda record: (_reading(record.example), _order(record.example)))
    orders = sorted({_order(record.example) for record in records})
    return [_quad_cell(record, head, orders.index(_order(record.example)) + 1) for record in ordered]


def example_quad(measured: HeadScores, language: str, kind: str) -> list[int]:
    """The items of one block of two cues by two orders: the first of a language and kind of cue, not the prettiest."""
    quads = quads_of(measured.examples)
    main = is_main(measured.examples)
    for item, example in enumerate(measured.examples):
        alone = example.factors.get("pronouns", "1") == "1"
        if (
            quads[item]
            and main[item]
            and alone
            and example.language == language
            and example.factors.get("kind") == kind
        ):
            return [int(measured.kept[other]) for other, name in enumerate(quads) if name == quads[item]]
    return []


def scoreboard(metrics: dict[str, Any]) -> Figure:
    """Task and candidate accuracy of every language and kind of cue, with what luck and shortcuts give."""
    dots = []
    for language, whole in metrics["languages"].items():
        cells = {"": whole, **{name: whole[name] for name in KINDS if name in whole}}
        for kind, cell in cells.items():
            label = f"{LANGUAGES.get(language, language)}, {KINDS[kind]}" if kind else LANGUAGES.get(language, language)
            ticks = {"chance": cell["chance"]}
            shortcuts = {
                name: value for name, value in cell.get("baselines", {}).items() if not name.startswith("random")
            }
            if shortcuts:
                ticks["best shortcut"] = max(value for value in shortcuts.values() if value is not None)
            untrained = cell.get("baselines", {}).get("random_init_95")
            if untrained is not None:
                ticks["untrained, 95th percentile"] = untrained
            for measure, name in (
                ("task_accuracy", "task accuracy"),
                ("candidate_accuracy", "candidate accuracy of the head"),
            ):
                if cell.get(measure) is not None:
                    low, high = cell["intervals"].get(measure) or (None, None)
                    dots.append(
                        Dot(label=label, value=cell[measure], low=low, high=high, baselines=ticks, measure=name)
                    )
    return figures.strata_bars(dots, title=f"{metrics['split']} split, 95 % intervals over templates", label="accuracy")


def grid(scores: HeadScores, language: str, head: Head, split: str) -> Figure:
    """The layer x head grid of candidate accuracy in one language, every cue type counting the same."""
    chosen = scores.select(np.array([one.language == language for one in scores.examples]))
    title = f"{LANGUAGES.get(language, language)}: does the pronoun's strongest candidate match? ({split} split)"
    return figures.head_grid(head_accuracy(chosen), mean_chance(chosen), (head.layer, head.head), title)


def head_accuracy(scores: HeadScores) -> NDArray[np.float64]:
    """Every head's candidate accuracy on the main items, (L, H), every cue type counting the same."""
    main = scores.select(is_main(scores.examples))
    accuracy: NDArray[np.float64] = np.einsum("n,nlh->lh", macro_weights(main.examples), main.candidate_accuracy)
    return accuracy


def emergence(validations: Sequence[dict[str, float]], head: Head, chance: float) -> Figure | None:
    """Every head's candidate accuracy at each validation of the training; None where fewer than two were made."""
    named = [name for name in validations[0] if name.startswith("attention_pointing/")] if validations else []
    if len(validations) < 2 or not named:
        return None
    places = [tuple(int(part) for part in name.rsplit("/")[1].split("_")[1::2]) for name in named]
    layers, heads = (max(place[axis] for place in places) + 1 for axis in (0, 1))
    scores = np.zeros((len(validations), layers, heads))
    for number, one in enumerate(validations):
        for name, (layer, place) in zip(named, places, strict=True):
            scores[number, layer, place] = one[name]
    accuracy = [one.get("validation/accuracy", float("nan")) for one in validations]
    return figures.alignment_through_training(
        [int(one["step"]) for one in validations],
        scores,
        chance,
        (head.layer, head.head),
        None if np.isnan(accuracy).any() else accuracy,
        "Alignment through training (development split, both languages)",
    )


def _quad_cell(record: AttentionRecord, head: Head, order: int) -> QuadCell:
    row = word_weights(record)
    pronoun, antecedents, distractors = roles(record.example, row)
    return QuadCell(
        words=row.words,
        weights=row.weights[head.layer, head.head],
        pronoun=pronoun,
        antecedents=antecedents,
        distractors=distractors,
        label=f"cue: {_reading(record.example) or '?'} · order {order}",
    )


def _reading(example: Example) -> str:
    return example.factors.get("cue", "")


def _order(example: Example) -> str:
    return example.factors.get("order", "")


def _words_of(spans: Sequence[Span], asked: Span) -> list[int]:
    start, end = asked
    return [place for place, (left, right) in enumerate(spans) if left < end and start < right]


def mean_chance(scores: HeadScores) -> float:
    """The mean share of candidates that are right, over the main items, every cue type counting the same."""
    chosen = scores.select(is_main(scores.examples))
    return float(macro_weights(chosen.examples) @ (chosen.gold.sum(axis=1) / chosen.present.sum(axis=1)))
