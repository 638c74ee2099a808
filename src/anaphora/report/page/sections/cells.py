"""What several sections share: heads of columns and lists of heads."""

from __future__ import annotations

from collections.abc import Sequence


def head_list(heads: Sequence[tuple[int, int]]) -> str:
    """Heads as layer.head, separated by commas."""
    return ", ".join(f"{layer}.{head}" for layer, head in heads)
