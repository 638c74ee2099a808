"""Tables of measures for the terminal and the page, and tables of plain values for CSV files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from anaphora.analysis.evidence.comparison import RowDivergence
from anaphora.analysis.evidence.evidence import VERDICT_SCOPE, Evidence
from anaphora.analysis.results.causal import CausalCell, KnockoutLoss
from anaphora.analysis.results.scores import Groups, Shortcut
from anaphora.analysis.results.typed_json import to_json
from anaphora.base.translation import _
from anaphora.report.numbers import NOT_MEASURED, format_count, format_number, format_percent, format_points
from anaphora.report.page.elements import TableElement, table_of
from anaphora.report.wording import (
    all_groups,
    baseline_names,
    kind_groups,
    label,
    language_name,
    level_names,
    shortcut_names,
)

Row = dict[str, Any]

_NO_SPREAD = {"median": None, "lowest": None, "highest": None}


def causal_table(evidence: Evidence) -> TableElement:
    """Return a table of the causal tests.

    There is one row for each language as a whole, and one for each cue category ("set", "role") of the language. The
    columns are the number of items, the task accuracy, and the drop in task accuracy under three interventions on the
    pronoun's attention to the antecedent: knockout in the chosen head, knockout in all heads of this layer, and
    value-zeroing in all heads of this layer. The last column is the share of correct answers that flip if all heads of
    this layer get the pronoun's attention rows from the other sentence of the minimal pair.
    """
    rows = []
    for group in all_groups(evidence.causal_cells):
        cell = group.cell
        layer, flipped = cell.knockout[VERDICT_SCOPE].edges, cell.pattern_patching.used.layer
        rows.append(
            {
                _("language, cue"): group.label,
                _("items"): format_count(cell.items),
                _("answers right"): format_percent(cell.task_accuracy),
                _("lost: edge to the antecedent cut, chosen head"): _loss(cell.knockout["head"].edges.get("gold")),
                _("lost: the same in its layer"): _loss(layer.get("gold")),
                _("lost: nothing taken along it, layer"): _loss(layer.get("value_zeroing")),
                _("flipped by the other sentence’s row, layer"): format_percent(flipped.flipped, flipped.interval),
            }
        )
    return table_of(rows, _("Causal tests: answers right and lost, in %"))


def _loss(loss: KnockoutLoss | None) -> str:
    return NOT_MEASURED if loss is None else format_percent(loss.drop, loss.interval)


def one_head_table(evidence: Evidence) -> TableElement:
    """Return a table of the causal tests of the chosen head alone, by language and cue category."""
    rows = [
        {
            _("language, cue"): group.label,
            _("antecedent’s edge\nvalue-zeroed, points"): format_points(one.antecedent_points, one.antecedent_interval),
            _("all its other edges\nvalue-zeroed, points"): format_points(
                one.other_edges_points, one.other_edges_interval
            ),
            _("row patched,\n% flipped"): format_percent(one.patch_flips, one.patch_interval),
            _("items\npatched"): format_count(one.pairs),
            _("names exchanged,\n% flipped"): format_percent(one.exchange_flips, one.exchange_interval),
        }
        for group in kind_groups(evidence.causal_cells)
        if (one := group.cell.head_level) is not None
    ]
    return table_of(rows, _("The chosen head alone"))


def specificity_table(evidence: Evidence) -> TableElement:
    """Return a table of the attention weight that the antecedent gets from the pronoun and from another word.

    The other word is the one that, apart from the pronoun, gives the antecedent the most weight. There is one row for
    each language and cue category ("set", "role").
    """
    rows = [
        {
            _("language, cue"): group.label,
            _("weight from the\npronoun, %"): format_percent(group.cell.pronoun_mass),
            _("best other\nword, %"): format_percent(group.cell.best_other_mass),
            _("ratio"): format_number(group.cell.ratio, 2, group.cell.ratio_interval),
        }
        for group in kind_groups(evidence.pronoun_specificity)
    ]
    return table_of(rows, _("Weight on the antecedent from the pronoun, and from the other word that gives it most"))


def dose_table(evidence: Evidence) -> TableElement:
    """Return a table of drops in task accuracy when the pronoun's attention weights in the chosen head are reduced.

    The same amount is removed from the weight on the antecedent and, for comparison, from the weights on all other
    tokens together. There is one row for each language, cue category ("set", "role") and amount.
    """
    rows = [
        {
            _("language, cue"): group.label,
            _("weight\nremoved, %"): format_percent(dose.mass),
            _("items"): format_count(dose.items),
            _("from the antecedent’s\nedge, points"): format_points(dose.antecedent_points, dose.antecedent_interval),
            _("from all its other\nedges, points"): format_points(dose.other_edges_points, dose.other_edges_interval),
        }
        for group in kind_groups(evidence.causal_cells)
        for dose in (group.cell.head_level.doses if group.cell.head_level else ())
    ]
    return table_of(rows, _("Points of task accuracy lost when the same weight is taken away on either side"))


def freed_table(evidence: Evidence) -> TableElement:
    """Return a table of where the pronoun's attention goes if the chosen head cannot attend to the antecedent.

    The columns are the shares, in %, of the antecedent's former weight that distractors, the cue, the pronoun itself,
    special tokens and other words get.
    """
    names = {
        "distractors": _("distractors"),
        "cue": _("cue"),
        "pronoun": _("pronoun itself"),
        "special": _("special tokens"),
        "other_words": _("other words"),
    }
    rows = [
        {_("language, cue"): group.label} | {names[part]: format_percent(share) for part, share in freed.items()}
        for group in kind_groups(evidence.causal_cells)
        if (freed := group.cell.head_level.freed_mass if group.cell.head_level else None)
    ]
    return table_of(rows, _("Where the weight goes when the antecedent’s edge is forbidden, %"))


def level_table(evidence: Evidence, shortcut: str = "{name} {accuracy}") -> TableElement:
    """Return a table of the scores by language and level of the cue type `composition`.

    The level says whether training had an item's predicate and state together in both voices, in one or in none.
    `shortcut` is the format string for the best shortcut, with the placeholders {name} and {accuracy}.
    """
    # Composition levels have shortcuts of their own; the level of set cues has the baselines of every corpus.
    names = baseline_names() | shortcut_names()

    def shortcut_text(best: Shortcut | None) -> str:
        if best is None:
            return ""
        return shortcut.format(name=names.get(best.name, best.name), accuracy=format_percent(best.accuracy))

    rows = [
        {
            _("language"): language_name(code),
            _("in training"): label(level_names(), name),
            _("items"): format_count(level.items),
            _("task accuracy"): format_percent(level.task_accuracy, level.intervals.task_accuracy),
            _("candidate accuracy"): format_percent(level.candidate_accuracy, level.intervals.candidate_accuracy),
            _("octads right"): format_percent(level.octad_accuracy),
            _("weight on the antecedent"): format_percent(level.antecedent_mass),
            _("best shortcut"): shortcut_text(level.best_shortcut),
            _("untrained models"): format_percent(level.random_init),
        }
        for code, levels in (evidence.levels or {}).items()
        for name, level in levels.items()
    ]
    return table_of(rows, _("Compositions: shares in %, 95 % intervals in brackets"), texts=2)


def every_table(evidence: Evidence) -> dict[str, list[Row]]:
    """Return tables of a run's results for CSV files, keyed by name; a table without measurements has no rows.

    The results `languages` (the main scores), `strata`, `levels` and `pronoun_specificity` are left out.
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
    """Return the divergences between the attention rows of runs as rows of a CSV table."""
    return [_flatten(to_json(row)) for row in divergences]


def _causal_tables(languages: Groups[CausalCell]) -> dict[str, list[Row]]:
    """Return the tables of the causal tests for CSV files, keyed by name."""
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
    """Yield ({"language", "kind"}, measurement) for each language and cue category (`kind`)."""
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
