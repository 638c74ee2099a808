"""Settings, which import nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from omegaconf import MISSING

from anaphora.base import checks

Row = dict[str, Any]
"""A line of the file of items, in the format of own data."""


@dataclass(kw_only=True)
class TrainingItems:
    """Pronoun items of both languages: generated pairs, repeated nouns of running text, and the built-in corpus."""

    output: str = "items.jsonl"  # file that is written
    as_text: str | None = None  # file of their texts to pre-train on, half of them with the antecedent for the pronoun
    pairs: int = 60_000  # number of pairs in each language
    dev_share: float = 0.01  # share of the pairs that goes to the dev split
    seed: int = 0  # of all random draws
    # Shares of the kinds of cue: gender, number, animacy, selection (what can be said of a thing), role (knowledge).
    shares: list[float] = field(default_factory=lambda: [0.12, 0.12, 0.12, 0.46, 0.18])

    texts: list[str] = field(default_factory=list)  # files or folders of running text, if any
    without: list[str] = field(default_factory=list)  # evaluation sets whose passages are left out of it
    controlled: int = 40_000  # number of training items of the built-in corpus in each language at most

    def __post_init__(self) -> None:
        checks.at_least("pairs", self.pairs, 1)
        checks.at_least("controlled", self.controlled, 0)
        checks.at_least("seed", self.seed, 0)
        checks.between("dev_share", self.dev_share, 0, 1)
        if len(self.shares) != 5 or min(self.shares) < 0 or not sum(self.shares):
            raise ValueError(f"shares ({self.shares}) must be five numbers of at least 0, not all of them 0")


SENTENCES = "experiments/shipped/sentences"
"""The folder of the sentences that a run is scored on."""


@dataclass(kw_only=True)
class SentenceScores:
    """What the run inside the package makes of the sentences, beside what was released with it."""

    run: str = "shipped"  # a run; of another one than `shipped` the scores are only printed and written
    sentences: str = SENTENCES  # folder with the sets of sentences
    output: str = "outputs/shipped"  # folder for the scores

    def __post_init__(self) -> None:
        checks.file_name("output", self.output)


@dataclass(kw_only=True)
class IntroductionSentences:
    """Sentences of the kinds that introductions to attention use."""

    run: str = "shipped"  # the run that answers
    sentences: str = SENTENCES  # folder with introductions.en.jsonl and introductions.zh.jsonl


@dataclass(kw_only=True)
class RunDifference:
    """Two runs side by side on all test sets of sentences."""

    other: str = MISSING  # the run whose accuracy is subtracted
    run: str = "shipped"  # the run from which it is subtracted
    sentences: str = SENTENCES  # folder with the sets of sentences


@dataclass(kw_only=True)
class Packaging:
    """A run as the folder that comes with the package."""

    run: str = MISSING  # the run directory
    output: str = "src/anaphora/shipped"  # folder to write, which must not exist yet
    facts: str = "experiments/shipped/release.toml"  # texts, licences and limits, which no run directory holds
    sentences: str = SENTENCES  # folder with the sets: dev of the first for choices, the third for the scores
