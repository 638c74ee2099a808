"""Reader of CorefUD (Nedoluzhko et al. 2022) and OntoGUM (Zhu et al. 2021): CoNLL-U with `Entity=` brackets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from anaphora.base.errors import UserError
from anaphora.base.translation import N_
from anaphora.data.corpora.conll2012 import official_split
from anaphora.data.corpora.conllu import documents_of
from anaphora.data.corpora.coreference import Document, Unusable, read_documents
from anaphora.data.corpora.division import Origin, ReadingReport, existing_path
from anaphora.data.example import Example
from anaphora.settings.data import CorefUd, OntoGum

_FILES = "a folder of .conllu or .conllu.gz, or one such file"
_NAMES = ("*.conllu", "*.conllu.gz")
ORIGINS = {
    "corefud": Origin(_FILES, N_("varies by corpus: see the LICENSE file of each"), _NAMES),
    "ontogum": Origin(
        _FILES,
        N_("annotations CC BY 4.0; texts vary: fiction, essays, letters, podcasts and wikiHow non-commercial"),
        _NAMES,
    ),
}
"""Files and licence of each `data.kind`."""


def read(settings: CorefUd | OntoGum) -> tuple[dict[str, list[Example]], ReadingReport]:
    """Return the examples by split and a report on dropped mentions; a document stays in one split.

    In a folder, the name of a file may name its split (see `official_split`). If only some names do, the mentions of
    the other files are dropped. A single file, or a folder without such names, is split at random. Documents of CorefUD
    must be in `data.language`.
    """

    def documents(path: Path) -> Iterator[tuple[Document, Unusable]]:
        if isinstance(settings, OntoGum):
            return _with_genres(documents_of(path, "ontogum"))
        return documents_of(path, "corefud", settings.language)

    files, official = _conllu_files(settings.path)
    return read_documents(settings, files, official, documents)


def _conllu_files(path: str) -> tuple[list[Path], dict[Path, str]]:
    """Return the CoNLL-U files at `data.path`, and the split of each file whose name names one, as "en-train.conllu".

    Subfolders are not searched. If `data.path` is a file, it has no split.
    """
    there = existing_path(path, _FILES)
    if not there.is_dir():
        return [there], {}
    files = sorted(each for each in there.iterdir() if each.name.endswith((".conllu", ".conllu.gz")))
    if not files:
        raise UserError(f"data.path ({there}): this folder has no .conllu or .conllu.gz file")
    return files, {file: split for file in files if (split := official_split(file.name))}


def _with_genres(documents: Iterator[tuple[Document, Unusable]]) -> Iterator[tuple[Document, Unusable]]:
    """Yield the documents with the factor (attribute) `genre`, such as "news" for the document GUM_news_mill."""
    for document, lost in documents:
        genre = [*document.name.partition("/")[2].split("_"), ""][1]
        yield replace(document, factors={**document.factors, "genre": genre}), lost
