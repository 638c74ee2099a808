"""How sentences are laid into batches."""

from __future__ import annotations

from dataclasses import dataclass, field

from anaphora.base import checks
from anaphora.base.errors import UserError


@dataclass(kw_only=True)
class Batching:
    """How sentences share a batch."""

    kind: str = "packed"  # packed: several sentences a row; buckets: one a row, next to others of its length
    tokens: int = 4096  # of a batch at most, padding included
    row_tokens: int = 128  # of a packed row at most; texts without a pronoun question are split to it
    window: int = 1024  # sentences among which rows or buckets are filled
    shortest_first: list[float] = field(default_factory=list)  # shares of the shortest groups, of the first epochs

    def __post_init__(self) -> None:
        checks.one_of("batching.kind", self.kind, ("packed", "buckets"))
        checks.at_least("batching.row_tokens", self.row_tokens, 1)
        checks.at_least("batching.window", self.window, 1)
        for share in self.shortest_first:
            if not 0 < share <= 1:
                raise UserError(f"batching.shortest_first ({share:g}) must be above 0 and at most 1, a share an epoch")
        if self.tokens < self.row_tokens:
            raise UserError(f"batching.tokens ({self.tokens}) must be at least batching.row_tokens ({self.row_tokens})")
