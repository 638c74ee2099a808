"""Pronoun Disambiguation Problems (Morgenstern, Davis and Ortiz 2016): four-line blocks -> Examples.

The common copy, PDP.txt of Kocijan et al. (2019), has [MASK] for the pronoun, whose form is lost. Adjacent questions
whose first four words are the same are about one passage and share a group.
"""

from __future__ import annotations

from dataclasses import replace

from anaphora.base.locale.translation import N_
from anaphora.data.corpora.blocks import four_line_items, masked_example
from anaphora.data.corpora.division import Origin, ReadingReport, existing_path
from anaphora.data.corpora.reading import RowReader, in_adjacent_groups, split_examples
from anaphora.data.example import Example
from anaphora.settings.data import Pdp60

ORIGIN = Origin(files="PDP.txt, the copy in four-line blocks with [MASK]", licence=N_("CC BY 4.0 (collection)"))


def read(settings: Pdp60) -> tuple[dict[str, list[Example]], ReadingReport]:
    """Return the examples by split and the report.

    Raises:
        UserError: the file is missing or does not consist of such blocks; the message names file, line and value.
    """
    reading = RowReader()
    rows = four_line_items(existing_path(settings.path, ORIGIN.files))
    converted = [pair for _, pair in reading.convert(rows, lambda row: (row, masked_example(row, "pdp60")))]
    questions = [(tuple(row["text"].split()[:4]), row["answer"]) for row, _ in converted]
    grouped = in_adjacent_groups("pdp60", [example for _, example in converted], questions)
    # Two questions about one passage are not a minimal pair, since they differ in more than a cue.
    examples = [replace(example, minimal_pair="") for example in grouped]
    return split_examples(examples, None, settings), reading.report()
