"""Invented evidence in the shape of `metrics.json` and of the explorer, for the figures and the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from anaphora.report.packing import pack_map

LAYERS, HEADS = 3, 4
ENGLISH = "[CLS] Yesterday , the nervous king thanked the young queen because she was extraordinarily generous . [SEP]"
CHINESE = "[CLS] 那天 下午 ， 小红 在 博物馆 里 遇见 了 图书馆管理员 ， 因为 她 很 高兴 。 [SEP]"


def _span(value: float, width: float = 0.03) -> list[float]:
    return [round(max(value - width, -1.0), 6), round(min(value + width, 1.0), 6)]


def invented_metrics(seed: int = 0) -> dict[str, Any]:
    """Every key of the contract, filled with numbers of the size that a real run gives."""
    random = np.random.default_rng(seed)

    def about(value: float, spread: float = 0.03) -> float:
        return round(float(np.clip(value + spread * random.standard_normal(), -1, 1)), 6)

    def cell(task: float, pointing: float) -> dict[str, Any]:
        names = {"task_accuracy": task, "candidate_accuracy": pointing, "quad_accuracy": pointing - 0.06,
                 "twin_accuracy": pointing - 0.05, "open_accuracy": pointing - 0.01, "focal_accuracy": pointing + 0.01,
                 "antecedent_mass": pointing - 0.08}  # fmt: skip
        return {
            "items": 1510,
            **names,
            "lift": 19.3,
            "chance": 0.44,
            "intervals": {**{name: _span(value) for name, value in names.items()}, "lift": [18.3, 20.3]},
            "baselines": {
                "chance": 0.4545, "nearest": 0.4545, "first": 0.4545, "subject": 0.4545, "longest": 0.4545,
                "most_mentioned": 0.4545, "best_offset": 0.4512, "odd_one_out": 0.4545, "bag_of_words": 0.4545,
                "bag_with_interactions": 0.4489, "random_init": 0.4476, "random_init_95": 0.4727,
            },
        }  # fmt: skip

    worst = {"template": "en/reflexive/59", "items": 36, "task_accuracy": 0.5, "candidate_accuracy": 0.39}
    languages = {
        language: {
            **cell(0.96, 0.95),
            "set": cell(0.98, 0.96),
            "role": cell(0.92, 0.91),
            "types": {name: cell(0.95, 0.93) for name in ("gender", "voice")},
            "worst_template": worst,
        }
        for language in ("en", "zh")
    }
    kinds = ("set", "role", "all")

    def effect(value: float) -> dict[str, Any]:
        value = about(value, 0.02)
        return {"value": value, "interval": _span(value), "blocks": 377}

    def cut(drop: float, mass: float) -> dict[str, Any]:
        drop = about(drop, 0.01)
        return {"drop": drop, "interval": _span(drop, 0.04), "mass_removed": about(mass, 0.02)}

    def scope(strength: float) -> dict[str, Any]:
        return {
            "gold": cut(0.45 * strength, 0.85),
            "distractor": cut(-0.005, 0.05),
            "cue": cut(0.3, 0.1),
            "matched_query": cut(0.01, 0.8),
            "matched_heads": cut(0.015, 0.3),
            "matched_distance": cut(0.002, 0.02),
            "gold_minus_matched": {"value": 0.44 * strength, "interval": _span(0.44 * strength)},
            "value_zero": cut(0.4 * strength, 0.85),
        }

    def causal(number: int) -> dict[str, Any]:
        heads = [(2, 2), (2, 0), (1, 3), (2, 1), (1, 0), (0, 2)]
        return {
            "items": 400,
            "task_accuracy": 0.96,
            "knock_out": {name: scope(by) for name, by in
                          {"head": 0.5, "layer": 1.0, "window": 1.1, "everywhere": 1.2}.items()},
            "heads": {
                "single": [
                    {"layer": layer, "head": head, "mode": mode,
                     "drop": about(0.3 if (layer, head) == (2, 2) else 0.01), "interval": [-0.01, 0.33]}
                    for mode in ("zero", "mean", "resample", "uniform") for layer in range(LAYERS)
                    for head in range(HEADS)
                ],
                "cumulative": [
                    {"k": k, "heads": [list(one) for one in heads[:k]], "drop": round(0.55 - 0.5 / (k + number), 4),
                     "random": {"median": 0.03 * k, "lowest": 0.0, "highest": 0.07 * k}}
                    for k in range(1, 7)
                ],
            },
            "patch": {
                "pairs": 180, "skipped": 20, "head": {"flipped": 0.62, "interval": [0.55, 0.7]},
                "cumulative": [{"k": k, "flipped": round(1 - 0.4 / k, 4)} for k in range(1, 7)],
                "layer": {"flipped": 0.87, "interval": [0.81, 0.93]},
                "everywhere": {"flipped": 0.985, "interval": [0.96, 1.0]},
            },
            "dose_response": {
                name: {"rho": rho, "interval": _span(rho)}
                for name, rho in {"raw": 0.71, "norm": 0.78, "rollout": 0.66, "flow": 0.64, "value_zeroing": 0.7,
                                  "integrated_gradients": 0.81}.items()
            },
        }  # fmt: skip

    def factor(values: tuple[str, ...]) -> dict[str, Any]:
        return {
            language: [
                {"value": value, "items": 300, "task_accuracy": (task := about(0.93, 0.04)),
                 "candidate_accuracy": task - 0.02, "interval": _span(task - 0.02, 0.04), "antecedent_mass": 0.85,
                 "chance": 0.44}
                for value in values
            ]
            for language in ("en", "zh")
        }  # fmt: skip

    def rules(passed: list[bool | None]) -> list[dict[str, Any]]:
        asked = [
            ("significant", "Is the head above relabelled antecedents, after correction?", 0.0004, None, "p < 0.05"),
            ("lift", "Does the antecedent get more than its share?", 19.3, [18.3, 20.3], "interval above 1"),
            ("quads", "Are whole blocks right more often than any shortcut?", 0.89, [0.83, 0.94], "above 0.45"),
            ("knock-out", "Does cutting the edge hurt more than matched edges?", 0.44, [0.4, 0.48],
             "interval above 0.10"),
            ("pattern patch", "Does the twin’s pattern alone flip the answer?", 0.985, [0.96, 1.0], "above 0.5"),
            ("uniform attention", "Does the model fail without attention?", None, None, "interval holds chance"),
        ]  # fmt: skip
        names = ("rule", "question", "value", "interval", "needed")
        return [{**dict(zip(names, one, strict=True)), "passed": mark} for one, mark in zip(asked, passed, strict=True)]

    control = {
        "run": "uniform_0",
        "seed": 0,
        "languages": {
            language: {
                kind: {"task_accuracy": task, "candidate_accuracy": 0.44, "interval": [0.41, 0.47], "chance": 0.44}
                for kind, task in (("set", 0.93), ("role", 0.46))
            }
            for language in ("en", "zh")
        },
        "as_expected": True,
        "expected": "Role cues near chance, for attention that is the same for all words cannot carry order.",
        "seen": "Role cues 46.0 % at a chance of 44.0 %.",
    }
    best = {"layer": 2, "head": 2}
    return {
        "seed": seed,
        "split": "test",
        "head": {**best, "chosen_on": "dev"},
        "languages": languages,
        "strata": {
            language: {name: cell(0.6, 0.58) for name in ("cataphora", "filler_only", "invented")}
            for language in ("en", "zh")
        },
        "dropped": {},
        "untrained_models": 20,
        "train_seconds": 469.9,
        "protocol": {"metric": "candidate_accuracy", "map": "raw", "direction": "pronoun_to_candidate",
                     "split": "test", "alpha": 0.05, "hash": "0123456789abcdef"},
        "significance": {language: {kind: {"p": 0.0001, "p_holm": 0.0004} for kind in ("set", "role")}
                         for language in ("en", "zh")},
        "effects": {
            language: {
                kind: {"meaning": effect(0.83), "position": effect(0.02), "entity": effect(-0.01)} for kind in kinds
            }
            for language in ("en", "zh")
        },
        "factors": {
            "type": factor(("gender", "number", "selection", "animacy", "causality", "voice", "reflexive")),
            "gender": factor(("feminine", "masculine", "neuter")),
            "number": factor(("singular", "plural")),
            "distance": factor(("1–4", "5–8", "9 or more")),
            "candidates": factor(("2", "3")),
            "template": factor(tuple(f"en/type/{number}" for number in range(12))),
        },
        "more_scores": {
            language: {
                kind: {"mrr": 0.97, "mas": 0.91, "mass_per_token": 0.8,
                       "agreement": {"kappa": 0.9, "interval": [0.87, 0.93]}, "reverse_candidate_accuracy": 0.55}
                for kind in kinds
            }
            for language in ("en", "zh")
        },
        "maps": {
            name: {
                "granularity": "head" if name in ("raw", "norm") else "layer",
                **{
                    language: {
                        kind: {"candidate_accuracy": value, "antecedent_mass": value - 0.1, "interval": _span(value)}
                        for kind in kinds
                    }
                    for language in ("en", "zh")
                },
                "head": best if name in ("raw", "norm") else {"layer": 2},
            }
            for name, value in {"raw": 0.95, "norm": 0.94, "rollout": 0.8, "flow": 0.79, "value_zeroing": 0.9,
                                "integrated_gradients": 0.88}.items()
        },
        "head_roles": [
            {"layer": layer, "head": head,
             "roles": [["positional"], ["special"], [], ["predicate"]][head] if layer < 2 else ["antecedent"],
             "positional": {"offset": -1, "share": 0.93 if head == 0 and layer < 2 else 0.2}, "special": 0.1,
             "predicate": 0.2, "antecedent": {"accuracy_over_best_baseline": about(0.4 if layer == 2 else 0.05)}}
            for layer in range(LAYERS) for head in range(HEADS)
        ],
        "causal": {"items": 1600, "head": best, "languages": {
            language: {kind: causal(number) for number, kind in enumerate(kinds)} for language in ("en", "zh")}},
        "controls": {"uniform": control, "frozen_query_key": {**control, "as_expected": False},
                     "shuffled_labels": None, "no_positions": None},
        "verdict": {
            "en": {"set": {"verdict": "supported", "rows": rules([True] * 6)},
                   "role": {"verdict": "not yet controlled", "rows": rules([True] * 5 + [None])}},
            "zh": {"set": {"verdict": "supported", "rows": rules([True] * 6)},
                   "role": {"verdict": "not supported", "rows": rules([True, True, False, True, True, None])}},
        },
    }  # fmt: skip


def invented_sentence(number: int, layers: int = LAYERS, heads: int = HEADS, text: str = "") -> dict[str, Any]:
    """One entry of the explorer; every third is wrong, the languages take turns."""
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

    return {
        "id": f"{'zh' if chinese else 'en'}-{number}",
        "text": " ".join(words[1:-1]) if not chinese else "".join(words[1:-1]),
        "language": "zh" if chinese else "en",
        "kind": "role" if number % 4 < 2 else "set",
        "type": "causality",
        "words": words,
        "pronoun": 13 if chinese else 11,
        "antecedents": [[4]] if chinese else [[7, 8, 9]],
        "distractors": [[10]] if chinese else [[3, 4, 5]],
        "special": [0, count - 1],
        "answer": "小红" if chinese else "the young queen",
        "right": number % 3 != 2,
        "head_right": number % 5 != 3,
        "maps": {"raw": pack_map(maps(layers, heads, True))}
        if text
        else {
            "raw": pack_map(maps(layers, heads, True)),
            "norm": pack_map(maps(layers, heads, True)),
            "rollout": pack_map(maps(layers, 1, False)),
            "value_zeroing": pack_map(maps(layers, 1, False)),
        },
    }


def invented_validations() -> list[dict[str, float]]:
    """Ten validations of a training, every head's score in each."""
    names = [(layer, head) for layer in range(LAYERS) for head in range(HEADS)]
    return [
        {
            "step": 600 * (round_ + 1),
            "validation/accuracy": 1 - 0.5 / (1 + round_),
            **{
                f"attention_pointing/layer_{layer}_head_{head}": 0.45
                + 0.5 * (layer == 2) * round_ / 10 * (head + 1) / 4
                for layer, head in names
            },
        }
        for round_ in range(10)
    ]


@pytest.fixture(scope="session")
def invent() -> Callable[[], dict[str, Any]]:
    """Makes invented evidence of one run, new at every call."""
    return invented_metrics


@pytest.fixture
def metrics() -> dict[str, Any]:
    """Invented evidence of one run, which a test may change."""
    return invented_metrics()


@pytest.fixture(scope="session")
def explorer() -> dict[str, Any]:
    """Sixty-four invented sentences."""
    return {"sentences": [invented_sentence(number) for number in range(64)]}


@pytest.fixture(scope="session")
def validations() -> list[dict[str, float]]:
    """A training of ten validations."""
    return invented_validations()


@pytest.fixture(scope="session")
def long_sentence() -> dict[str, Any]:
    """256 words, 12 layers of 12 heads."""
    words = " ".join(f"word{number}" for number in range(254))
    return invented_sentence(0, layers=12, heads=12, text=f"[CLS] {words} [SEP]")
