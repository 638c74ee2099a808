"""What the causal tests cost in answers, a row for each language and kind of cue, for the terminal and the atlas."""

from __future__ import annotations

from collections.abc import Iterator

from anaphora.analysis.results.causal import Knockout
from anaphora.analysis.results.evidence import VERDICT_SCOPE, Evidence, every_group
from anaphora.report.numbers import NOT_MEASURED, format_count, format_percent
from anaphora.report.wording import group_label, phrase

_COLUMNS = ("items", "task", "head_edge", "layer_edge", "layer_value", "layer_patch")


def causal_columns() -> list[str]:
    """The heads of the columns of `causal_rows`, the first for language and kind."""
    return [phrase("columns", "group"), *(phrase("causal_summary", name) for name in _COLUMNS)]


def causal_rows(evidence: Evidence) -> Iterator[list[str]]:
    """A row for each language and kind: answers right, and points lost by edits in the head or in its layer."""
    for code, kind, cell in every_group(evidence.causal_cells):
        layer = cell.knockout[VERDICT_SCOPE]
        flipped = cell.pattern_patching.of_layer
        yield [
            group_label(code, kind),
            format_count(cell.items),
            format_percent(cell.task_accuracy),
            _lost(cell.knockout["head"], "gold"),
            _lost(layer, "gold"),
            _lost(layer, "value_zeroing"),
            format_percent(flipped.flipped, flipped.interval),
        ]


def _lost(knockout: Knockout, edge: str) -> str:
    loss = knockout.edges.get(edge)
    return NOT_MEASURED if loss is None else format_percent(loss.drop, loss.interval)
