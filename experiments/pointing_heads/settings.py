"""Settings of the study and its pages."""

from __future__ import annotations

from dataclasses import dataclass, field

from omegaconf import MISSING

from anaphora.base import checks
from experiments.shipped.settings import SENTENCES

SECOND, FIRST = "second", "first"
"""Sets of everyday sentences that can be measured: the second for the claims, and the first for testing the code."""


@dataclass(kw_only=True)
class PointingHeads:
    """Heads of published encoders, chosen on development sentences and measured on other sentences."""

    models: str = MISSING  # folder with the models, in the folders e5, minilm and smollm2
    data: str = MISSING  # folder with the corpora: gap, ontogum, litbank_coref, xwino and cluewsc2020
    sentences: str = SENTENCES  # folder with the everyday sentences
    measured: str = SECOND  # which set of everyday sentences is measured: second or first
    output: str = "outputs/pointing_heads"  # folder for the measurements; stored parts are not measured again
    parts: list[str] = field(default_factory=list)  # prefixes of the names of parts to measure; by default all parts
    items: int = 400  # maximum number of items of each corpus, in whole groups
    likelihood_items: int = 100  # number of everyday sentences for likelihoods, as evenly spaced whole pairs
    training_items: int = 20_000  # number of items in each language for fitting shortcuts
    copies: int = 20  # number of untrained copies, and of copies with shuffled weights, on everyday sentences
    gap_copies: int = 20  # number of copies of each kind on GAP
    few_copies: int = 3  # number of copies of each kind on the other corpora

    def __post_init__(self) -> None:
        checks.one_of("measured", self.measured, (SECOND, FIRST))
        checks.at_least("items", self.items, 1)
        checks.at_least("likelihood_items", self.likelihood_items, 2)
        checks.at_least("training_items", self.training_items, 1)
        checks.between("copies", self.copies, 0, 1000)
        checks.between("gap_copies", self.gap_copies, 0, self.copies + 1)
        checks.between("few_copies", self.few_copies, 0, self.copies + 1)


@dataclass(kw_only=True)
class Pages:
    """The page of the study, with tables and pictures of the measurements."""

    output: str = "outputs/pointing_heads"  # folder with the measurements
    folder: str = "docs/results"  # folder for the page in each language
    verdicts: str = "experiments/pointing_heads/verdicts.json"  # file for the verdicts with their values
    pictures: str = "docs/images"  # folder for the pictures
