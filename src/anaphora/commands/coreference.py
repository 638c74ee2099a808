"""Score coreference clusters in JSON lines against a key: MUC, B3, CEAF and LEA, as the reference scorer does.

Example: anaphora coreference key=gold.jsonlines response=predicted.jsonlines
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from omegaconf import MISSING

from anaphora.base.checks import one_of
from anaphora.base.errors import UserError
from anaphora.base.locale.translation import _, in_language_of_messages

if TYPE_CHECKING:
    from anaphora.analysis.scores.coreference import Clusters, CoreferenceScores
    from anaphora.data.corpora.clusters import ClusterDocument

_ENDS = ("inclusive", "exclusive")
_MEASURES = {"muc": "MUC", "b_cubed": "B3", "ceaf_m": "CEAF-m", "ceaf_e": "CEAF-e", "lea": "LEA"}
"""The measures by their place in `CoreferenceScores`, and what papers call them."""


@dataclass(kw_only=True)
class ClusterFiles:
    """The key and the response: two files of the same documents, each a line with its words and clusters."""

    key: str = MISSING  # file with the right clusters, .jsonl or .jsonlines: the forms of data=clusters
    response: str = MISSING  # file with the clusters of a system, of the same documents in any order and form
    # What the end of a span is in the key, `inclusive` (the last word) or `exclusive` (the word behind it); by default
    # what the name of its field says or its spans prove.
    key_ends: str | None = None
    response_ends: str | None = None  # the same of the response: `inclusive` or `exclusive`
    singletons: bool = True  # count clusters of one mention, which OntoNotes does not have
    output: str | None = None  # CSV file for the table

    def __post_init__(self) -> None:
        for name, ends in (("key_ends", self.key_ends), ("response_ends", self.response_ends)):
            if ends is not None:
                one_of(name, ends, _ENDS)


def coreference(settings: ClusterFiles) -> list[dict[str, Any]]:
    """Score the response, print the table, and keep it as CSV where a file is named.

    Returns:
        The rows: "measure", "recall", "precision" and "f1" of each measure, and "conll", the mean F1 of three.

    Raises:
        UserError: a file is not there or does not fit, or the two do not hold the same documents.
    """
    from anaphora.analysis.scores.coreference import coreference_scores
    from anaphora.commands.parts.shared import TableFile
    from anaphora.data.corpora.clusters import cluster_documents
    from anaphora.data.corpora.division import existing_path

    table = TableFile.checked(settings.output)
    key = cluster_documents(existing_path(settings.key, setting="key"), settings.key_ends, "key_ends")
    response = cluster_documents(
        existing_path(settings.response, setting="response"), settings.response_ends, "response_ends"
    )
    pairs = list(_matched(key, response))
    fewest = 1 if settings.singletons else 2
    scores = coreference_scores((_of_size(one, fewest), _of_size(other, fewest)) for one, other in pairs)
    rows = _rows(scores)
    _print_scores(rows, len(pairs))
    table.write(rows)
    return rows


def _matched(
    key: Sequence[ClusterDocument], response: Sequence[ClusterDocument]
) -> Iterator[tuple[ClusterDocument, ClusterDocument]]:
    """Yield each document of the key with that of the same words in the response.

    Raises:
        UserError: one of the files has a document that the other does not have.
    """
    waiting: defaultdict[tuple[str, ...], list[ClusterDocument]] = defaultdict(list)
    for document in reversed(response):
        waiting[tuple(document.words)].append(document)
    for document in key:
        if not waiting[tuple(document.words)]:
            raise UserError(f"{document.where}: the response has no document with the words of {document.name!r}")
        yield document, waiting[tuple(document.words)].pop()
    for rest in waiting.values():
        if rest:
            raise UserError(f"{rest[0].where}: the key has no document with the words of {rest[0].name!r}")


def _of_size(document: ClusterDocument, fewest: int) -> Clusters:
    return [cluster for cluster in document.clusters if len(cluster) >= fewest]


def _rows(scores: CoreferenceScores) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for name in _MEASURES:
        measure = getattr(scores, name)
        rows.append({"measure": name, "recall": measure.recall, "precision": measure.precision, "f1": measure.f1})
    return [*rows, {"measure": "conll", "recall": None, "precision": None, "f1": scores.conll}]


@in_language_of_messages
def _print_scores(rows: Sequence[dict[str, Any]], documents: int) -> None:
    from rich.table import Table

    from anaphora.base.console import print_table
    from anaphora.report.numbers import format_percent

    table = Table(title=_("Coreference clusters of {documents} documents").format(documents=documents))
    table.add_column(_("measure"))
    for column in (_("recall"), _("precision"), "F1"):
        table.add_column(column, justify="right")
    for row in rows:
        name = _MEASURES.get(row["measure"], _("mean of MUC, B3 and CEAF-e"))
        table.add_row(name, *("" if row[each] is None else format_percent(row[each]) for each in list(row)[1:]))
    print_table(table)
