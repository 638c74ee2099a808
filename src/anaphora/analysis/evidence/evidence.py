"""The evidence on a run, as stored in metrics.json and read by the report.

docs/make_schema.py makes a JSON Schema of these classes. A part of `Evidence` that is None was not measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from anaphora.analysis.causal.perturbations import PerturbedCell, perturbations
from anaphora.analysis.results.causal import Causal, CausalCell
from anaphora.analysis.results.scores import ALL, KINDS, AccuracyCell, Cell, Groups, Head, LanguageScores
from anaphora.analysis.results.typed_json import Interval, from_json, to_json
from anaphora.analysis.scores.measures.effects import Effects, effects
from anaphora.analysis.scores.measures.factors import FactorValue, factors
from anaphora.analysis.scores.measures.further import FurtherScores, further_measures
from anaphora.analysis.scores.measures.levels import Level
from anaphora.analysis.scores.measures.maps import MapScores, map_scores
from anaphora.analysis.scores.measures.roles import HeadRoles, head_roles
from anaphora.analysis.scores.measures.significance import (
    HeadsOnDevelopment,
    Significance,
    heads_on_development,
    significance,
)
from anaphora.analysis.scores.measures.specificity import Specificity, pronoun_specificity
from anaphora.base.errors import UserError
from anaphora.base.locale.translation import N_

if TYPE_CHECKING:
    from anaphora.analysis.evidence.headline import Measurement
    from anaphora.analysis.evidence.measurement import MeasuredModel

T = TypeVar("T")

VERSION = 2
"""Of metrics.json."""

VERDICT_SCOPE = "layer"
"""Where the verdict's rules act: in all heads of the layer of the head that development chose. Heads of a layer stand
in for each other, so that knocking out the edge in one of them costs next to nothing although the answer runs along it;
the tables show the head alone as well."""


def from_rows(compute: Callable[[Measurement], T]) -> T | None:
    """Return the field of a measure for which the pronoun's rows and the answers suffice, those of any model."""
    return field(default=None, metadata={"from_rows": compute})


def from_model(compute: Callable[[MeasuredModel], T], stage: str = "") -> T | None:
    """Return the field of a measure that needs the model of a run.

    Args:
        compute: what computes it.
        stage: what its progress is called; empty if the computation itself reports it.
    """
    return field(default=None, metadata={"from_model": compute, "stage": stage})


@dataclass(frozen=True, kw_only=True)
class EncoderFacts:
    """Encoder facts that limit claims about its heads: what its attention mixes."""

    values: str


DEVELOPMENT, NAMED = "dev", "named"
"""Where a head was chosen, or that it was not: somebody named it."""


@dataclass(frozen=True, kw_only=True)
class ChosenHead:
    """The head that is reported, and the split on which it was chosen: `DEVELOPMENT`, or `NAMED` for none."""

    layer: int
    head: int
    chosen_on: str

    @property
    def position(self) -> Head:
        """Return the layer and the number of the head."""
        return Head(self.layer, self.head)


@dataclass(frozen=True, kw_only=True)
class FixedProtocol:
    """The headline that was fixed beforehand; the hash covers it, the verdict's rules and the run's settings."""

    metric: str
    map: str
    direction: str
    split: str
    alpha: float
    hash: str


@dataclass(frozen=True, kw_only=True)
class MeasuredOn:
    """What was measured: digests of the weights of a run (of a control, the run that it belongs to), items and code."""

    weights: str
    data: str
    code: str


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """What the evidence is about: how much of it, and digests of weights, items and measuring code."""

    items: int
    untrained: int
    weights: str
    data: str
    code: str

    @property
    def measured_on(self) -> MeasuredOn:
        """Return the digests alone."""
        return MeasuredOn(weights=self.weights, data=self.data, code=self.code)


@dataclass(frozen=True, kw_only=True)
class Control:
    """A trained control: what its own head and answers are worth, what was expected and what was observed.

    `measured_on` is None in files of earlier versions, which did not record it; such a control counts as not trained.
    """

    run: str
    seed: int
    languages: Groups[AccuracyCell]
    as_expected: bool | None
    expected: str
    observed: str
    measured_on: MeasuredOn | None = None


@dataclass(frozen=True, kw_only=True)
class VerdictRow:
    """One rule of the verdict; `passed` is None if it could not be checked."""

    rule: str
    question: str
    value: float | None
    interval: Interval | None
    needed: str
    passed: bool | None


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The verdict on one language and kind of cue."""

    verdict: str
    rows: tuple[VerdictRow, ...]


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """All that is known of a run: its scores, and the evidence for and against the head that they name.

    `dropped` counts the items left out of the scores, by reason. `undecided` counts the scored items of whose highest
    answers, equal to the model, some are right; each counts as the share that is. `heads_table` is a digest of
    tables/heads_dev.csv as it was written with these scores; those of another split write that file too.
    `head_is_supervised` says whether a loss trained the attention rows of the head. The last three are None in files of
    earlier versions.
    """

    version: int = VERSION
    seed: int | None = None
    encoder: EncoderFacts | None = None
    split: str
    head: ChosenHead
    languages: dict[str, LanguageScores]
    strata: Groups[Cell]
    levels: dict[str, dict[str, Level]] | None = None
    heads_table: str | None = None
    dropped: dict[str, int]
    undecided: int | None = None
    untrained_models: int
    train_seconds: float | None = None
    reads_candidates: bool | None = None
    head_is_supervised: bool | None = None
    protocol: FixedProtocol | None = None
    significance: Groups[Significance] | None = from_rows(lambda of: significance(of.measured, of.head))
    heads_on_development: HeadsOnDevelopment | None = from_rows(lambda of: heads_on_development(of.development))
    effects: Groups[Effects] | None = from_rows(lambda of: effects(of.measured, of.head))
    factors: dict[str, dict[str, tuple[FactorValue, ...]]] | None = from_rows(
        lambda of: factors(of.measured, of.head, of.task_correct)
    )
    further_scores: Groups[FurtherScores] | None = from_rows(
        lambda of: further_measures(of.measured, of.capture.records, of.head, of.task_answers, of.reverse)
    )
    head_roles: tuple[HeadRoles, ...] | None = from_rows(
        lambda of: head_roles(of.measured, of.capture.records, of.baselines)
    )
    pronoun_specificity: Groups[Specificity] | None = from_model(
        lambda of: pronoun_specificity(of.examples, of.whole_maps(), of.headline.head), N_("other words as queries")
    )
    maps: dict[str, MapScores] | None = from_model(
        lambda of: map_scores(of.development_map_rows(), of.map_rows, of.headline.head), N_("other maps")
    )
    perturbations: dict[str, Groups[PerturbedCell]] | None = from_model(
        lambda of: perturbations(of.headline.run, of.map_rows["raw"].records, of.headline.head),
        N_("without cue, context or positions"),
    )
    causal: Causal | None = from_model(lambda of: of.causal_tests())
    provenance: Provenance | None = None
    controls: dict[str, Control | None] | None = None
    verdict: Groups[Verdict] | None = None
    verdict_at_head: Groups[Verdict] | None = None

    @property
    def is_of_held_out_items(self) -> bool:
        """Check whether these are test items and the head was chosen on others, as a p-value requires."""
        return self.split == "test" and self.head.chosen_on == DEVELOPMENT

    @property
    def scores(self) -> Groups[Cell]:
        """Return the scores by language and kind of cue; "all" is the language as a whole."""
        return {language: {ALL: whole, **whole.by_kind} for language, whole in self.languages.items()}

    @property
    def causal_cells(self) -> Groups[CausalCell]:
        """Return the causal tests by language and kind of cue; empty if they were not measured."""
        return self.causal.languages if self.causal else {}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Evidence:
        """Return the evidence that `to_json` wrote.

        Raises:
            UserError: it is of another version, or a key is missing, unknown or of another type; the message names it.
        """
        if content.get("version") != VERSION:
            raise UserError(f"version: {content.get('version')!r} is not {VERSION}")
        return from_json(cls, content)

    def to_json(self) -> dict[str, Any]:
        """Return what metrics.json holds; parts that were not measured are left out."""
        return {"version": self.version, **to_json(self)}


def in_group(part: Groups[T] | None, language: str, kind: str) -> T | None:
    """Return the cell of a language and kind of cue; None if it was not measured."""
    return (part or {}).get(language, {}).get(kind)


def every_group(part: Groups[T] | None) -> Iterator[tuple[str, str, T]]:
    """Yield (language, kind, cell) of every language as a whole, kind "all", and then of each kind of cue."""
    for language, kinds in (part or {}).items():
        for kind in (ALL, *KINDS):
            if kind in kinds:
                yield language, kind, kinds[kind]


def claim_groups(part: Groups[T] | None) -> Iterator[tuple[str, str, T]]:
    """Yield (language, kind, cell) of every kind of cue, or of "all" in a language that does not tell kinds apart."""
    for language, kinds in (part or {}).items():
        for kind in [kind for kind in KINDS if kind in kinds] or [kind for kind in (ALL,) if kind in kinds]:
            yield language, kind, kinds[kind]
