"""Flat tables of the evidence for other programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from anaphora.analysis.evidence.comparison import RowDivergence
from anaphora.analysis.evidence.evidence import Evidence
from anaphora.analysis.results.causal import CausalCell
from anaphora.analysis.results.scores import Groups
from anaphora.analysis.results.typed_json import to_json

Row = dict[str, Any]


def every_table(evidence: Evidence) -> dict[str, list[Row]]:
    """Return the tables of the evidence by name, with flat rows; a part that was not measured gives no rows.

    Not every part has a table: the main scores, strata, levels and specificity, for instance, have none.
    """
    return {
        "significance": list(_group_rows(evidence.significance)),
        "effects": [
            {**row, "effect": name, **_flatten(effect)}
            for row, cell in _groups(evidence.effects)
            for name, effect in to_json(cell).items()
        ],
        "further_scores": list(_group_rows(evidence.further_scores)),
        "factors": [
            {"factor": factor, "language": language, **_flatten(to_json(cell))}
            for factor, languages in (evidence.factors or {}).items()
            for language, cells in languages.items()
            for cell in cells
        ],
        "perturbations": [
            {"perturbation": name, **row}
            for name, languages in (evidence.perturbations or {}).items()
            for row in _group_rows(languages)
        ],
        "maps": [
            {
                "map": name,
                "layer": scores.head.layer if scores.head else None,
                "head": scores.head.head if scores.head else None,
                **row,
            }
            for name, scores in (evidence.maps or {}).items()
            for row in _group_rows(scores.languages)
        ],
        "head_roles": [_flatten(to_json(roles)) for roles in evidence.head_roles or ()],
        "controls": [
            {"control": name, "seed": control.seed, **row}
            for name, control in (evidence.controls or {}).items()
            if control
            for row in _group_rows(control.languages)
        ],
        **{
            name: [
                {**row, "verdict": cell.verdict, **_flatten(to_json(rule))}
                for row, cell in _groups(part)
                for rule in cell.rows
            ]
            for name, part in (("verdict", evidence.verdict), ("verdict_at_head", evidence.verdict_at_head))
        },
        **_causal_tables(evidence.causal_cells),
    }


def divergence_rows(divergences: Sequence[RowDivergence]) -> list[Row]:
    """Return the divergences between the attention rows of runs as flat rows."""
    return [_flatten(to_json(row)) for row in divergences]


_NO_SPREAD = {"median": None, "lowest": None, "highest": None}


def _causal_tables(languages: Groups[CausalCell]) -> dict[str, list[Row]]:
    """Return the tables of the causal tests, by name."""
    cells = list(_groups(languages))
    return {
        "knockout": [
            {**row, "scope": scope, "edge": edge, **_flatten(to_json(loss))}
            for row, cell in cells
            for scope, knockout in cell.knockout.items()
            for edge, loss in {**knockout.edges, "gold_minus_matched": knockout.gold_minus_matched}.items()
        ],
        "heads_alone": [
            {**row, **_flatten(to_json(step))} for row, cell in cells for step in cell.head_ablation.single
        ],
        "heads_together": [
            {**row, **_flatten({**to_json(step), "random": to_json(step.random) or _NO_SPREAD})}
            for row, cell in cells
            for step in cell.head_ablation.cumulative
        ],
        "pattern_patching": [
            {**row, **patched} for row, cell in cells for patched in _patching_rows(to_json(cell.pattern_patching))
        ],
        "dose_response": [
            {**row, "map": name, **_flatten(to_json(correlation))}
            for row, cell in cells
            for name, correlation in cell.dose_response.items()
        ],
    }


def _patching_rows(patching: Mapping[str, Any]) -> Iterator[Row]:
    for name in ("head", "layer", "all_layers"):
        yield {"heads": name, "aligned": False, "pairs": patching["pairs"], **_flatten(patching[name])}
    if aligned := patching.get("aligned"):
        for name in ("head", "layer"):
            yield {"heads": name, "aligned": True, "pairs": aligned["pairs"], **_flatten(aligned[name])}
    for step in patching["cumulative"]:
        best = f"best {step['k']}"
        yield {"heads": best, "aligned": False, "pairs": patching["pairs"], "flipped": step["flipped"]}


def _groups(part: Groups[Any] | None) -> Iterator[tuple[Row, Any]]:
    """Yield the columns "language" and "kind" of each group with its measurement."""
    for language, kinds in (part or {}).items():
        for kind, cell in kinds.items():
            yield {"language": language, "kind": kind}, cell


def _group_rows(part: Groups[Any] | None) -> Iterator[Row]:
    for row, cell in _groups(part):
        yield {**row, **_flatten(to_json(cell))}


def _flatten(row: Mapping[str, Any], before: str = "") -> Row:
    """Flatten a nested mapping: join keys by "_", split "interval" into low and high, and write lists as text."""
    flat: Row = {}
    for name, value in row.items():
        if isinstance(value, Mapping):
            flat |= _flatten(value, f"{before}{name}_")
        elif name == "interval":
            flat[f"{before}low"], flat[f"{before}high"] = value or (None, None)
        elif isinstance(value, list):
            flat[f"{before}{name}"] = " ".join(
                "-".join(map(str, each)) if isinstance(each, list) else str(each) for each in value
            )
        else:
            flat[f"{before}{name}"] = value
    return flat
