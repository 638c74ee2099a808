"""Output of walk-throughs of attention: text for the terminal, or an HTML page without external files.

The terminal shows a short summary, or all steps with their matrices, which the HTML page draws as grids. The current
row, the attention row of one query token, is highlighted.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from anaphora.base.console import wrapped
from anaphora.base.language import is_right_to_left
from anaphora.base.translation import N_, _, spoken_in
from anaphora.explain.walk import Matrix, Step, Walkthrough
from anaphora.report.page.offline import diverging_colours, read_asset, script_json, weight_colours, write_page
from anaphora.report.wording import translated

_FOLLOWED_STYLE = "bold cyan"
_MUTED_STYLE = "dim"
_MAX_ROWS = 14
"""Maximum number of rows of a matrix whose rows are not tokens, such as trained weights; "⋮" replaces the others."""
_MAX_FEATURES = 8
"""Maximum number of feature columns; "…" replaces the others."""
_MAX_WEIGHTS = 5
"""Maximum number of weights or answers in the summary."""
_BAR_WIDTH = 30
"""Width in characters of a bar for a weight of 1."""
_TEMPLATES = Path(__file__).with_name("templates")


def print_summary(console: Console, walk: Walkthrough, digits: int = 4) -> None:
    """Print the heading, the model's answer if any, and the words or candidates with the largest attention weights.

    The weights are averaged over the rows of the query word's tokens; at most `_MAX_WEIGHTS` are printed. If there is
    an answer, the last line states whether it is read from the weights.
    """
    _print_heading(console, walk, walk.notes)
    answers = [step for step in walk.steps if step.name == "answer"]
    for step in answers:
        _print_bars(console, step.title, step.result.columns, step.result.of(0)[0], digits)
    weights = walk.step("weights").result
    word, rows = walk.word_rows or (walk.queries[walk.row], (walk.row,))
    title = _("What “{word}” attends to").format(word=word)
    row = np.mean([weights.of(each)[each] for each in rows], axis=0)
    # The weight on a word or candidate is the sum over its subwords.
    units = walk.units or tuple((name, (column,)) for column, name in enumerate(weights.columns))
    sums = np.array([row[list(columns)].sum() for _, columns in units])
    _print_bars(console, title, [name for name, _ in units], sums, digits)
    console.print()
    if answers:
        points = (
            _("This model’s answer is read from these weights.")
            if walk.is_read_out
            else _("The weights show what this head attends to, not that the answer comes from there.")
        )
        console.print(Text(points, style=_MUTED_STYLE))


def print_forms(console: Console) -> None:
    """Print the settings with which the command `explain` shows all steps."""
    console.print(Text(_("All steps: form=terminal, or form=page to step through them."), style=_MUTED_STYLE))


def _print_bars(console: Console, title: str, names: Sequence[str], shares: NDArray[np.float64], digits: int) -> None:
    table = Table.grid(padding=(0, 2, 0, 0))
    for position in np.argsort(-shares, kind="stable")[:_MAX_WEIGHTS]:
        share = float(shares[position])
        name = " ".join(names[position].split()) or names[position]  # a name may have a line break
        table.add_row(Text(name), f"{share:.{digits}f}", Text("█" * round(_BAR_WIDTH * share), style=_FOLLOWED_STYLE))
    console.print()
    console.print(Text(title, style="bold"))
    console.print(table)


def print_walkthrough(console: Console, walk: Walkthrough, digits: int) -> None:
    """Print all steps of a walk-through, with matrix entries rounded to `digits` decimals."""
    _print_heading(console, walk, walk.notes + walk.step_notes)
    current_row = Text(_("Current row") + _(": "), style=_MUTED_STYLE)
    console.print(current_row.append(walk.queries[walk.row], style=_FOLLOWED_STYLE))
    for number, step in enumerate(walk.steps, start=1):
        console.print()
        console.print(Rule(Text(f"{number}  {step.title}", style="bold"), align="left", style=_MUTED_STYLE))
        console.print(Text(wrapped(step.text, console.width)))
        console.print(*_step_lines(step, walk.row, digits, console.width), sep="\n")
        for slip in step.slips:
            correction = Text(f"{_('Published')}{_(': ')}{slip.published}\n{_('Right')}{_(': ')}{slip.right}")
            title = _("A slip in the published calculation")
            console.print(Panel(correction, title=title, title_align="left", border_style="yellow", expand=False))


def _print_heading(console: Console, walk: Walkthrough, notes: Sequence[str]) -> None:
    console.print(Text(wrapped(walk.title, console.width), style="bold"))
    for paragraph in (walk.about, *notes):
        if paragraph:
            console.print(Text(wrapped(paragraph, console.width)))


def calculated_number(value: float, decimals: int) -> str:
    """Format a number with fixed decimals, or in scientific notation if it is huge or would be rounded to 0."""
    if value == 0:
        return "0"
    if _is_extreme(value, decimals):
        mantissa, _, power = f"{value:.0e}".partition("e")
        return f"{mantissa}e{int(power)}".replace("-", "−")
    return f"{value:.{decimals}f}".replace("-", "−")


def _is_extreme(value: float, decimals: int) -> bool:
    return abs(value) < 0.5 * 10.0**-decimals or abs(value) >= 1e9


def decimals_needed(values: NDArray[np.float64], most: int) -> int:
    """Return how many decimals, at most `most`, show all entries unrounded, except those in scientific notation."""
    plain = [float(value) for value in values.flat if value and not _is_extreme(float(value), most)]
    for decimals in range(most):
        if all(abs(value - round(value, decimals)) <= 1e-9 * max(1.0, abs(value)) for value in plain):
            return decimals
    return most


def _step_lines(step: Step, row: int, digits: int, width: int) -> list[RenderableType]:
    """Arrange the matrices and operators of a step side by side, in as many lines as the width requires."""
    lines: list[RenderableType] = []
    cells: list[RenderableType] = []
    filled = 0
    items: list[tuple[RenderableType, int]] = []
    wide = Console(width=10 * width, file=io.StringIO())
    for number, part in enumerate(step.parts):
        if isinstance(part, str):
            items.append((Text(f"\n{part}", style=_MUTED_STYLE), len(part) + 3))
        else:
            table = _matrix_table(part, row, digits, min(width - 2, 100), number in (0, len(step.parts) - 1))
            items.append((table, wide.measure(table).maximum + 3))
    for item, item_width in items:
        if cells and filled + item_width > width:
            lines.append(_side_by_side(cells))
            cells, filled = [], 0
        cells.append(item)
        filled += item_width
    return [*lines, _side_by_side(cells)]


def _side_by_side(cells: Sequence[RenderableType]) -> Table:
    grid = Table.grid(padding=(0, 3, 0, 0))
    for _cell in cells:
        grid.add_column(vertical="middle", no_wrap=True)
    grid.add_row(*cells)
    return grid


def _matrix_table(part: Matrix, row: int, digits: int, width: int, labelled: bool) -> RenderableType:
    values = part.of(row)
    decimals = decimals_needed(values, digits)
    rows, columns = values.shape
    has_labels = labelled or not part.followed
    kept_rows = _visible_indices(rows, rows if part.axes[0] == "tokens" else _MAX_ROWS)
    widest = max(len(calculated_number(float(value), decimals)) for value in values.flat) + 2
    fit = max(2, (width - 16) // max(widest, 4))
    kept_columns = _visible_indices(columns, min(fit, _MAX_FEATURES) if part.axes[1] == "features" else fit)
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, show_edge=False, header_style=_MUTED_STYLE)
    if has_labels:
        table.add_column("", no_wrap=True, max_width=14)
    for column in kept_columns:
        label = "…" if column is None else part.columns[column]
        table.add_column(Text(label), justify="right", no_wrap=True)
    for number in kept_rows:
        if number is None:
            table.add_row(*["⋮"] * (len(kept_columns) + has_labels), style=_MUTED_STYLE)
            continue
        numbers = [
            "…" if column is None else calculated_number(float(values[number, column]), decimals)
            for column in kept_columns
        ]
        row_label = [Text(part.rows[number])] if has_labels else []
        table.add_row(*row_label, *numbers, style=_FOLLOWED_STYLE if part.followed and number == row else "")
    return Group(Text(f"{part.name}  {rows} × {columns}", style="italic"), table)


def _visible_indices(count: int, most: int) -> list[int | None]:
    """Return the indices of the rows or columns to show, given that at most `most` of `count` fit.

    If not all fit, the list ends with None, in place of the omitted rows or columns, and then the last index.
    """
    if count <= most:
        return list(range(count))
    return [*range(max(1, most - 2)), None, count - 1]


def write_walkthrough_page(path: Path, walk: Walkthrough, digits: int) -> None:
    """Write a walk-through as an HTML page without external files, which shows numbers with `digits` decimals."""
    with spoken_in(walk.language):
        words = _page_words()
    plain = walk.plain()
    for step, plain_step in zip(walk.steps, plain["steps"], strict=True):
        parts = zip(step.parts, plain_step["parts"], strict=True)
        plain_step["parts"] = [
            part if isinstance(part, str) else _script_matrix(part, entry, digits) for part, entry in parts
        ]
    page_data = {"words": words, "digits": digits, "share": weight_colours(), "either": diverging_colours()}
    page_data["direction"] = "rtl" if is_right_to_left(walk.queries) else "ltr"
    write_page(
        path, "explain.html.j2", _TEMPLATES,
        walk=walk,
        words=words,
        data=script_json({**plain, **page_data}),
        own_style=read_asset("explain.css", _TEMPLATES),
        script=read_asset("explain.js", _TEMPLATES),
    )  # fmt: skip


_page_words = translated(
    colon=N_(": "),
    comma=N_(", "),
    back=N_("Back"),
    next=N_("Next"),
    steps=N_("Steps"),
    followed=N_("Current row"),
    keys=N_(
        "Arrow keys: left and right go through the steps, up and down choose the current row. Click or touch a "
        "cell to see how it is computed, or go to a matrix with Tab and move in it with the arrow keys; Enter "
        "makes its row the current one."
    ),
    slip=N_("A slip in the published calculation"),
    published=N_("Published"),
    right=N_("Right"),
    script=N_("The steps need JavaScript, which is off in this browser."),
    highest=N_("Largest of the current row"),
    negative=N_("below zero"),
    positive=N_("above zero"),
    scaled=N_("to the largest number, below the matrix’s name"),
    scaled_each=N_("each matrix to its own largest number, below its name"),
    share=N_("share of the row"),
)


def _script_matrix(part: Matrix, entry: dict[str, Any], digits: int) -> dict[str, Any]:
    """Return the JSON entry of a matrix with values rounded to slightly more digits than the page shows."""
    figures = max(7, digits + 3)
    rounded = [float(f"{value:.{figures}g}") for value in part.values.ravel().tolist()]
    values = np.array(rounded).reshape(part.values.shape).tolist()
    return {**entry, "values": values, "sliced": part.values.ndim == 3}
