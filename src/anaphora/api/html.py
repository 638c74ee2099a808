"""HTML output for notebooks: tables of attention weights, coloured words and embedded pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from anaphora.report.numbers import format_signed


@dataclass(frozen=True)
class AttentionPage:
    """HTML page with attention maps or a report; a notebook displays the page below the cell that returns it.

    Attributes:
        path: path of the HTML file.
    """

    path: Path

    def open(self) -> None:
        """Open the page in the browser."""
        import webbrowser

        webbrowser.open(self.path.resolve().as_uri())

    def _repr_html_(self) -> str:
        page = escape(self.path.read_text(encoding="utf-8"))
        return f'<iframe srcdoc="{page}" sandbox="allow-scripts" style="width:100%;height:44rem;border:0"></iframe>'


_MAX_TABLE_WORDS = 24
"""Maximum number of rows and of columns in a table."""


def weight_table(
    words: Sequence[str], weights: NDArray[np.float32], title: str, rows: Sequence[str] | None = None
) -> str:
    """Return an HTML table of weights, (R, W), from 0 to 1.

    Rows and columns after the first `_MAX_TABLE_WORDS` are left out. `words` are the column headers and, unless `rows`
    is given, the row headers.
    """
    from anaphora.report.page.offline import weight_colours

    colours = weight_colours()
    columns = list(words)[:_MAX_TABLE_WORDS]
    lines = []
    for name, line in zip(columns if rows is None else rows, weights[:_MAX_TABLE_WORDS], strict=False):
        cells = []
        for weight in line[:_MAX_TABLE_WORDS]:
            shade = round(63 * min(1.0, float(weight)))
            style = f"background:{colours['ramp'][shade]};color:{colours['inks'][shade]};text-align:center"
            cells.append(f'<td style="{style}">{weight:.2f}</td>')
        lines.append(f"<tr><th scope='row'>{escape(name)}</th>{''.join(cells)}</tr>")
    head = "".join(f"<th scope='col'>{escape(word)}</th>" for word in columns)
    more = "" if len(words) <= _MAX_TABLE_WORDS else f" (the first {_MAX_TABLE_WORDS} of {len(words)} words)"
    return f"<table><caption>{escape(title + more)}</caption><tr><td></td>{head}</tr>{''.join(lines)}</table>"


def signed_words(words: Sequence[str], values: NDArray[np.float32], title: str) -> str:
    """Return words as HTML with a background coloured by value: orange if negative, otherwise blue.

    The intensity of the colour is relative to the largest absolute value.
    """
    most = max(float(np.abs(values).max(initial=0.0)), 1e-9)
    spans = []
    for word, value in zip(words, values, strict=True):
        share = round(100 * abs(float(value)) / most)
        colour = "#0072b2" if value >= 0 else "#d55e00"  # distinguishable for colour-blind readers
        style = f"background:color-mix(in srgb,{colour} {share // 2}%,transparent);border-bottom:3px solid {colour}"
        spans.append(f'<span style="{style};padding:0 .2em" title="{format_signed(value, 3)}">{escape(word)}</span>')
    return f"<p><b>{escape(title)}</b><br>{' '.join(spans)}</p>"
