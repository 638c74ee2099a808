"""Verdict on whether a run's head picks antecedents, by the same rules for every run, and protocol with its hash."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from anaphora.analysis.evidence import plan as settings
from anaphora.analysis.evidence.evidence import (
    VERDICT_SCOPE,
    Evidence,
    FixedProtocol,
    Verdict,
    VerdictRow,
    claim_groups,
    in_group,
)
from anaphora.analysis.evidence.plan import CONTROLS
from anaphora.analysis.results.causal import CausalCell
from anaphora.analysis.results.scores import AccuracyCell, Cell, Groups
from anaphora.analysis.scores.measures.effects import Significance
from anaphora.analysis.scores.measures.specificity import Specificity
from anaphora.base.translation import N_
from anaphora.settings.run import Config, MovedData, to_plain

RULES: dict[str, dict[str, float]] = tomllib.loads(Path(__file__).with_name("rules.toml").read_text(encoding="utf-8"))
"""Thresholds of the verdict's rules from rules.toml, by section."""
NEAR_CHANCE = RULES["controls"]["near_chance"]
FIXED: dict[str, float | str] = {
    "scope": VERDICT_SCOPE,
    "patched_pairs": "that differ in one word; where there are none, all",
    **{f"{section}_{name}": value for section, rules in RULES.items() for name, value in rules.items()},
}
"""Rules of the verdict that are included in the protocol's hash."""

UNITS = {
    "significance": "p",
    "lift": "times",
    "quad accuracy": "share",
    "attention knockout": "share difference",
    "attention-pattern patching": "share",
    "the head's edge to the antecedent": "points",
    "the head's other edges": "points",
    "the pronoun and no other word": "times",
    "uniform attention": "share",
    "trained controls": "count",
}
"""Unit of the measured value of each rule, as `report.numbers.format_in_unit` knows it."""

ALWAYS_FITTED = {"random_init_95", "best_offset"}
"""Baselines that every group of items has if untrained models were measured and training items are available."""

SUPPORTED, NOT_SUPPORTED, NOT_CONTROLLED = N_("supported"), N_("not supported"), N_("not yet controlled")
_UNMEASURED: tuple[None, None] = (None, None)  # value and interval


def verdict(evidence: Evidence, alpha: float) -> Groups[Verdict]:
    """Return verdicts on the claim "this head picks antecedents, and the answer depends on its layer".

    The result is {language: {kind: verdict}}, where `kind` is the cue category: "set" (the words alone determine the
    antecedent, in any order) or "role" (word order and roles determine it). A language without
    these categories has the kind "all".

    A verdict is "not yet controlled" unless all of `CONTROLS` are trained. Otherwise it is "supported" if every rule
    (criterion) passes, and "not supported" if not. A rule whose value was not measured does not pass.

    Args:
        alpha: significance level of the rule on candidate accuracy.
    """
    return _verdicts(evidence, alpha, _rows_of_layer)


def verdict_at_head(evidence: Evidence, alpha: float) -> Groups[Verdict]:
    """Return verdicts as `verdict` does, but with rules on causal tests that edit the chosen head alone."""
    return _verdicts(evidence, alpha, _rows_of_head)


CausalRows = Callable[[CausalCell | None, Specificity | None], list[VerdictRow]]


def _verdicts(evidence: Evidence, alpha: float, causal_rows: CausalRows) -> Groups[Verdict]:
    controls = evidence.controls or {}
    trained, uniform = sum(controls.get(name) is not None for name in CONTROLS), controls.get("uniform")
    p_values = evidence.significance if evidence.is_of_held_out_items else None
    verdicts: Groups[Verdict] = {}
    for language, kind, cell in claim_groups(evidence.scores):
        causal = in_group(evidence.causal_cells, language, kind)
        rows = [
            _significance(in_group(p_values, language, kind), alpha),
            _lift(cell),
            _quads(cell),
            *causal_rows(causal, in_group(evidence.pronoun_specificity, language, kind)),
        ]
        if kind == "role":
            rows.append(_uniform(in_group(uniform.languages if uniform else None, language, kind)))
        rows.append(_controls(trained))
        result = SUPPORTED if all(row.passed is True for row in rows) else NOT_SUPPORTED
        name = result if trained == len(CONTROLS) else NOT_CONTROLLED
        verdicts.setdefault(language, {})[kind] = Verdict(verdict=name, rows=tuple(rows))
    return verdicts


def _significance(cell: Significance | None, alpha: float) -> VerdictRow:
    p = cell.p_holm if cell else None
    return VerdictRow(
        rule=N_("significance"),
        question=N_(
            "Does the head find the antecedent more often than chance would, after correction for all languages and "
            "kinds?"
        ),
        value=p,
        interval=None,
        needed=N_("p < {0}").format(f"{alpha:g}"),
        passed=None if p is None else p < alpha,
    )


def _lift(cell: Cell) -> VerdictRow:
    ends, above = cell.intervals.lift, RULES["scores"]["lift_above"]
    return VerdictRow(
        rule=N_("lift"),
        question=N_("Does the antecedent get more weight than its share of the sentence?"),
        value=cell.lift,
        interval=ends,
        needed=N_("interval above {0}").format(f"{above:g}"),
        passed=None if ends is None else ends.low > above,
    )


def _quads(cell: Cell) -> VerdictRow:
    """Check whether the head's quad accuracy exceeds every baseline's accuracy on single items.

    Quad accuracy is the share of quads (two cues, each with both orders of the names) in which the head is right on all
    four items. A baseline's accuracy on single items is an upper limit of its quad accuracy.
    """
    quad = cell.quad_accuracy
    listed = {"chance": cell.chance, **cell.baselines}
    known = {name: value for name, value in listed.items() if value is not None}
    best = max(known, key=lambda name: known[name], default=None)
    passed = None
    if quad is not None and best is not None:
        # Without untrained models or training items some baselines are missing: the rule can fail, but cannot pass.
        passed = quad > known[best] and (True if known.keys() >= ALWAYS_FITTED else None)
    named = "" if best is None else f" (best: {best.replace('_', ' ')} {known[best]:.3f})"
    return VerdictRow(
        rule=N_("quad accuracy"),
        question=N_("Is it right in all four sentences of a quad more often than any baseline is in a single one?"),
        value=quad,
        interval=cell.intervals.quad_accuracy,
        needed=N_("above every baseline") + named,
        passed=passed,
    )


def _rows_of_layer(causal: CausalCell | None, _specificity: Specificity | None) -> list[VerdictRow]:
    """Check the rules on causal tests that edit all heads of the chosen head's layer together.

    Patching uses minimal pairs with different antecedents in which the model answers both items correctly: those that
    differ in one word or, if there are none, all of them. The rule on patching is not decided if its value has no
    interval, for example because all pairs come from one template.
    """
    knockout = causal.knockout.get(VERDICT_SCOPE) if causal else None
    lost, lost_ends = (
        (knockout.gold_minus_matched.value, knockout.gold_minus_matched.interval) if knockout else _UNMEASURED
    )
    patching = causal.pattern_patching if causal else None
    flipped, flipped_ends = (patching.used.layer.flipped, patching.used.layer.interval) if patching else _UNMEASURED
    limits = RULES["layer"]
    return [
        VerdictRow(
            rule=N_("attention knockout"),
            question=N_(
                "Does knocking out the edge from pronoun to antecedent in the head's layer cost more right answers "
                "than knocking out matched edges?"
            ),
            value=lost,
            interval=lost_ends,
            needed=N_("interval above {0} points").format(f"{100 * limits['knockout_above']:g}"),
            passed=None if lost_ends is None else lost_ends.low > limits["knockout_above"],
        ),
        VerdictRow(
            rule=N_("attention-pattern patching"),
            question=N_(
                "Does the answer follow when the pronoun's rows in that layer are replaced by those of the minimal "
                "pair's other sentence, aligned word by word (no pair differs in one word only)?"
            )
            if patching and patching.aligned and patching.aligned.pairs and patching.used is patching.aligned
            else N_(
                "Does the answer follow when the pronoun's rows in that layer are replaced by those of the minimal "
                "pair's other sentence?"
            ),
            value=flipped,
            interval=flipped_ends,
            needed=N_("more than {0} % of right answers").format(f"{100 * limits['flipped_above']:g}"),
            passed=None if flipped is None or flipped_ends is None else flipped > limits["flipped_above"],
        ),
    ]


def _rows_of_head(causal: CausalCell | None, specificity: Specificity | None) -> list[VerdictRow]:
    """Check the rules on causal tests that edit the chosen head alone, and the rule "the pronoun and no other word".

    The value of "the pronoun and no other word" is the weight from the pronoun to the antecedent, divided by the
    largest weight from another word to the antecedent. This rule is decided if the difference of these two weights has
    an interval. Every other rule is decided if its value has an interval.
    """
    alone = causal.head_level if causal else None
    lost, lost_ends = (alone.antecedent_points, alone.antecedent_interval) if alone else _UNMEASURED
    others, others_ends = (alone.other_edges_points, alone.other_edges_interval) if alone else _UNMEASURED
    flipped, flipped_ends = (alone.patch_flips, alone.patch_interval) if alone else _UNMEASURED
    ratio, is_determined = (specificity.ratio, specificity.interval is not None) if specificity else (None, False)
    limits = RULES["head"]
    return [
        VerdictRow(
            rule=N_("the head's edge to the antecedent"),
            question=N_(
                "Does it cost right answers when the head takes nothing along its edge from pronoun to antecedent?"
            ),
            value=lost,
            interval=lost_ends,
            needed=N_("interval above {0} points").format(f"{limits['antecedent_points_above']:g}"),
            passed=None if lost_ends is None else lost_ends.low > limits["antecedent_points_above"],
        ),
        VerdictRow(
            rule=N_("the head's other edges"),
            question=N_("Does it cost little when the head takes nothing along all its other edges from the pronoun?"),
            value=others,
            interval=others_ends,
            needed=N_("at most {0} points").format(f"{limits['other_edges_points_at_most']:g}"),
            passed=None if others is None or others_ends is None else others <= limits["other_edges_points_at_most"],
        ),
        VerdictRow(
            rule=N_("attention-pattern patching"),
            question=N_(
                "Does the answer follow when the head's row is replaced by that of the minimal pair's other sentence, "
                "aligned word by word?"
            ),
            value=flipped,
            interval=flipped_ends,
            needed=N_("at least {0} % of right answers").format(f"{100 * limits['flipped_at_least']:g}"),
            passed=None if flipped is None or flipped_ends is None else flipped >= limits["flipped_at_least"],
        ),
        VerdictRow(
            rule=N_("the pronoun and no other word"),
            question=N_(
                "Does the pronoun give the antecedent more of the head's weight than the best other word of the "
                "sentence does?"
            ),
            value=ratio,
            interval=specificity.ratio_interval if specificity else None,
            needed=N_("at least {0} times").format(f"{limits['ratio_at_least']:g}"),
            passed=None if ratio is None or not is_determined else ratio >= limits["ratio_at_least"],
        ),
    ]


def _uniform(cell: AccuracyCell | None) -> VerdictRow:
    accuracy, chance = (cell.task_accuracy, cell.chance) if cell else (None, None)
    return VerdictRow(
        rule=N_("uniform attention"),
        question=N_("Is the task out of reach for the same model, trained in the same way, with uniform attention?"),
        value=accuracy,
        interval=None,
        needed=N_("task accuracy within {0} points of chance").format(f"{100 * NEAR_CHANCE:g}")
        + (f" ({chance:.3f})" if chance else ""),
        passed=near_chance(accuracy, chance),
    )


def _controls(trained: int) -> VerdictRow:
    return VerdictRow(
        rule=N_("trained controls"),
        question=N_("Have the controls been trained with the same data, steps and stopping rule?"),
        value=trained,
        interval=None,
        needed=N_("{0} of {1}").format(len(CONTROLS), len(CONTROLS)),
        passed=True if trained == len(CONTROLS) else None,
    )


def near_chance(accuracy: float | None, chance: float | None) -> bool | None:
    """Return whether an accuracy is within `NEAR_CHANCE` of chance; None if either value is unknown."""
    return None if accuracy is None or chance is None else round(abs(accuracy - chance), 6) <= NEAR_CHANCE


METRIC = "candidate_accuracy"
"""Main measure: the share of items in which the antecedent is the strongest candidate."""
MAP = "raw"
"""Kind of attention map for the main measure: raw weights. Other kinds are reported separately."""
DIRECTION = "pronoun_to_candidate"
"""Direction of attention for the main measure: the pronoun's row. The opposite direction is reported separately."""


def protocol(fixed: settings.Protocol, split: str, config: Config | str) -> FixedProtocol:
    """Return the protocol of an evaluation, with its hash, as a report shows it.

    The hash covers the protocol, the rules of the verdict, and the run's settings (for a model from another library,
    its name). The run's name, output folder and settings for resuming are left out, so that a copy of a run has the
    same hash.
    """
    unhashed = FixedProtocol(metric=METRIC, map=MAP, direction=DIRECTION, split=split, alpha=fixed.alpha, hash="")
    parts = {name: value for name, value in vars(unhashed).items() if name != "hash"}
    run_settings: Any = config
    if isinstance(config, Config):
        run_settings = to_plain(replace(config, name=None, output="", resume=None, resume_data=MovedData()))
    written = json.dumps(
        {"protocol": parts, "rule": FIXED, "settings": run_settings}, sort_keys=True, ensure_ascii=False
    )
    return replace(unhashed, hash=hashlib.sha256(written.encode()).hexdigest()[:16])
