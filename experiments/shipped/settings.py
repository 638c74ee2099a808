"""Settings, which import nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass, field

from anaphora.base import checks


@dataclass(kw_only=True)
class TrainingItems:
    """Pronoun items of both languages, in minimal pairs."""

    output: str = "items.jsonl"  # file that is written
    pairs: int = 60_000  # number of pairs in each language
    dev_share: float = 0.01  # share of the pairs that goes to the dev split
    seed: int = 0  # of all random draws
    # Shares of the kinds of cue: gender, number, animacy, selection (what can be said of a thing), role (knowledge).
    shares: list[float] = field(default_factory=lambda: [0.13, 0.12, 0.12, 0.33, 0.3])

    def __post_init__(self) -> None:
        checks.at_least("pairs", self.pairs, 1)
        checks.at_least("seed", self.seed, 0)
        checks.between("dev_share", self.dev_share, 0, 1)
        if len(self.shares) != 5 or min(self.shares) < 0 or not sum(self.shares):
            raise ValueError(f"shares ({self.shares}) must be five numbers of at least 0, not all of them 0")
