"""The three pictures of the page, drawn from the measurements."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from anaphora.base.translation import spoken_in
from anaphora.report.figures.bars import SharePoint, share_points_figure
from anaphora.report.figures.files import save_figure
from anaphora.report.figures.heads import HeadGrid, head_grids_figure
from anaphora.report.figures.maps import QuadCell, quad_figure
from experiments.pointing_heads.claims import Parts, accuracy, best_shortcut, floats, of_types
from experiments.pointing_heads.items import READINGS
from experiments.pointing_heads.phrases import Words

TYPES = ("gender", "number", "animacy", "selection", "role", "long")
PREFIX = "pointing_heads"


def draw_pictures(parts: Parts, words: Words, language: str, folder: Path) -> None:
    """Write the pictures in one language."""
    ending = "" if language == "en" else f"_{language}"
    draw = {"sentences": sentences, "grid": grids, "types": types}
    with spoken_in(language):
        for name, picture in draw.items():
            save_figure(picture(parts, words), folder / f"{PREFIX}_{name}{ending}", ["png"])


def sentences(parts: Parts, words: Words) -> Figure:
    """Draw the head's attention in two sentences of each language that differ only in the pronoun."""
    layer, head = parts["development-e5-en"]["ranked"][0]
    cells = [
        QuadCell(
            words=one["words"],
            weights=one["weights"],
            pronoun=one["pronoun"],
            antecedents=one["antecedents"],
            distractors=one["others"],
            label=label,
        )
        for language, label in zip(("en", "zh"), words.pair, strict=True)
        for one in parts[f"examples-{language}"]["sentences"]
    ]
    return quad_figure(cells, words.sentences_title.format(layer=layer, head=head))


def grids(parts: Parts, words: Words) -> Figure:
    """Draw the accuracies of all heads on the development sentences."""
    shown = []
    for name, title in zip(("e5-en", "e5-zh", "minilm-en"), words.grids, strict=True):
        part = parts[f"development-{name}"]
        (layer, head), second = part["ranked"][:2]
        scores = floats(part["grid"]) / 100
        best, other = (f"{one[0]}.{one[1]}: {100 * scores[tuple(one)]:.0f} %" for one in ((layer, head), second))
        shown.append(HeadGrid(title, words.heads.format(head=best, second=other), scores, (layer, head)))
    return head_grids_figure(shown, 0.5, words.heads_title, words.accuracy, words.axes)


def types(parts: Parts, words: Words) -> Figure:
    """Draw the head's accuracy by type of cue."""
    rows = []
    for name in TYPES:
        for reading in READINGS:
            part = parts[f"everyday-{reading.name}"]
            chosen = np.flatnonzero(of_types(part, (name,)))
            own = {"group": [part["group"][item] for item in chosen]}
            value, interval = accuracy(own, floats(part["right"])[chosen])
            low, high = (None, None) if interval is None else (interval[0] / 100, interval[1] / 100)
            rows.append(
                SharePoint(
                    label=words.types[name],
                    value=value / 100,
                    low=low,
                    high=high,
                    baselines={words.best: shortcut_of_type(parts, reading.language, name)},
                    measure=words.sets[reading.name],
                )
            )
    return share_points_figure(rows, words.types_title, words.accuracy)


def shortcut_of_type(parts: Parts, language: str, name: str) -> float:
    """Return the accuracy on a type of cue, from 0 to 1, of the shortcut that is best on all sentences."""
    part = parts[f"shortcuts-{language}"]
    right = floats(part["shortcuts"][best_shortcut(part)])
    items = next(parts[f"everyday-{one.name}"] for one in READINGS if one.language == language)
    return float(right[of_types(items, (name,))].mean())
