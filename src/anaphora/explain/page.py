"""Walk-through as an offline HTML page, with matrices drawn to scale and the current row framed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from anaphora.base.locale.translation import _, spoken_in
from anaphora.explain.walk import Matrix, Walkthrough
from anaphora.report.page.offline import diverging_colours, read_asset, script_json, weight_colours, write_page

_TEMPLATES = Path(__file__).with_name("templates")


def write_walkthrough_page(path: Path, walk: Walkthrough, digits: int) -> None:
    """Write a walk-through as a self-contained HTML file.

    Args:
        path: path of the file.
        walk: the walk-through.
        digits: number of decimals shown.
    """
    with spoken_in(walk.language):
        words = _page_words()
    plain = walk.plain()
    for step, plain_step in zip(walk.steps, plain["steps"], strict=True):
        parts = zip(step.parts, plain_step["parts"], strict=True)
        plain_step["parts"] = [
            part if isinstance(part, str) else _script_matrix(part, entry, digits) for part, entry in parts
        ]
    page_data = {"words": words, "digits": digits, "share": weight_colours(), "either": diverging_colours()}
    write_page(
        path, "explain.html.j2", _TEMPLATES,
        walk=walk,
        words=words,
        data=script_json({**plain, **page_data}),
        own_style=read_asset("explain.css", _TEMPLATES),
        script=read_asset("explain.js", _TEMPLATES),
    )  # fmt: skip


def _page_words() -> dict[str, str]:
    """Return the phrases of the page and its script by name."""
    return {
        "colon": _(": "),
        "comma": _(", "),
        "back": _("Back"),
        "next": _("Next"),
        "steps": _("Steps"),
        "followed": _("Current row"),
        "keys": _(
            "Arrow keys: left and right go through the steps, up and down choose the current row. Click or touch a "
            "cell to see how it is computed, or go to a matrix with Tab and move in it with the arrow keys; Enter "
            "makes its row the current one."
        ),
        "slip": _("A slip in the published calculation"),
        "published": _("Published"),
        "right": _("Right"),
        "script": _("The steps need JavaScript, which is off in this browser."),
        "highest": _("Largest of the current row"),
        "negative": _("below zero"),
        "positive": _("above zero"),
        "scaled": _("to the largest number, below the matrix's name"),
        "scaled_each": _("each matrix to its own largest number, below its name"),
        "share": _("share of the row"),
    }


def _script_matrix(part: Matrix, entry: dict[str, Any], digits: int) -> dict[str, Any]:
    """Return a matrix as the page's script expects it, with values rounded to slightly more than the digits shown."""
    figures = max(7, digits + 3)
    rounded = [float(f"{value:.{figures}g}") for value in part.values.ravel().tolist()]
    values = np.array(rounded).reshape(part.values.shape).tolist()
    return {**entry, "values": values, "sliced": part.values.ndim == 3}
