"""metrics.json of version 1, which names no version, read as version 2: keys change, no number does; one way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

RENAMED_KEYS: dict[str, str] = {
    "languages.**.twin_accuracy": "minimal_pair_accuracy",
    "strata.**.twin_accuracy": "minimal_pair_accuracy",
    "strata.*.filler_only": "distractor_only",
    "effects.*.*.*.blocks": "quads",
    "more_scores": "further_scores",
    "head_roles.*.predicate": "cue",
    "causal.languages.*.*.knock_out": "knockout",
    "causal.languages.*.*.knock_out.everywhere": "all_layers",
    "causal.languages.*.*.knock_out.*.value_zero": "value_zeroing",
    "causal.languages.*.*.heads": "head_ablation",
    "causal.languages.*.*.patch": "pattern_patching",
    "causal.languages.*.*.patch.everywhere": "all_layers",
    "examined": "provenance",
    "controls.*.seen": "observed",
}
"""New names of keys by their path in version 1; `*` is any key or place in a list, `**` any number of them."""

RENAMED_VALUES: dict[str, dict[str, str]] = {
    "head_roles.*.roles.*": {"predicate": "cue"},
    "verdict.*.*.rows.*.rule": {
        "knock-out": "attention knockout",
        "pattern patch": "attention-pattern patching",
    },
}
"""New texts by the path at which the old ones stood."""


def with_present_keys(stored: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """The content of a metrics.json as version 2, and whether it was of version 1; `stored` stays as it is."""
    if "version" in stored:
        return dict(stored), False
    return {"version": 2, **_renamed(stored, ())}, True


def control_with_present_keys(stored: Mapping[str, Any]) -> dict[str, Any]:
    """The same for one control of a controls.json, which has no version."""
    content: dict[str, Any] = _renamed(stored, ("controls", "*"))
    return content


def _renamed(value: Any, path: tuple[str, ...]) -> Any:
    if isinstance(value, Mapping):
        return {_new_key((*path, name)): _renamed(one, (*path, name)) for name, one in value.items()}
    if isinstance(value, list):
        return [_renamed(one, (*path, str(number))) for number, one in enumerate(value)]
    if isinstance(value, str):
        return next(
            (texts[value] for old, texts in RENAMED_VALUES.items() if value in texts and _fits(old, path)), value
        )
    return value


def _new_key(path: tuple[str, ...]) -> str:
    return next((new for old, new in RENAMED_KEYS.items() if old.endswith(path[-1]) and _fits(old, path)), path[-1])


def _fits(pattern: str, path: tuple[str, ...]) -> bool:
    return _match(pattern.split("."), list(path))


def _match(pattern: list[str], path: list[str]) -> bool:
    if not pattern or not path:
        return not pattern and not path
    if pattern[0] == "**":
        return _match(pattern[1:], path) or _match(pattern, path[1:])
    return pattern[0] in ("*", path[0]) and _match(pattern[1:], path[1:])
