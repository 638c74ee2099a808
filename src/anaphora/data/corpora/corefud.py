"""CorefUD (Nedoluzhko et al. 2022): coreference corpora in one CoNLL-U scheme, `Entity=` brackets -> Examples."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from anaphora.base.locale.translation import N_
from anaphora.data.corpora.conllu import conllu_files, documents_of
from anaphora.data.corpora.coreference import Document, Lost, check_language, read_documents
from anaphora.data.corpora.division import Origin, ReadingReport
from anaphora.data.example import Example
from anaphora.settings.data import CorefUd

ORIGIN = Origin(
    files="a folder of .conllu or .conllu.gz, or one such file",
    licence=N_("varies by corpus: see the LICENSE file of each"),
)


def read(settings: CorefUd) -> tuple[dict[str, list[Example]], ReadingReport]:
    """Return the examples by split and the report, whose rows are mentions; a document is never divided.

    In a folder, files whose names end in train, dev and test are the splits, and the mentions of other files are
    dropped; where there are none of these, all files are divided by the shares, as a single file is.

    Raises:
        UserError: there is no such file, or a line does not fit; file, line, field and value are named.
    """

    def documents(path: Path) -> Iterator[tuple[Document, Lost]]:
        for document, lost in documents_of(path, "corefud", settings.language):
            check_language(document, path)
            yield document, lost

    files, official = conllu_files(settings.path, ORIGIN.files)
    return read_documents(settings, files, official, documents)
