"""Invented evidence and explorer sentences, for figures and pages."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from anaphora.analysis.evidence.evidence import ChosenHead, Control, Evidence, FixedProtocol, Verdict, VerdictRow
from anaphora.analysis.results.causal import (
    Causal,
    CausalCell,
    Correlation,
    CumulativeAblation,
    Difference,
    Flipped,
    FlippedByCount,
    HeadAblation,
    HeadLevel,
    Knockout,
    KnockoutLoss,
    PatternPatching,
    RemovedMass,
    SingleAblation,
)
from anaphora.analysis.results.scores import (
    AccuracyCell,
    Cell,
    HeadPosition,
    LanguageScores,
    ScoreIntervals,
    Shortcut,
    Spread,
    WorstTemplate,
)
from anaphora.analysis.results.typed_json import Interval
from anaphora.analysis.scores.measures.effects import Effect, Effects, Significance
from anaphora.analysis.scores.measures.factors import FactorValue
from anaphora.analysis.scores.measures.further import Agreement, FurtherScores
from anaphora.analysis.scores.measures.levels import Level, LevelIntervals
from anaphora.analysis.scores.measures.maps import MapCell, MapScores
from anaphora.analysis.scores.measures.roles import AntecedentLead, HeadRoles, PositionalShare
from anaphora.analysis.scores.measures.specificity import Specificity
from anaphora.report.page.explorer import pack_map

LAYERS, HEADS = 3, 4
ENGLISH = "[CLS] Yesterday , the nervous king thanked the young queen because she was extraordinarily generous . [SEP]"
CHINESE = "[CLS] 那天 下午 ， 小红 在 博物馆 里 遇见 了 图书馆管理员 ， 因为 她 很 高兴 。 [SEP]"


LANGUAGES, GROUPS = ("en", "zh"), ("set", "role", "all")


def _span(value: float, width: float = 0.03) -> Interval:
    return Interval(round(max(value - width, -1.0), 6), round(min(value + width, 1.0), 6))


def _cell(task: float, pointing: float) -> dict[str, Any]:
    """Return the fields of a cell of scores."""
    names = {"task_accuracy": task, "candidate_accuracy": pointing, "quad_accuracy": pointing - 0.06,
             "minimal_pair_accuracy": pointing - 0.05, "open_accuracy": pointing - 0.01,
             "focal_accuracy": pointing + 0.01, "antecedent_mass": pointing - 0.08}  # fmt: skip
    return {
        "items": 1510,
        **names,
        "lift": 19.3,
        "chance": 0.44,
        "intervals": ScoreIntervals(
            **{name: _span(value) for name, value in names.items()}, lift=Interval(18.3, 20.3)
        ),
        "baselines": {
            "chance": 0.4545, "nearest": 0.4545, "first": 0.4545, "subject": 0.4545, "longest": 0.4545,
            "most_mentioned": 0.4545, "best_offset": 0.4512, "odd_one_out": 0.4545, "bag_of_words": 0.4545,
            "bag_with_interactions": 0.4489, "random_init": 0.4476, "random_init_95": 0.4727,
        },
    }  # fmt: skip


class _Numbers:
    """Random values of the magnitude of real runs."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def about(self, value: float, spread: float = 0.03) -> float:
        return round(float(np.clip(value + spread * self.random.standard_normal(), -1, 1)), 6)

    def effect(self, value: float) -> Effect:
        value = self.about(value, 0.02)
        return Effect(value=value, interval=_span(value), quads=377)

    def loss(self, drop: float, mass: float) -> KnockoutLoss:
        drop = self.about(drop, 0.01)
        return KnockoutLoss(drop=drop, interval=_span(drop, 0.04), mass_removed=self.about(mass, 0.02))

    def knockout(self, strength: float) -> Knockout:
        return Knockout(
            gold_minus_matched=Difference(value=0.44 * strength, interval=_span(0.44 * strength)),
            edges={
                "gold": self.loss(0.45 * strength, 0.85),
                "distractor": self.loss(-0.005, 0.05),
                "cue": self.loss(0.3, 0.1),
                "matched_query": self.loss(0.01, 0.8),
                "matched_heads": self.loss(0.015, 0.3),
                "matched_distance": self.loss(0.002, 0.02),
                "value_zeroing": self.loss(0.4 * strength, 0.85),
                "value_zeroing_others": self.loss(0.02 * strength, 0.12),
            },
        )

    def causal(self, number: int) -> CausalCell:
        heads = ((2, 2), (2, 0), (1, 3), (2, 1), (1, 0), (0, 2))
        strengths = {"head": 0.5, "layer": 1.0, "window": 1.1, "all_layers": 1.2}
        rhos = {"raw": 0.71, "norm": 0.78, "rollout": 0.66, "flow": 0.64, "value_zeroing": 0.7,
                "integrated_gradients": 0.81}  # fmt: skip
        return CausalCell(
            items=400,
            task_accuracy=0.96,
            knockout={name: self.knockout(strength) for name, strength in strengths.items()},
            head_ablation=HeadAblation(
                single=tuple(
                    SingleAblation(layer=layer, head=head, mode=mode, interval=Interval(-0.01, 0.33),
                                   drop=self.about(0.3 if (layer, head) == (2, 2) else 0.01))
                    for mode in ("zero", "mean", "resample", "uniform")
                    for layer in range(LAYERS)
                    for head in range(HEADS)
                ),
                cumulative=tuple(
                    CumulativeAblation(k=k, heads=heads[:k], drop=round(0.55 - 0.5 / (k + number), 4),
                                       random=Spread(median=0.03 * k, lowest=0.0, highest=0.07 * k))
                    for k in range(1, 7)
                ),
            ),
            pattern_patching=PatternPatching(
                pairs=180,
                skipped=20,
                head=Flipped(flipped=0.62, interval=Interval(0.55, 0.7)),
                layer=Flipped(flipped=0.87, interval=Interval(0.81, 0.93)),
                cumulative=tuple(FlippedByCount(k=k, flipped=round(1 - 0.4 / k, 4)) for k in range(1, 7)),
                all_layers=Flipped(flipped=0.985, interval=Interval(0.96, 1.0)),
            ),
            dose_response={name: Correlation(rho=rho, interval=_span(rho)) for name, rho in rhos.items()},
            head_level=HeadLevel(items=400, antecedent_points=41.5, antecedent_interval=Interval(33.1, 49.8),
                                 other_edges_points=2.25, other_edges_interval=Interval(-0.4, 4.6), pairs=180,
                                 patch_flips=0.62, patch_interval=Interval(0.55, 0.7),
                                 exchange_items=350, exchange_flips=0.58, exchange_interval=Interval(0.5, 0.66),
                                 doses=(RemovedMass(mass=0.1, items=390, antecedent_points=7.5,
                                                    antecedent_interval=Interval(4.0, 11.0), other_edges_points=-0.25,
                                                    other_edges_interval=Interval(-1.0, 0.5)),),
                                 freed_mass={"distractors": 0.4, "cue": 0.1, "pronoun": 0.05, "special": 0.25,
                                             "other_words": 0.2}),
        )  # fmt: skip

    def factor(self, *values: str) -> dict[str, tuple[FactorValue, ...]]:
        def row(value: str) -> FactorValue:
            task = self.about(0.93, 0.04)
            return FactorValue(
                value=value, items=300, task_accuracy=task, candidate_accuracy=task - 0.02,
                interval=_span(task - 0.02, 0.04), antecedent_mass=0.85, chance=0.44,
            )  # fmt: skip

        return {language: tuple(map(row, values)) for language in LANGUAGES}


def _rules(*passed: bool | None) -> tuple[VerdictRow, ...]:
    texts: list[tuple[str, str, float | None, Interval | None, str]] = [
        ("significance", "Is the head above relabelled antecedents, after correction?", 0.0004, None, "p < 0.05"),
        ("lift", "Does the antecedent get more than its share?", 19.3, Interval(18.3, 20.3), "interval above 1"),
        ("quad accuracy", "Are whole quads right more often than any shortcut?", 0.89, Interval(0.83, 0.94),
         "above 0.45"),
        ("attention knockout", "Does knocking out the edge hurt more than matched edges?", 0.44, Interval(0.4, 0.48),
         "interval above 0.10"),
        ("attention-pattern patching", "Does the other pattern alone flip the answer?", 0.985, Interval(0.96, 1.0),
         "above 0.5"),
        ("uniform attention", "Does the model fail without attention?", None, None, "interval holds chance"),
    ]  # fmt: skip
    return tuple(
        VerdictRow(rule=rule, question=question, value=value, interval=ends, needed=needed, passed=mark)
        for (rule, question, value, ends, needed), mark in zip(texts, passed, strict=True)
    )


def invented_evidence(seed: int = 0) -> Evidence:
    """Return evidence with all parts, with values of the magnitude of real runs."""
    numbers = _Numbers(seed)
    best = HeadPosition(layer=2, head=2)
    control = Control(
        run="uniform_0",
        seed=0,
        languages={
            language: {
                kind: AccuracyCell(
                    task_accuracy=task, candidate_accuracy=0.44, interval=Interval(0.41, 0.47), chance=0.44
                )
                for kind, task in (("set", 0.93), ("role", 0.46))
            }
            for language in LANGUAGES
        },
        as_expected=True,
        expected="Role cues near chance, for attention that is the same for all words cannot carry order.",
        observed="Role cues 46.0 % at a chance of 44.0 %.",
    )
    accuracies = {"raw": 0.95, "norm": 0.94, "rollout": 0.8, "flow": 0.79, "value_zeroing": 0.9,
                  "integrated_gradients": 0.88}  # fmt: skip
    return Evidence(
        seed=seed,
        split="test",
        head=ChosenHead(layer=2, head=2, chosen_on="dev"),
        languages={
            language: LanguageScores(
                **_cell(0.96, 0.95),
                set=Cell(**_cell(0.98, 0.96)),
                role=Cell(**_cell(0.92, 0.91)),
                types={name: Cell(**_cell(0.95, 0.93)) for name in ("gender", "voice")},
                worst_template=WorstTemplate(
                    template="en/reflexive/59", items=36, task_accuracy=0.5, candidate_accuracy=0.39
                ),
            )
            for language in LANGUAGES
        },
        strata={
            language: {name: Cell(**_cell(0.6, 0.58)) for name in ("cataphora", "distractor_only", "invented")}
            for language in LANGUAGES
        },
        dropped={},
        untrained_models=20,
        train_seconds=469.9,
        protocol=FixedProtocol(
            metric="candidate_accuracy", map="raw", direction="pronoun_to_candidate", split="test", alpha=0.05,
            hash="0123456789abcdef",
        ),
        significance={
            language: {kind: Significance(p=0.0001, p_holm=0.0004) for kind in ("set", "role")}
            for language in LANGUAGES
        },
        effects={
            language: {
                kind: Effects(
                    meaning=numbers.effect(0.83), position=numbers.effect(0.02), entity=numbers.effect(-0.01)
                )
                for kind in GROUPS
            }
            for language in LANGUAGES
        },
        factors={
            "type": numbers.factor("gender", "number", "selection", "animacy", "causality", "voice", "reflexive"),
            "gender": numbers.factor("feminine", "masculine", "neuter"),
            "number": numbers.factor("singular", "plural"),
            "distance": numbers.factor("1–4", "5–8", "9 or more"),
            "candidates": numbers.factor("2", "3"),
            "template": numbers.factor(*(f"en/type/{number}" for number in range(12))),
        },
        further_scores={
            language: {
                kind: FurtherScores(
                    mrr=0.97, mas=0.91, mass_per_token=0.8, reverse_candidate_accuracy=0.55,
                    agreement=Agreement(kappa=0.9, interval=Interval(0.87, 0.93)),
                )
                for kind in GROUPS
            }
            for language in LANGUAGES
        },
        maps={
            name: MapScores(
                granularity="head" if name in ("raw", "norm") else "layer",
                head=best if name in ("raw", "norm") else HeadPosition(layer=2),
                items=800,
                skipped=0,
                languages={
                    language: {
                        kind: MapCell(candidate_accuracy=value, antecedent_mass=value - 0.1, interval=_span(value))
                        for kind in GROUPS
                    }
                    for language in LANGUAGES
                },
            )
            for name, value in accuracies.items()
        },
        pronoun_specificity={
            language: {
                kind: Specificity(items=300, pronoun_mass=0.81, best_other_mass=0.36, ratio=2.25, difference=0.45,
                                  interval=Interval(0.4, 0.5))
                for kind in ("all", "set", "role")
            }
            for language in LANGUAGES
        },
        head_roles=tuple(
            HeadRoles(
                layer=layer,
                head=head,
                roles=((("positional",), ("special",), (), ("cue",))[head] if layer < 2 else ("antecedent",)),
                positional=PositionalShare(offset=-1, share=0.93 if head == 0 and layer < 2 else 0.2),
                special=0.1,
                cue=0.2,
                antecedent=AntecedentLead(accuracy_over_best_baseline=numbers.about(0.4 if layer == 2 else 0.05)),
            )
            for layer in range(LAYERS)
            for head in range(HEADS)
        ),
        causal=Causal(
            items=1600,
            head=best,
            languages={
                language: {kind: numbers.causal(number) for number, kind in enumerate(GROUPS)}
                for language in LANGUAGES
            },
        ),
        controls={
            "uniform": control,
            "frozen_query_key": replace(control, as_expected=False),
            "shuffled_labels": None,
            "no_positions": None,
        },
        verdict={
            "en": {
                "set": Verdict(verdict="supported", rows=_rules(*[True] * 6)),
                "role": Verdict(verdict="not yet controlled", rows=_rules(*[True] * 5, None)),
            },
            "zh": {
                "set": Verdict(verdict="supported", rows=_rules(*[True] * 6)),
                "role": Verdict(verdict="not supported", rows=_rules(True, True, False, True, True, None)),
            },
        },
    )  # fmt: skip


def invented_sentence(number: int, layers: int = LAYERS, heads: int = HEADS, text: str = "") -> dict[str, Any]:
    """Return an explorer entry; every third answer is wrong, and the languages alternate."""
    chinese = bool(number % 2)
    words = (text or (CHINESE if chinese else ENGLISH)).split()
    count = len(words)
    random = np.random.default_rng(number)

    def maps(layers: int, heads: int, sharp: bool) -> NDArray[np.float64]:
        weights = random.exponential(size=(layers, heads, count, count)) ** 2
        pronoun, antecedent = (13, 4) if chinese else (11, 9)
        if sharp and count > 14:
            weights[-1, 2 % heads, pronoun, antecedent] = 60.0
        weights /= weights.sum(axis=-1, keepdims=True)
        return weights

    pronoun, raw = 13 if chinese else 11, maps(layers, heads, True)
    return {
        "id": f"{'zh' if chinese else 'en'}-{number}",
        "text": " ".join(words[1:-1]) if not chinese else "".join(words[1:-1]),
        "language": "zh" if chinese else "en",
        "kind": "role" if number % 4 < 2 else "set",
        "type": "causality",
        "words": words,
        "pronoun": [pronoun],
        "pronoun_rows": raw[:, :, pronoun % count].tolist(),
        "antecedents": [[4]] if chinese else [[7, 8, 9]],
        "distractors": [[10]] if chinese else [[3, 4, 5]],
        "special": [0, count - 1],
        "answer": "小红" if chinese else "the young queen",
        "right": number % 3 != 2,
        "head_right": number % 5 != 3,
        "maps": {"raw": pack_map(raw)}
        if text
        else {
            "raw": pack_map(raw),
            "norm": pack_map(maps(layers, heads, True)),
            "rollout": pack_map(maps(layers, 1, False)),
            "value_zeroing": pack_map(maps(layers, 1, False)),
        },
    }


def invented_validations() -> list[dict[str, float]]:
    """Return ten validations of a training run, with the scores of all heads."""
    names = [(layer, head) for layer in range(LAYERS) for head in range(HEADS)]
    return [
        {
            "step": 600 * (round_ + 1),
            "validation/accuracy": 1 - 0.5 / (1 + round_),
            **{
                f"attention_candidate_accuracy/layer_{layer}_head_{head}": 0.45
                + 0.5 * (layer == 2) * round_ / 10 * (head + 1) / 4
                for layer, head in names
            },
        }
        for round_ in range(10)
    ]


@pytest.fixture(scope="session")
def level() -> Level:
    """Return one level of the corpus of compositions."""
    return Level(
        items=80,
        task_accuracy=0.9,
        candidate_accuracy=0.85,
        octad_accuracy=0.7,
        antecedent_mass=0.6,
        best_shortcut=Shortcut(name="boosted_trees", accuracy=0.52),
        shortcuts={"table_of_wordings": 0.5, "boosted_trees": 0.52},
        rule_model=1.0,
        random_init=0.45,
        intervals=LevelIntervals(task_accuracy=Interval(0.8, 0.95), candidate_accuracy=None, antecedent_mass=None),
    )


@pytest.fixture(scope="session")
def evidence() -> Evidence:
    """Return invented evidence on one run."""
    return invented_evidence()


@pytest.fixture(scope="session")
def sentences() -> list[dict[str, Any]]:
    """Return sixty-four invented explorer entries."""
    return [invented_sentence(number) for number in range(64)]


@pytest.fixture(scope="session")
def validations() -> list[dict[str, float]]:
    """Return ten validations of a training run."""
    return invented_validations()


@pytest.fixture(scope="session")
def long_sentence() -> dict[str, Any]:
    """Return an explorer entry with 256 words and 12 layers of 12 heads."""
    words = " ".join(f"word{number}" for number in range(254))
    return invented_sentence(0, layers=12, heads=12, text=f"[CLS] {words} [SEP]")
