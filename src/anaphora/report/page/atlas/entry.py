"""An atlas entry: one model on one corpus, with the numbers shared by sections and sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.evidence.evidence import Evidence, in_group
from anaphora.base.locale.translation import _
from anaphora.data.tokens.unread import UnreadMentions

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class AtlasEntry:
    """A model on one corpus.

    Attributes:
        model: its name on the page.
        is_decoder: whether a pronoun sees only what stands before it.
        corpus: the name of the data.
        evidence: what was measured.
        heads: (L, H) candidate accuracy of every head on the development split, by language.
        untested: why there are no causal tests, in one line; None if there are, or none were wanted.
        unread: the measured items with a pronoun or candidate that is not in the model's vocabulary; None if there are
            none.
        antecedents: the rows of `selection_table` on a corpus of documents; None elsewhere, or where it cannot be
            asked.
        unselected: whether it cannot be asked although the corpus is of documents.
        names: the rows of `name_decisions` on GAP; None elsewhere.
    """

    model: str
    is_decoder: bool
    corpus: str
    evidence: Evidence
    heads: Mapping[str, NDArray[np.float64]]
    untested: str | None = None
    unread: UnreadMentions | None = None
    antecedents: Rows | None = None
    unselected: bool = False
    names: Rows | None = None

    @property
    def head(self) -> str:
        """Return the chosen head as the page writes it."""
        return numbered_head(self.evidence.head.layer, self.evidence.head.head)


def numbered_head(layer: int, head: int) -> str:
    """Return a head as the page writes it: layer.head, both counted from 0."""
    return f"{layer}.{head}"


def task_accuracy(evidence: Evidence, code: str, kind: str) -> float | None:
    """Return the accuracy on all items if the model answers all of them, else on those of the causal tests."""
    cell = in_group(evidence.scores, code, kind)
    if cell is not None and cell.task_accuracy is not None:
        return cell.task_accuracy
    tested = in_group(evidence.causal_cells, code, kind)
    return None if tested is None else tested.task_accuracy


def row_of(rows: Rows, **wanted: str) -> Mapping[str, Any] | None:
    """Return the first row with these values."""
    return next((row for row in rows if all(row[name] == value for name, value in wanted.items())), None)


def interval_of(row: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return the ends of a row's interval; None if there is none."""
    return None if row["low"] is None or row["high"] is None else (row["low"], row["high"])


def corpus_names() -> dict[str, str]:
    """Return the names of corpora, by key."""
    return {
        "controlled": _("Built-in sentences"),
        "jsonl": _("Own items"),
        "gap": _("GAP"),
        "dpr": _("DPR"),
        "winogrande": _("WinoGrande"),
        "cluewsc": _("CLUEWSC2020"),
        "mandarinograd": _("Mandarinograd"),
        "xwino": _("XWINO"),
        "wsc273": _("WSC273"),
        "pdp60": _("PDP-60"),
        "winobias": _("WinoBias"),
        "winogender": _("Winogender"),
        "knowref": _("KnowRef"),
        "litbank": _("LitBank"),
        "ontogum": _("OntoGUM"),
        "conll2012": _("CoNLL-2012"),
        "corefud": _("CorefUD"),
        "clusters": _("JSON lines with clusters"),
        "silver": _("Silver-standard items"),
    }
