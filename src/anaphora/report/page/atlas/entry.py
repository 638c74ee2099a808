"""Results of one model on one corpus, with the helpers shared by the atlas sections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.evidence.evidence import Evidence, in_group
from anaphora.base.locale.translation import _
from anaphora.data.tokens.words import UnreadMentions
from anaphora.report.antecedents import Rows


@dataclass(frozen=True, kw_only=True)
class AtlasEntry:
    """Results of one model on one corpus.

    Attributes:
        model: name of the model on the page.
        is_decoder: whether attention is causal, so that a pronoun attends only to earlier words.
        corpus: key of the corpus in `corpus_names`.
        evidence: measurements of the model.
        heads: (L, H) candidate accuracy of every head on the development split, by language; NaN in layers without
            attention.
        untested: reason for missing causal tests, in one line; None if there are tests or none were requested.
        unread: measured items with a pronoun or candidate outside the model's vocabulary; None if there are none.
        antecedents: rows of `selection_table` on a corpus of documents; None on other corpora or if `unselected`.
        unselected: whether the model cannot select antecedents although the corpus has documents.
        names: rows of `name_decisions` on GAP; None on other corpora.
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
        """Return the chosen head as "layer.head"."""
        return numbered_head(self.evidence.head.layer, self.evidence.head.head)


def numbered_head(layer: int, head: int) -> str:
    """Return a head as "layer.head", both counted from 0."""
    return f"{layer}.{head}"


def task_accuracy(evidence: Evidence, code: str, kind: str) -> float | None:
    """Return the accuracy of the model's answers in a group; None if the model answered no items.

    If the model answered only the items of the causal tests, the accuracy is that on these items.
    """
    cell = in_group(evidence.scores, code, kind)
    if cell is not None and cell.task_accuracy is not None:
        return cell.task_accuracy
    tested = in_group(evidence.causal_cells, code, kind)
    return None if tested is None else tested.task_accuracy


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
