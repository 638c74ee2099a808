"""Settings of the speed benchmark."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from anaphora.base.checks import at_least, file_ending, one_of, thread_count
from anaphora.base.device import Device
from anaphora.base.errors import UserError
from anaphora.settings.data import ControlledCorpus, Data


@dataclass(frozen=True)
class EncoderSize:
    """Shape of all encoders in a comparison."""

    width: int
    heads: int
    layers: int
    feed_forward: int


SIZES = {
    "tiny": EncoderSize(width=32, heads=2, layers=1, feed_forward=64),  # to see that everything runs
    "s": EncoderSize(width=128, heads=4, layers=4, feed_forward=512),
    "m": EncoderSize(width=256, heads=8, layers=6, feed_forward=1024),
}
TEXT_KINDS = ("documents", "paragraphs")


def parse_size(name: str) -> EncoderSize:
    """Return an encoder size from its name, or from WIDTHxLAYERSxHEADS with a feed-forward expansion of 4.

    Raises:
        UserError: the text is neither a name nor of this form.
    """
    if name in SIZES:
        return SIZES[name]
    written = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)x([1-9]\d*)", name)
    if written is None:
        raise UserError(f"sizes ({name!r}) must be one of {', '.join(SIZES)}, or WIDTHxLAYERSxHEADS as in 256x6x4")
    width, layers, heads = map(int, written.groups())
    if width % (2 * heads):
        raise UserError(f"sizes ({name!r}): the width must be an even multiple of the heads")
    return EncoderSize(width=width, heads=heads, layers=layers, feed_forward=4 * width)


@dataclass(kw_only=True)
class Benchmark:
    """Comparison of speed with Hugging Face's BertModel and BertForMaskedLM in one process."""

    # training or pretraining, in tokens per second; extraction, in sentences per second; or step, the demo's training
    # step, in operations per second.
    what: str = "training"
    sizes: list[str] = field(default_factory=lambda: ["s", "m"])  # tiny, s, m, or WIDTHxLAYERSxHEADS as in 256x6x4
    lengths: list[str] = field(default_factory=lambda: ["lognormal", "corpus"])
    data: Data = field(default_factory=ControlledCorpus)  # text to pre-train on, as data=plain_text data.path=...
    texts: list[str] = field(default_factory=lambda: list(TEXT_KINDS))  # documents cut into chunks, or paragraphs
    # Number of generated sentences of each kind of `lengths`; for pretraining, of chunks of text; for step, of items of
    # the built-in corpus in each language.
    sentences: int = 2000
    batch_sentences: int = 64  # sentences per padded batch; packed rows and buckets take as many real tokens on average
    repeats: int = 5  # number of measurements of each variant, in the order A B C A B C ...
    # wall, or for a busy machine processor: the computing time of this process, summed over all threads.
    clock: str = "wall"
    # Training steps in each repeat, spread evenly over all batches; pretraining and extraction use all batches.
    steps: int = 8
    threads: int | None = None  # number of threads; by default torch decides
    seed: int = 0
    output: str | None = None  # JSON file for all numbers
    trainer: Device = field(default_factory=Device)  # device to compute on

    def __post_init__(self) -> None:
        one_of("what", self.what, ("training", "pretraining", "extraction", "step"))
        one_of("clock", self.clock, ("wall", "processor"))
        if self.clock == "processor" and self.trainer.device != "cpu":
            raise UserError(f"clock (processor) does not measure what trainer.device={self.trainer.device} computes")
        for name, names, allowed in (
            ("sizes", self.sizes, tuple(SIZES)),
            ("lengths", self.lengths, ("lognormal", "corpus", "long")),
            ("texts", self.texts, TEXT_KINDS),
        ):
            if not names:
                raise UserError(f"{name} ({names}) must name at least one of {', '.join(allowed)}")
            for named in names:
                if name == "sizes":
                    parse_size(named)
                else:
                    one_of(name, named, allowed)
        for name in ("sentences", "batch_sentences", "repeats", "steps"):
            at_least(name, getattr(self, name), 1)
        if self.threads is not None:
            thread_count("threads", self.threads)
        at_least("seed", self.seed, 0)
        if self.output is not None:
            file_ending("output", self.output, ".json")
