"""OntoGUM (Zhu et al. 2021): coreference in CoNLL-U, `Entity=` brackets with dependency heads -> Examples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from anaphora.base.locale.translation import N_
from anaphora.data.corpora.conllu import conllu_files, documents_of
from anaphora.data.corpora.coreference import Document, Lost, read_documents
from anaphora.data.corpora.division import Origin, ReadingReport
from anaphora.data.example import Example
from anaphora.settings.data import OntoGum

ORIGIN = Origin(
    files="a folder of .conllu or .conllu.gz, or one such file",
    licence=N_("annotations CC BY 4.0; texts vary: fiction, essays, letters, podcasts and wikiHow non-commercial"),
)


def read(settings: OntoGum) -> tuple[dict[str, list[Example]], ReadingReport]:
    """Return the examples by split and the report, whose rows are mentions; a document is never divided.

    In a folder, files whose names end in train, dev and test are the splits, and the mentions of other files are
    dropped; where there are none of these, all files are divided by the shares, as a single file is.

    Raises:
        UserError: there is no such file, or a line does not fit; file, line, field and value are named.
    """
    files, official = conllu_files(settings.path, ORIGIN.files)
    return read_documents(settings, files, official, _documents)


def _documents(path: Path) -> Iterator[tuple[Document, Lost]]:
    for document, lost in documents_of(path, "ontogum"):
        genre = [*document.name.partition("/")[2].split("_"), ""][1]
        yield replace(document, factors={**document.factors, "genre": genre}), lost
