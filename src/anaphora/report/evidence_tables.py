"""The evidence in `metrics.json` as flat tables, for those who would rather read numbers into another program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

Row = dict[str, Any]
KEYS = {
    "significance": ("language", "kind"),
    "effects": ("language", "kind", "effect"),
    "more_scores": ("language", "kind"),
    "factors": ("factor", "language"),
    "perturbations": ("perturbation", "language", "kind"),
}
"""Tables that are nested dictionaries: what each level's keys are."""


def evidence_tables(metrics: Mapping[str, Any]) -> dict[str, list[Row]]:
    """Every part of the evidence as rows of plain values, by the name of the table; parts not measured are left out."""
    made = {name: list(_nested(metrics.get(name) or {}, keys)) for name, keys in KEYS.items()}
    made |= {
        "maps": list(_maps(metrics.get("maps") or {})),
        "head_roles": [_flat(one) for one in metrics.get("head_roles") or []],
        "controls": list(_controls(metrics.get("controls") or {})),
        "verdict": [
            {"language": language, "kind": kind, "verdict": cell["verdict"], **_flat(row)}
            for language, kinds in (metrics.get("verdict") or {}).items()
            for kind, cell in kinds.items()
            for row in cell["rows"]
        ],
    }
    for name, cell_rows in CAUSAL.items():
        made[name] = [
            {"language": language, "kind": kind, **_flat(row)}
            for language, kinds in ((metrics.get("causal") or {}).get("languages") or {}).items()
            for kind, cell in kinds.items()
            for row in cell_rows(cell)
        ]
    return {name: rows for name, rows in made.items() if rows}


def divergence_rows(apart: Sequence[Mapping[str, Any]]) -> list[Row]:
    """How far the rows of several runs are apart (`analysis.seeds.divergences`), as rows of plain values."""
    return [_flat(row) for row in apart]


def _nested(part: Any, keys: tuple[str, ...], told: Row | None = None) -> Iterator[Row]:
    told = told or {}
    if not keys:
        for row in part if isinstance(part, list) else [part]:
            yield {**told, **_flat(row)}
        return
    for key, inner in part.items():
        yield from _nested(inner, keys[1:], {**told, keys[0]: key})


def _flat(row: Mapping[str, Any], before: str = "") -> Row:
    """Nested values by joined names; an interval as its two ends, a list of heads as text."""
    found: Row = {}
    for name, value in row.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{before}{name}_")
        elif name == "interval":
            found[f"{before}low"], found[f"{before}high"] = value or (None, None)
        elif isinstance(value, list):
            found[f"{before}{name}"] = " ".join(
                "-".join(map(str, one)) if isinstance(one, list) else str(one) for one in value
            )
        else:
            found[f"{before}{name}"] = value
    return found


def _maps(part: Mapping[str, Any]) -> Iterator[Row]:
    for name, found in part.items():
        unit = found.get("head") or {}
        for language, kinds in found.items():
            if isinstance(kinds, Mapping) and kinds is not found.get("head"):
                for kind, cell in kinds.items():
                    yield {
                        "map": name,
                        "layer": unit.get("layer"),
                        "head": unit.get("head"),
                        "language": language,
                        "kind": kind,
                        **_flat(cell),
                    }


def _controls(part: Mapping[str, Any]) -> Iterator[Row]:
    for name, found in part.items():
        for language, kinds in ((found or {}).get("languages") or {}).items():
            for kind, cell in kinds.items():
                yield {"control": name, "seed": found["seed"], "language": language, "kind": kind, **_flat(cell)}


def _knock_outs(cell: Mapping[str, Any]) -> list[Row]:
    return [
        {"scope": scope, "edge": edge, **found}
        for scope, edges in cell["knock_out"].items()
        for edge, found in edges.items()
    ]


def _patches(cell: Mapping[str, Any]) -> list[Row]:
    patch = cell["patch"]
    named = [{"heads": name, **patch[name]} for name in ("head", "layer", "everywhere") if name in patch]
    return named + [{"heads": f"best {one['k']}", "flipped": one["flipped"]} for one in patch["cumulative"]]


def _doses(cell: Mapping[str, Any]) -> list[Row]:
    return [{"map": name, **found} for name, found in cell["dose_response"].items()]


CAUSAL: dict[str, Callable[[Mapping[str, Any]], list[Row]]] = {
    "knock_out": _knock_outs,
    "heads_alone": lambda cell: list(cell["heads"]["single"]),
    "heads_together": lambda cell: list(cell["heads"]["cumulative"]),
    "patch": _patches,
    "dose_response": _doses,
}
"""Tables of the causal tests: what the rows of one language and kind are."""
