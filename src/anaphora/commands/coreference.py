"""Score coreference clusters in JSON lines against a key: MUC, B3, CEAF and LEA, as the reference scorer does.

With `run`, a model first predicts clusters of the mentions in the key and writes them to `response`.

Example: anaphora coreference key=gold.jsonlines response=predicted.jsonlines
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from omegaconf import MISSING

from anaphora.base.checks import at_least, file_ending, one_of
from anaphora.base.device import Device
from anaphora.base.errors import UserError
from anaphora.base.language import language_of
from anaphora.base.translation import _, in_language_of_messages, pgettext
from anaphora.commands.parts.settings import Overwriting

if TYPE_CHECKING:
    from anaphora.analysis.scores.coreference import Clusters
    from anaphora.api.models import AnyModel
    from anaphora.data.corpora.clusters import ClusterDocument
    from anaphora.data.corpora.coreference import Mention
    from anaphora.data.example import Span

_FORMS = ("pronoun", "proper", "nominal", "unknown")
_MEASURES = {"muc": "MUC", "b_cubed": "B3", "ceaf_m": "CEAF-m", "ceaf_e": "CEAF-e", "lea": "LEA"}
"""Display names of the measures, by field of `CoreferenceScores`."""


@dataclass(kw_only=True)
class ClusterFiles(Overwriting):
    """Settings of `anaphora coreference`, which reads two files with the same documents, one document per line."""

    any_model: ClassVar[bool] = True  # a transformers language model has no config.yaml
    key: str = MISSING  # file with the gold clusters, .jsonl or .jsonlines, in a format that data=clusters reads
    # File with a system's clusters for the same documents, in any order and any format that data=clusters reads; with
    # `run`, the file is written in the format of the key.
    response: str = MISSING
    # A run directory or a language model (a folder, hf://owner/name): each pronoun of the key (see `forms`) is linked
    # to the earlier mention that the model chooses, and linked mentions form a cluster.
    run: str | None = None
    # With `run`, the mentions to link, by the form of their head word: `pronoun`, `proper`, `nominal`, `unknown`.
    forms: list[str] = field(default_factory=lambda: ["pronoun"])
    words: int = 100  # with `run`, maximum number of words per input; inputs end at a sentence end if possible
    # Meaning of the end of a span in the key: `inclusive` (the last word) or `exclusive` (the word after it); by
    # default inferred from the name of the field or from the spans.
    key_ends: str | None = None
    response_ends: str | None = None  # meaning of the end of a span in the response: `inclusive` or `exclusive`
    singletons: bool = True  # count clusters of a single mention; OntoNotes has none
    output: str | None = None  # CSV file for the table
    trainer: Device = field(default_factory=Device)  # device of a run

    def __post_init__(self) -> None:
        for name in ("key_ends", "response_ends"):
            if getattr(self, name) is not None:
                one_of(name, getattr(self, name), ("inclusive", "exclusive"))
        if not self.forms:
            raise ValueError(f"forms ([]) must name at least one of {', '.join(_FORMS)}")
        for form in self.forms:
            one_of("forms", form, _FORMS)
        at_least("words", self.words, 2)
        if self.run is None:
            for name, default in (("forms", ["pronoun"]), ("words", 100)):
                if getattr(self, name) != default:
                    raise ValueError(f"{name} ({getattr(self, name)}) is for run=..., whose answers give the clusters")
            if self.trainer != Device():
                raise ValueError(f"trainer.device ({self.trainer.device}) is for run=...; two files need no device")
            return
        file_ending("response", self.response, ".jsonl", ".jsonlines")
        if self.response_ends is not None:
            raise ValueError(f"response_ends ({self.response_ends}) is for a response that is read; run writes it")


def coreference(settings: ClusterFiles) -> list[dict[str, Any]]:
    """Score the response against the key, print the table, and write it as CSV if `output` is set.

    With `run`, the clusters that the model predicts are first written to `response`. The rows have "measure", "recall",
    "precision" and "f1" (from 0 to 1); the last, "conll", has only "f1", the mean F1 of MUC, B3 and CEAF-e.

    Raises:
        UserError: a file is missing or invalid or cannot be written, the files have different documents, the response
            would overwrite the key, the model does not predict antecedents, or a passage is too long for the model.
    """
    from anaphora.analysis.scores.coreference import coreference_scores
    from anaphora.commands.parts.shared import check_table, write_table
    from anaphora.data.corpora.clusters import cluster_documents
    from anaphora.data.corpora.division import existing_path

    check_table(settings)
    key = cluster_documents(existing_path(settings.key, setting="key"), settings.key_ends, "key_ends")
    if settings.run is None:
        path = existing_path(settings.response, setting="response")
        response = cluster_documents(path, settings.response_ends, "response_ends")
    else:
        response = _answered_documents(settings, settings.run, key)
    pairs = list(_matched(key, response))
    fewest = 1 if settings.singletons else 2
    scores = coreference_scores((_of_size(one, fewest), _of_size(other, fewest)) for one, other in pairs)
    measured = ((name, getattr(scores, name)) for name in _MEASURES)
    rows = [{"measure": name, "recall": it.recall, "precision": it.precision, "f1": it.f1} for name, it in measured]
    rows.append({"measure": "conll", "recall": None, "precision": None, "f1": scores.conll})
    _print_scores(rows, len(pairs))
    write_table(settings, rows)
    return rows


def _answered_documents(settings: ClusterFiles, name: str, key: Sequence[ClusterDocument]) -> list[ClusterDocument]:
    """Return the documents of the gold file `key` with predicted clusters; write them to the file `response`."""
    from tqdm import tqdm

    from anaphora.base.console import say
    from anaphora.base.files import check_new, write_text
    from anaphora.commands.parts.shared import open_run_or_model

    path = Path(settings.response)
    if path.exists() and path.samefile(settings.key):
        raise UserError(f"response ({path}) is the key, which would be overwritten; name another file")
    check_new(path, settings.overwrite)
    model = open_run_or_model(name, settings.trainer)
    documents = [
        document.with_clusters(_predicted_clusters(model, document, settings.forms, settings.words))
        for document in tqdm(key, unit=pgettext("unit of progress", "text"), mininterval=1)
    ]
    check_new(path, settings.overwrite)
    write_text(path, "".join(json.dumps(one.row, ensure_ascii=False) + "\n" for one in documents))
    sizes = [len(cluster) for one in documents for cluster in one.clusters]
    linked = sum(size for size in sizes if size > 1)
    say(
        "clusters {path}: {linked} of {mentions} mentions are linked to another one",
        path=path,
        linked=linked,
        mentions=sum(sizes),
    )
    return documents


def _predicted_clusters(
    model: AnyModel, document: ClusterDocument, forms: Collection[str], words: int
) -> list[list[Span]]:
    """Predict the clusters of a document with gold mentions.

    For each mention whose form, such as "pronoun", is in `forms`, the model chooses an earlier mention of the same
    passage or none; the mention is linked to the chosen mention. Linked mentions form a cluster; a mention without
    links is a cluster of its own. The model reads one passage of at most `words` words at a time.

    Returns:
        Clusters in the order of their first mentions, each mention as (index of first word, index of last word + 1).
    """
    from anaphora.api.pronoun_answers import answers
    from anaphora.data.corpora.clusters import coreference_document
    from anaphora.data.corpora.coreference import mention_questions

    read = coreference_document(document, language_of("".join(document.words)))
    questions = [one for one in mention_questions(read, words) if one[0].form in forms]
    clusters = {_span(mention): [_span(mention)] for mention in read.mentions}
    answered = answers(model, [example for _, _, example in questions])
    for (mention, earlier, example), answer in zip(questions, answered, strict=True):
        if answer.chosen is not None:
            named = earlier[example.candidates.index((answer.chosen.span,))]
            merged, added = clusters[_span(named)], clusters[_span(mention)]
            if merged is not added:
                merged += added
                clusters |= dict.fromkeys(added, merged)
    return sorted({id(one): sorted(one) for one in clusters.values()}.values())


def _span(mention: Mention) -> Span:
    return mention.first, mention.end


def _matched(
    key: Sequence[ClusterDocument], response: Sequence[ClusterDocument]
) -> Iterator[tuple[ClusterDocument, ClusterDocument]]:
    """Yield pairs of documents of key and response with the same words; raise UserError if one has no counterpart."""
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


@in_language_of_messages
def _print_scores(rows: Sequence[dict[str, Any]], documents: int) -> None:
    from rich.table import Table

    from anaphora.base.console import print_table
    from anaphora.report.numbers import format_percent

    table = Table(title=_("Coreference clusters of {documents:document|documents}").format(documents=documents))
    table.add_column(_("measure"))
    for column in (_("recall"), _("precision"), "F1"):
        table.add_column(column, justify="right")
    for row in rows:
        name = _MEASURES.get(row["measure"], _("mean of MUC, B3 and CEAF-e"))
        table.add_row(name, *("" if row[each] is None else format_percent(row[each]) for each in list(row)[1:]))
    print_table(table)
