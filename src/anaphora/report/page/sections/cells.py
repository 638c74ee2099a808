"""What several sections share: names without underscores and lists of heads."""

from __future__ import annotations

from collections.abc import Sequence


def spaced_name(name: str) -> str:
    """A name without its underscores."""
    return name.replace("_", " ")


def head_list(heads: Sequence[tuple[int, int]]) -> str:
    """Heads as layer.head, separated by commas."""
    return ", ".join(f"{layer}.{head}" for layer, head in heads)
