"""Settings of runs that were stored under older keys, by their present names; one way, and reported in one line."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

RENAMED = {
    "task.readout": "task.prediction",
    "task.hidden_words": "task.masked_lm",
    "task.hidden_words_weight": "task.masked_lm_weight",
    "task.twin_contrast": "task.minimal_pair_contrast",
}
"""Present keys by older ones."""

RENAMED_KINDS = {("task.prediction", "no_readout"): "none"}
"""Present kinds by the setting and its older kind."""


REPLACED: dict[str, tuple[str, dict[Any, str]]] = {
    "task.shuffled_labels": ("task.labels", {False: "gold", True: "shuffled"}),
    "trainer.precision": ("trainer.precision", {"16-mixed": "bf16-mixed"}),  # with which the run may be resumed
}
"""Present keys by older ones whose values have changed too, with the present values by the older ones."""


def with_present_keys(stored: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Stored settings under their present keys, and "old -> new" for each that was changed; `stored` stays as it is."""
    settings = _copied(stored)
    changes = []
    for old, new in RENAMED.items():
        group, name = _group_and_name(settings, old)
        if group is not None and name in group:
            group[new.rpartition(".")[2]] = group.pop(name)
            changes.append(f"{old} -> {new}")
    for old, (new, values) in REPLACED.items():
        group, name = _group_and_name(settings, old)
        older = None if group is None else group.get(name)
        if group is not None and isinstance(older, Hashable) and older in values:
            del group[name]
            group[new.rpartition(".")[2]] = values[older]
            if older:  # what was off needs no line in every run
                changes.append(f"{old} -> {new}={values[older]}")
    for (path, old_kind), kind in RENAMED_KINDS.items():
        group, name = _group_and_name(settings, path)
        chosen = None if group is None else group.get(name)
        if isinstance(chosen, dict) and chosen.get("kind") == old_kind:
            chosen["kind"] = kind
            changes.append(f"{path}={old_kind} -> {path}={kind}")
    return settings, changes


def _copied(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _copied(value) if isinstance(value, Mapping) else value for name, value in settings.items()}


def _group_and_name(settings: dict[str, Any], path: str) -> tuple[dict[str, Any] | None, str]:
    *groups, name = path.split(".")
    group: Any = settings
    for each in groups:
        group = group.get(each) if isinstance(group, dict) else None
    return group if isinstance(group, dict) else None, name
