"""Reader of WinoGrande (Sakaguchi et al. 2020): sentences with a blank and two options, in minimal pairs.

The blank "_" is the pronoun of the example, although it stands for a noun phrase.
"""

from __future__ import annotations

from pathlib import Path

from anaphora.base.errors import UserError
from anaphora.base.translation import N_
from anaphora.data.corpora import reading
from anaphora.data.corpora.division import Origin, ReadingReport
from anaphora.data.corpora.parts import train_and_test_rows
from anaphora.data.corpora.reading import DroppedRowError, Row
from anaphora.data.example import Example
from anaphora.settings.data import WINOGRANDE_SIZES, Winogrande

DEVELOPMENT = "dev.jsonl"
ORIGIN = Origin(
    files=f"a folder with train_<size>.jsonl ({', '.join(WINOGRANDE_SIZES)}) and {DEVELOPMENT}, or one such file",
    licence="CC BY",
    names=("train_*.jsonl", DEVELOPMENT),
)


def read(settings: Winogrande) -> tuple[dict[str, list[Example]], ReadingReport]:
    """Return the examples by split and a report on dropped rows.

    The development file of a folder, or the split "validation" on the Hugging Face Hub, is the test split. If there
    is neither, as for a single file, the rows are split at random. `qID` determines groups and minimal pairs; rows
    without `qID` share a group if they have the same options. Rows without an answer, or with options that
    `find_mentions` rejects, are dropped.
    """
    train, development = train_and_test_rows(
        settings.path, ORIGIN.files, lambda folder: _train_file(folder, settings), DEVELOPMENT, reading.json_lines
    )
    return reading.read_examples(settings, _example, train, development)


def _train_file(folder: Path, settings: Winogrande) -> Path:
    files = [folder / f"train_{size}.jsonl" for size in WINOGRANDE_SIZES if settings.size in ("largest", size)]
    there = [file for file in files if file.exists()]
    if not there:
        raise UserError(f"data.path ({settings.path}): the folder has no {' or '.join(file.name for file in files)}")
    return there[-1]


def _example(row: Row) -> Example:
    text, names = reading.text_of(row, "sentence"), [reading.text_of(row, "option1"), reading.text_of(row, "option2")]
    if text.count(reading.BLANK) != 1:
        raise UserError(f"sentence: {text!r} must hold the blank {reading.BLANK} once")
    if not row.get("answer"):
        raise DroppedRowError(N_("it has no answer"))
    if row["answer"] not in ("1", "2"):
        raise UserError(f"answer: {row['answer']!r} must be '1' or '2'")
    start = text.index(reading.BLANK)
    pronoun = (start, start + len(reading.BLANK))
    # The rows of the hub have no qID; rows with the same options may be a minimal pair and share a group.
    pair = reading.text_of(row, "qID").rpartition("-")[0] if "qID" in row else ""
    return reading.example_of(
        "winogrande",
        text,
        pronoun,
        reading.find_mentions(names, text, pronoun),
        (int(row["answer"]) - 1,),
        group=f"winogrande/{pair or '/'.join(sorted(map(str.lower, names)))}",
        minimal_pair=f"winogrande/{pair}" if pair else "",
    )
