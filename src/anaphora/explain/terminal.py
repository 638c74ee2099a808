"""A walk-through in the terminal: each step with its matrices, the row in hand in bold; or its outcome alone."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from anaphora.explain.phrases import Phrases
from anaphora.explain.walk import Matrix, Slip, Step, Walk

_IN_HAND = "bold cyan"
_QUIET = "dim"
_MOST_ROWS = 14
"""Rows of a long matrix that is no list of tokens, such as trained weights: the rest is left out with a sign."""
_MOST_FEATURES = 8
"""Columns of a wide matrix of features, likewise."""


_MOST_WEIGHTS = 5
"""Entries of a row of shares that the short form has."""
_BAR = 30
"""Characters of a bar for the share 1."""


def show_short(console: Console, walk: Walk, digits: int) -> None:
    """Print the model's answer, if it was asked, and the heaviest weights of the row in hand."""
    words = Phrases(walk.language)
    _head(console, walk)
    answers = [step for step in walk.steps if step.name == "answer"]
    for step in answers:
        _bars(console, step.title, step.result.columns, step.result.of(0)[0], digits)
    weights = walk.step("weights").result
    title = words("words", "attends", word=walk.tokens[walk.row])
    _bars(console, title, weights.columns, weights.of(walk.row)[walk.row], digits)
    console.print()
    for name in (*["points"] * len(answers), "more"):
        console.print(Text(words("words", name), style=_QUIET))


def _bars(console: Console, title: str, names: Sequence[str], shares: NDArray[np.float64], digits: int) -> None:
    table = Table.grid(padding=(0, 2, 0, 0))
    for place in np.argsort(-shares, kind="stable")[:_MOST_WEIGHTS]:
        share = float(shares[place])
        table.add_row(Text(names[place]), f"{share:.{digits}f}", Text("█" * round(_BAR * share), style=_IN_HAND))
    console.print()
    console.print(Text(title, style="bold"))
    console.print(table)


def show(console: Console, walk: Walk, digits: int) -> None:
    """Print all steps, one below the other."""
    words = Phrases(walk.language)
    _head(console, walk)
    in_hand = Text(words("words", "followed") + words("words", "colon"), style=_QUIET)
    console.print(in_hand.append(walk.tokens[walk.row], style=_IN_HAND))
    for number, step in enumerate(walk.steps, start=1):
        console.print()
        console.print(Rule(Text(f"{number}  {step.title}", style="bold"), align="left", style=_QUIET))
        console.print(Text(step.text))
        console.print(*_line(step, walk.row, digits, console.width), sep="\n")
        for slip in step.slips:
            console.print(_slip(slip, words))


def _head(console: Console, walk: Walk) -> None:
    console.print(Text(walk.title, style="bold"))
    for told in (walk.about, *walk.notes):
        if told:
            console.print(Text(told))


def formatted(value: float, places: int) -> str:
    """A number with so many digits behind the point; a tiny or huge one as a power of ten, never as a plain 0."""
    if value == 0:
        return "0"
    if _is_extreme(value, places):
        mantissa, _, power = f"{value:.0e}".partition("e")
        return f"{mantissa}e{int(power)}".replace("-", "−")
    return f"{value:.{places}f}".replace("-", "−")


def _is_extreme(value: float, places: int) -> bool:
    return abs(value) < 0.5 * 10.0**-places or abs(value) >= 1e9


def places_of(values: NDArray[np.float64], most: int) -> int:
    """How many digits behind the point the numbers of a matrix need, the same for all of them."""
    plain = [float(value) for value in values.flat if value and not _is_extreme(float(value), most)]
    for places in range(most):
        if all(abs(value - round(value, places)) <= 1e-9 * max(1.0, abs(value)) for value in plain):
            return places
    return most


def _line(step: Step, row: int, digits: int, width: int) -> list[RenderableType]:
    """The parts of a step side by side, in as many lines as the width asks for."""
    lines: list[RenderableType] = []
    cells: list[RenderableType] = []
    taken = 0
    pieces: list[tuple[RenderableType, int]] = []
    for place, part in enumerate(step.parts):
        if isinstance(part, str):
            pieces.append((Text(f"\n{part}", style=_QUIET), len(part) + 3))
        else:
            table = _table(part, row, digits, min(width - 2, 100), place == 0 or place == len(step.parts) - 1)
            pieces.append((table, _measure(table, width) + 3))
    for piece, wide in pieces:
        if cells and taken + wide > width:
            lines.append(_beside(cells))
            cells, taken = [], 0
        cells.append(piece)
        taken += wide
    return [*lines, _beside(cells)]


def _measure(table: RenderableType, width: int) -> int:
    return Console(width=10 * width, file=io.StringIO()).measure(table).maximum


def _beside(cells: Sequence[RenderableType]) -> Table:
    grid = Table.grid(padding=(0, 3, 0, 0))
    for _ in cells:
        grid.add_column(vertical="middle", no_wrap=True)
    grid.add_row(*cells)
    return grid


def _table(part: Matrix, row: int, digits: int, width: int, labelled: bool) -> RenderableType:
    values = part.of(row)
    places = places_of(values, digits)
    rows, columns = values.shape
    named = labelled or not part.followed
    kept_rows = _kept(rows, rows if part.axes[0] == "tokens" else _MOST_ROWS)
    widest = max(len(formatted(float(each), places)) for each in values.flat) + 2
    fit = max(2, (width - 16) // max(widest, 4))
    kept = _kept(columns, min(fit, _MOST_FEATURES) if part.axes[1] == "features" else fit)
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, show_edge=False, header_style=_QUIET)
    if named:
        table.add_column("", no_wrap=True, max_width=14)
    for column in kept:
        label = "…" if column is None else part.columns[column]
        table.add_column(Text(label), justify="right", no_wrap=True)
    for number in kept_rows:
        if number is None:
            table.add_row(*["⋮"] * (len(kept) + named), style=_QUIET)
            continue
        shown = ["…" if column is None else formatted(float(values[number, column]), places) for column in kept]
        named_row = [Text(part.rows[number])] if named else []
        table.add_row(*named_row, *shown, style=_IN_HAND if part.followed and number == row else "")
    return Group(Text(f"{part.name}  {rows} × {columns}", style="italic"), table)


def _kept(count: int, most: int) -> list[int | None]:
    """Which of so many entries are shown; None stands for those left out before the last."""
    if count <= most:
        return list(range(count))
    return [*range(max(1, most - 2)), None, count - 1]


def _slip(slip: Slip, words: Phrases) -> Panel:
    published, right, colon = (words("words", name) for name in ("published", "right", "colon"))
    told = Text(f"{published}{colon}{slip.published}\n{right}{colon}{slip.right}")
    return Panel(told, title=words("words", "slip"), title_align="left", border_style="yellow", expand=False)
