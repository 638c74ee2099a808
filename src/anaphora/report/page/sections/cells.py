"""What several sections share: heads of columns and lists of heads."""

from __future__ import annotations

from collections.abc import Sequence

from anaphora.report.wording import phrase


def column_names(*names: str) -> list[str]:
    """The heads of some columns of a table."""
    return [phrase("columns", name) for name in names]


def head_list(heads: Sequence[tuple[int, int]]) -> str:
    """Heads as layer.head, separated by commas."""
    return ", ".join(f"{layer}.{head}" for layer, head in heads)
