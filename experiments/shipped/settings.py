"""Settings of the commands in this folder."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from omegaconf import MISSING

from anaphora.base import checks
from anaphora.commands.parts.settings import Overwriting

Row = dict[str, Any]
"""Item as a JSON object, in the format of data=jsonl."""


@dataclass(kw_only=True)
class TrainingItems(Overwriting):
    """Pronoun items of both languages: generated pairs, repeated nouns of running text, and the built-in corpus."""

    output: str = "items.jsonl"  # file to write
    as_text: str | None = None  # file for the texts, to pre-train on, half of them with the antecedent for the pronoun
    pairs: int = 60_000  # number of pairs in each language
    dev_share: float = 0.01  # share of the pairs in the dev split
    seed: int = 0  # random seed
    # Shares of the kinds of cue: gender, number, animacy, selection (selectional preference), role (world knowledge),
    # and scenes of things.
    shares: list[float] = field(default_factory=lambda: [0.13, 0.10, 0.12, 0.20, 0.24, 0.21])

    texts: list[str] = field(default_factory=list)  # files or folders of running text
    without: list[str] = field(default_factory=list)  # evaluation sets, whose passages are left out of this text
    controlled: int = 40_000  # maximum number of training items of the built-in corpus in each language

    def __post_init__(self) -> None:
        checks.at_least("pairs", self.pairs, 1)
        checks.at_least("controlled", self.controlled, 0)
        checks.at_least("seed", self.seed, 0)
        checks.between("dev_share", self.dev_share, 0, 1)
        if len(self.shares) != 6 or min(self.shares) < 0 or not sum(self.shares):
            raise ValueError(f"shares ({self.shares}) must be six numbers of at least 0, not all of them 0")


SENTENCES = "experiments/shipped/sentences"
"""Folder of the sentences on which a run is scored."""
TEST_SET = "sixth"
"""Test set of the release; the scores of earlier releases on the sets before it were known while it was made."""


@dataclass(kw_only=True)
class PairFiles(Overwriting):
    """Conversion of the short notation of the minimal pairs to the format of data=jsonl."""

    output: str = MISSING  # folder for pairs.en.jsonl and pairs.zh.jsonl
    split: str = "dev"  # split of the sentences in these files

    def __post_init__(self) -> None:
        checks.one_of("split", self.split, ("dev", "test"))


@dataclass(kw_only=True)
class SentenceScores(Overwriting):
    """Scores of the shipped run on the sentences, compared with the released scores."""

    run: str = "shipped"  # the run; scores of another run than `shipped` are not compared
    sentences: str = SENTENCES  # folder with the sets of sentences
    output: str | None = None  # folder for the scores; by default outputs/shipped


@dataclass(kw_only=True)
class IntroductionSentences:
    """Answers to sentences like those in introductions to attention."""

    run: str = "shipped"  # the run that answers
    sentences: str = SENTENCES  # folder with introductions.en.jsonl and introductions.zh.jsonl


@dataclass(kw_only=True)
class FilledSentences:
    """Answers of a causal language model to sentences with each candidate in place of the pronoun."""

    model: str = MISSING  # folder with the language model and its tokenizer
    files: list[str] = MISSING  # sentences, in the format of data=jsonl
    split: str = "test"  # split of the sentences


@dataclass(kw_only=True)
class RunDifference:
    """Comparison of two runs on all test sets of sentences."""

    other: str = MISSING  # the run whose accuracy is subtracted
    run: str = "shipped"  # the run from which it is subtracted
    sentences: str = SENTENCES  # folder with the sets of sentences


@dataclass(kw_only=True)
class Packaging:
    """Conversion of a run to the folder shipped with the package."""

    run: str = MISSING  # the run directory
    output: str = "src/anaphora/shipped"  # folder to write, which must not exist yet
    facts: str = "experiments/shipped/release.toml"  # file with corpora, licences and limitations
    sentences: str = SENTENCES  # folder with the sets: those of dev for choices, TEST_SET for the scores
