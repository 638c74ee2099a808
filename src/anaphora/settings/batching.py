"""Settings of batching."""

from __future__ import annotations

from dataclasses import dataclass, field

from anaphora.base import checks
from anaphora.base.errors import UserError


@dataclass(kw_only=True)
class Batching:
    """How sentences are packed into batches."""

    kind: str = "packed"  # packed: several sentences in a row; buckets: one in a row, batched by length
    tokens: int = 4096  # most tokens in a batch, padding included
    # Most tokens in a packed row; plain texts are cut into chunks of this size, and labelled texts are cut off there.
    row_tokens: int = 128
    window: int = 1024  # how many sentences at a time are sorted into rows or buckets
    # For each of the first epochs, the share of the groups that it contains, shortest groups first.
    shortest_first: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        checks.one_of("batching.kind", self.kind, ("packed", "buckets"))
        checks.at_least("batching.row_tokens", self.row_tokens, 1)
        checks.at_least("batching.window", self.window, 1)
        for share in self.shortest_first:
            if not 0 < share <= 1:
                raise UserError(f"batching.shortest_first ({share:g}) must be above 0 and at most 1, a share an epoch")
        if self.tokens < self.row_tokens:
            raise UserError(f"batching.tokens ({self.tokens}) must be at least batching.row_tokens ({self.row_tokens})")
