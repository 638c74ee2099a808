"""What is measured against what, in the user's words. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass, field

from anaphora.errors import UserError
from anaphora.model.settings import at_least, one_of


@dataclass(frozen=True)
class Size:
    """Shape of the encoders that are compared; all have the same."""

    width: int
    heads: int
    layers: int
    feed_forward: int


SIZES = {
    "tiny": Size(width=32, heads=2, layers=1, feed_forward=64),  # to see that everything runs
    "s": Size(width=128, heads=4, layers=4, feed_forward=512),
    "m": Size(width=256, heads=8, layers=6, feed_forward=1024),
}


@dataclass(kw_only=True)
class Benchmark:
    """A comparison of speed with Hugging Face's BertModel, side by side in one process."""

    what: str = "training"  # training: real tokens a second; extraction: sentences a second
    sizes: list[str] = field(default_factory=lambda: ["s", "m"])
    lengths: list[str] = field(default_factory=lambda: ["lognormal", "corpus"])
    sentences: int = 2000  # invented, of these lengths
    batch_sentences: int = 64  # a padded batch; packed rows and buckets take as many real tokens on average
    repeats: int = 5  # A B C A B C ...
    steps: int = 8  # of training in each repeat, spread evenly over all batches; extraction takes every sentence
    threads: int | None = None  # by default what torch chooses
    seed: int = 0
    output: str | None = None  # a JSON file with every figure

    def __post_init__(self) -> None:
        one_of("what", self.what, ("training", "extraction"))
        for name, chosen, allowed in (
            ("sizes", self.sizes, tuple(SIZES)),
            ("lengths", self.lengths, ("lognormal", "corpus", "long")),
        ):
            if not chosen:
                raise UserError(f"{name} ({chosen}) must name at least one of {', '.join(allowed)}")
            for one in chosen:
                one_of(name, one, allowed)
        for name in ("sentences", "batch_sentences", "repeats", "steps"):
            at_least(name, getattr(self, name), 1)
        if self.threads is not None:
            at_least("threads", self.threads, 1)
        at_least("seed", self.seed, 0)
