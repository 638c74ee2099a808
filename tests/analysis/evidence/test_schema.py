from __future__ import annotations

import json
import runpy
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from anaphora.analysis.evidence.evidence import Evidence
from anaphora.base.errors import UserError

SCRIPT = Path(__file__).parents[3] / "docs" / "make_schema.py"


def metrics_schema() -> dict[str, Any]:
    schema: dict[str, Any] = runpy.run_path(str(SCRIPT))["metrics_schema"]()
    return schema


CELL = {
    "items": 4,
    **{f"{name}_accuracy": 0.1 * number for number, name in enumerate(("task", "candidate", "quad", "minimal_pair"))},
    "open_accuracy": 0.5,
    "focal_accuracy": None,
    "antecedent_mass": 0.7,
    "lift": 2.5,
    "chance": 0.45,
    "intervals": {
        **{f"{name}_accuracy": [0.01, 0.02] for name in ("task", "candidate", "quad", "minimal_pair", "open", "focal")},
        "antecedent_mass": None,
        "lift": [1.0, 2],
    },
}
LOSS = {"drop": 0.123456, "interval": [0.1, 0.2], "mass_removed": None}
FLIPPED = {"flipped": 0.87, "interval": None}
CONTENT: dict[str, Any] = {
    "version": 2,
    "seed": 3,
    "split": "test",
    "head": {"layer": 2, "head": 0, "chosen_on": "dev"},
    "languages": {"en": {**CELL, "baselines": {"nearest": 0.4, "random_init": None}, "role": CELL,
                         "types": {"voice": CELL}, "worst_template": None}},
    "strata": {"en": {"distractor_only": CELL}},
    "dropped": {"no antecedent": 2},
    "untrained_models": 0,
    "train_seconds": 11.5,
    "effects": {"en": {"role": {name: {"value": 0.1, "interval": [0.0, 0.2], "quads": 377}
                                for name in ("meaning", "position", "entity")}}},
    "further_scores": {"en": {"all": {"mrr": 0.9, "mas": 0.8, "mass_per_token": 0.7,
                                   "agreement": {"kappa": None, "interval": None},
                                   "reverse_candidate_accuracy": None}}},
    "head_roles": [{"layer": 0, "head": 1, "roles": ["positional", "cue"],
                    "positional": {"offset": -1, "share": 0.9}, "special": 0.1, "cue": 0.6,
                    "antecedent": {"accuracy_over_best_baseline": -0.1}}],
    "maps": {"flow": {"granularity": "layer", "head": {"layer": 1}, "items": 4, "skipped": 0,
                      "en": {"all": {"candidate_accuracy": 0.5, "antecedent_mass": 0.4, "interval": [0.4, 0.6]}}}},
    "causal": {
        "items": 4,
        "head": {"layer": 2, "head": 0},
        "languages": {"en": {"all": {
            "items": 4,
            "task_accuracy": 0.95,
            "knockout": {"all_layers": {"gold": LOSS, "value_zeroing": LOSS,
                                         "gold_minus_matched": {"value": 0.3, "interval": None}}},
            "head_ablation": {"single": [{"layer": 0, "head": 1, "mode": "zero", "drop": 0.0, "interval": None}],
                      "cumulative": [{"k": 1, "heads": [[2, 0]], "drop": 0.2,
                                      "random": {"median": 0.1, "lowest": 0.0, "highest": 0.3}}]},
            "pattern_patching": {"pairs": 2, "skipped": 0, "head": FLIPPED, "layer": FLIPPED,
                      "cumulative": [{"k": 1, "flipped": 0.5}], "all_layers": FLIPPED},
            "dose_response": {"value_zeroing": {"rho": 0.7, "interval": [0.6, 0.8]}},
        }}},
    },
    "provenance": {"items": 800, "untrained": 20, "weights": "a", "data": "b", "code": "c"},
    "controls": {"no_positions": None, "uniform": {"run": "u", "seed": 0, "languages": {}, "as_expected": None,
                                                   "expected": "x", "observed": "y"}},
    "verdict": {"en": {"all": {"verdict": "not supported", "rows": [
        {"rule": rule, "question": "q", "value": 4, "interval": None, "needed": "n", "passed": False}
        for rule in ("attention knockout", "attention-pattern patching", "lift")
    ]}}},
}  # fmt: skip
"""Content of a metrics.json with all parts."""


def test_evidence_goes_through_json_and_back_with_every_digit() -> None:
    evidence = Evidence.from_json(CONTENT)
    content = json.loads(json.dumps(evidence.to_json(), allow_nan=False))
    assert Evidence.from_json(content) == evidence
    assert Evidence.from_json(content).to_json() == content == evidence.to_json()
    unmeasured: dict[str, Any] = {each.name: None for each in fields(Evidence) if each.default is None}
    scores = replace(evidence, **unmeasured)
    assert "causal" not in scores.to_json()


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("languages/en/lift", "high", "languages.en.lift: 'high' is not number"),
        ("languages/en/lift", True, "languages.en.lift: True is not number"),
        ("languages/en/items", None, "languages.en.items: None is not integer"),
        ("languages/en/intervals/lift", [1], r"languages.en.intervals.lift: \[1\] is not two numbers"),
        ("languages/en/novel", 1, "languages.en.novel: there is no such key"),
        ("head", {"layer": 1}, "head.head: the key is missing"),
        ("causal/languages/en/all/knockout/all_layers/novel", 3, "novel: 3 is not an object"),
    ],
)
def test_what_does_not_fit_the_schema_is_named(path: str, value: Any, message: str) -> None:
    content = Evidence.from_json(CONTENT).to_json()
    *parents, last = path.split("/")
    part = content
    for name in parents:
        part = part[name]
    part[last] = value
    with pytest.raises(UserError, match=message):
        Evidence.from_json(content)


def test_the_schema_file_is_current() -> None:
    stored = SCRIPT.with_name("metrics.schema.json").read_text(encoding="utf-8")
    assert json.loads(stored) == metrics_schema(), "run python docs/make_schema.py"


def test_the_schema_accepts_what_is_written_and_no_other_version() -> None:
    schema = metrics_schema()
    assert not list(errors(Evidence.from_json(CONTENT).to_json(), schema, schema))
    assert list(errors({**CONTENT, "version": 1}, schema, schema))


def errors(value: Any, schema: dict[str, Any], whole: dict[str, Any]) -> list[str]:
    """Validate a value with the subset of JSON Schema used in the file, and return the errors."""
    if "$ref" in schema:
        return errors(value, whole["$defs"][schema["$ref"].rpartition("/")[2]], whole)
    if "anyOf" in schema:
        tried = [errors(value, option, whole) for option in schema["anyOf"]]
        return [] if [] in tried else tried[0]
    if "const" in schema:
        return [] if value == schema["const"] else [f"{value} is not {schema['const']}"]
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "integer": int}
    expected = kinds.get(schema["type"], (int, float))
    if not isinstance(value, expected) or (isinstance(value, bool) and expected is not bool):
        return [f"{value!r} is no {schema['type']}"]
    if isinstance(value, dict):
        known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
        messages = [f"{name} is missing" for name in schema.get("required", ()) if name not in value]
        for name, inner in value.items():
            if name not in known and others is False:
                messages.append(f"{name} is unknown")
            else:
                messages += errors(inner, known.get(name, others), whole)
        return messages
    if isinstance(value, list):
        listed = schema.get("prefixItems", [schema.get("items")] * len(value))
        sizes = schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value))
        inside = [error for inner, kind in zip(value, listed, strict=False) for error in errors(inner, kind, whole)]
        return inside if sizes else [f"{value} has another length"]
    return []
