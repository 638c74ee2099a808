"""Data classes of the evidence on a run: all its evaluation results, stored in metrics.json and shown in the report.

docs/make_schema.py writes a JSON Schema of these classes. A field of `Evidence` that is None was not measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from anaphora.analysis.causal.perturbations import PerturbedCell, perturbations
from anaphora.analysis.results.causal import Causal, CausalCell
from anaphora.analysis.results.scores import ALL, KINDS, AccuracyCell, Cell, Groups, Head, LanguageScores
from anaphora.analysis.results.typed_json import Interval, from_json, to_json
from anaphora.analysis.scores.measures.effects import (
    Effects,
    HeadsOnDevelopment,
    Significance,
    effects,
    heads_on_development,
    significance,
)
from anaphora.analysis.scores.measures.factors import FactorValue, factors
from anaphora.analysis.scores.measures.further import FurtherScores, further_measures
from anaphora.analysis.scores.measures.levels import Level
from anaphora.analysis.scores.measures.maps import MapScores, map_scores
from anaphora.analysis.scores.measures.roles import HeadRoles, head_roles
from anaphora.analysis.scores.measures.specificity import Specificity, pronoun_specificity
from anaphora.base.errors import UserError
from anaphora.base.translation import N_

if TYPE_CHECKING:
    from anaphora.analysis.evidence.headline import Measurement
    from anaphora.analysis.evidence.measurement import MeasuredModel

T = TypeVar("T")

VERSION = 2
"""Version of metrics.json."""

VERDICT_SCOPE = "layer"
"""Set of heads that is edited together in the causal tests on which a verdict depends: the layer of the chosen head.
Heads of a layer can replace each other, so that knocking out an edge in one head may cost little accuracy although the
answer depends on the edge."""


def from_rows(compute: Callable[[Measurement], T]) -> T | None:
    """Define a field of `Evidence` that `compute` derives from attention rows and answers alone."""
    return field(default=None, metadata={"from_rows": compute})


def from_model(compute: Callable[[MeasuredModel], T], stage: str = "") -> T | None:
    """Define a field of `Evidence` that `compute` derives from forward passes; `stage` is a progress message or ""."""
    return field(default=None, metadata={"from_model": compute, "stage": stage})


@dataclass(frozen=True, kw_only=True)
class EncoderFacts:
    """Properties of the encoder that limit what can be concluded from its attention weights.

    `values` names the vectors that attention mixes: each layer's input ("hidden") or the tokens' embeddings ("token").
    """

    values: str


DEVELOPMENT, NAMED = "dev", "named"
"""Values of `ChosenHead.chosen_on`: the head was chosen on the development split, or named by the user."""


@dataclass(frozen=True, kw_only=True)
class ChosenHead:
    """Head whose scores are reported; `chosen_on` is `DEVELOPMENT`, or `NAMED` if the user named the head."""

    layer: int
    head: int
    chosen_on: str

    @property
    def position(self) -> Head:
        """Return the head's layer and its index in the layer."""
        return Head(self.layer, self.head)


@dataclass(frozen=True, kw_only=True)
class FixedProtocol:
    """Protocol of an evaluation: choices that are fixed before anything is measured.

    Attributes:
        metric: name of the main measure.
        map: kind of attention map from which the main measure is computed.
        direction: direction of attention in the main measure, from the pronoun to the candidates.
        split: name of the reported split.
        alpha: significance level; corrected p-values below it count as significant.
        hash: hash of the other fields, the rules that decide the `Verdict`, and the run's settings.
    """

    metric: str
    map: str
    direction: str
    split: str
    alpha: float
    hash: str


@dataclass(frozen=True, kw_only=True)
class MeasuredOn:
    """Hashes of the weights, the items and the evaluation code from which a result was computed.

    For a trained control, `weights` is the hash of the original run, with which the control is compared.
    """

    weights: str
    data: str
    code: str


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Origin of stored evidence: numbers of items and untrained models; hashes of weights, items and code.

    `items` is the approximate number of items of the main results (`Example.is_main`) for causal tests and maps other
    than raw attention.
    """

    items: int
    untrained: int
    weights: str
    data: str
    code: str

    @property
    def measured_on(self) -> MeasuredOn:
        """Return only the hashes of the weights, the items and the code."""
        return MeasuredOn(weights=self.weights, data=self.data, code=self.code)


@dataclass(frozen=True, kw_only=True)
class Control:
    """Accuracies of a trained control, a model trained with one change, with the expected and the observed result.

    Attributes:
        run, seed: name and seed of the trained control.
        languages: accuracies by language and cue category (`kind`, or "all").
        as_expected: whether the result is the expected one; None if the evaluated items cannot show it.
        expected, observed: expected and observed result in words.
        measured_on: hashes of the weights of the original run, of the evaluated items and of the evaluation code. None
            in files of earlier versions; the control then counts as not trained.
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
    """Outcome of one of the rules (criteria) that decide a `Verdict`.

    Attributes:
        rule, question: name of the rule, and the question that it answers.
        value, interval: measured value in the rule's unit (`verdict.UNITS`), and its 95 % interval; None if unknown.
        needed: the threshold in words.
        passed: whether the rule passes; None if it could not be checked.
    """

    rule: str
    question: str
    value: float | None
    interval: Interval | None
    needed: str
    passed: bool | None


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Verdict on whether a run's head picks antecedents, with the outcomes of the rules (criteria) that decide it.

    A verdict is given for each language and cue category (`kind`), or for all items of a language without categories.
    """

    verdict: str
    rows: tuple[VerdictRow, ...]


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Scores of a run, and all results that show whether the chosen head picks antecedents.

    Attributes:
        seed: seed of the run. `seed`, `encoder`, `train_seconds`, `reads_candidates` and `head_is_supervised` are None
            for a model from another library.
        split: name of the scored split.
        languages: scores on items of the main results (`Example.is_main`) by language.
        strata: scores on all other items by language and stratum (group of items that are built in the same way).
        levels: scores by language and level (`level_scores`); None if no item has a level. The level is the number of
            voices (active, passive) in which an item's predicate and state occur together in training. The state is the
            phrase that describes the pronoun's referent.
        factors: accuracies by factor (attribute of an item by which results are grouped) and language.
        significance, effects, further_scores: results by language and cue category (`kind`, or "all").
        maps, perturbations, controls: results by name of the kind of map, the perturbation or the control.
        untrained_models: number of untrained models that were measured.
        train_seconds: duration of the training in seconds.
        reads_candidates: whether the prediction head compares the hidden states of pronoun and candidates, and so can
            work without attention between them.
        verdict: verdicts on whether the head picks antecedents, for which causal tests edit its whole layer.
        verdict_at_head: verdicts for which causal tests edit the head alone.
        dropped: number of items left out of the scores, by reason.
        undecided: number of scored items on which right and wrong answers tie for the highest score. The correctness of
            such an item is the share of tied answers that are right. None in files of earlier versions.
        heads_table: hash of the file tables/heads_dev.csv that was written with these scores; scoring another split
            overwrites the file. None in files of earlier versions.
        head_is_supervised: whether a loss supervised the head's attention rows; None in files of earlier versions.
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
        """Return whether the head was chosen on development and measured on test items, as valid p-values require."""
        return self.split == "test" and self.head.chosen_on == DEVELOPMENT

    @property
    def scores(self) -> Groups[Cell]:
        """Return the main results (`languages`) by language and cue category (`kind`, or "all")."""
        return {language: {ALL: whole, **whole.by_kind} for language, whole in self.languages.items()}

    @property
    def causal_cells(self) -> Groups[CausalCell]:
        """Return the results of the causal tests by language and cue category (`kind`); empty without causal tests."""
        return self.causal.languages if self.causal else {}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Evidence:
        """Return the evidence from the output of `to_json`.

        Raises:
            UserError: the version differs, or a key is missing, unknown or of the wrong type; the message names it.
        """
        if content.get("version") != VERSION:
            raise UserError(f"version: {content.get('version')!r} is not {VERSION}")
        return from_json(cls, content)

    def to_json(self) -> dict[str, Any]:
        """Return the content of metrics.json, without fields that were not measured."""
        return {"version": self.version, **to_json(self)}


def in_group(part: Groups[T] | None, language: str, kind: str) -> T | None:
    """Return the result for a language and cue category (`kind`, or "all"); None if there is none."""
    return (part or {}).get(language, {}).get(kind)


def every_group(part: Groups[T] | None) -> Iterator[tuple[str, str, T]]:
    """Yield (language, kind, result): for each language, the result for "all" items, then those by cue category."""
    for language, kinds in (part or {}).items():
        for kind in (ALL, *KINDS):
            if kind in kinds:
                yield language, kind, kinds[kind]


def claim_groups(part: Groups[T] | None) -> Iterator[tuple[str, str, T]]:
    """Yield (language, kind, result) for each group that gets a verdict: each cue category (`kind`) of a language.

    A language whose items have no cue category has the kind "all" instead.
    """
    for language, kinds in (part or {}).items():
        for kind in [kind for kind in KINDS if kind in kinds] or [kind for kind in (ALL,) if kind in kinds]:
            yield language, kind, kinds[kind]
