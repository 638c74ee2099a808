"""A walk-through as one offline page: matrices drawn to scale, the row in hand framed, steps forward and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from anaphora.explain.phrases import Phrases
from anaphora.explain.walk import Matrix, Walk
from anaphora.files import write_text
from anaphora.report.offline import (
    environment,
    font_mark,
    own_file,
    ramp,
    script_json,
    two_sided_ramp,
    with_fonts,
)

_TEMPLATES = Path(__file__).with_name("templates")


def write_page(path: Path, walk: Walk, digits: int) -> None:
    """Write a walk-through as one HTML file that needs nothing else."""
    words = Phrases(walk.language).section("words")
    plain = walk.plain()
    for step, told in zip(walk.steps, plain["steps"], strict=True):
        parts = zip(step.parts, told["parts"], strict=True)
        told["parts"] = [part if isinstance(part, str) else _short(part, entry, digits) for part, entry in parts]
    html = environment(_TEMPLATES).get_template("explain.html.j2").render(
        walk=walk,
        words=words,
        data=script_json({**plain, "words": words, "digits": digits, "share": ramp(), "either": two_sided_ramp()}),
        style=own_file("report.css"),
        own_style=own_file("explain.css", _TEMPLATES),
        script=own_file("explain.js", _TEMPLATES),
        font_mark=font_mark(),
    )  # fmt: skip
    # Latin letters are on every machine: a page without Chinese carries no font.
    chinese = [character for character in set(html) if ord(character) >= 0x2E80]
    write_text(path, with_fonts(html, chinese, (400, 700) if chinese else ()))


def _short(part: Matrix, entry: dict[str, Any], digits: int) -> dict[str, Any]:
    """A matrix as the page's script reads it, with as many figures as it can show."""
    figures = max(7, digits + 3)
    rounded = [float(f"{value:.{figures}g}") for value in part.values.ravel().tolist()]
    shaped = np.array(rounded).reshape(part.values.shape).tolist()
    return {**entry, "values": shaped, "sliced": part.values.ndim == 3}
