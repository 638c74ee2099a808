"""Pronoun Disambiguation Problems (Morgenstern, Davis and Ortiz 2016): four-line blocks -> Examples.

The common copy, PDP.txt of Kocijan et al. (2019), writes [MASK] for the pronoun: its form is lost. Questions about one
passage stand in a row, begin with the same words and share a group.
"""

from __future__ import annotations

from dataclasses import replace

from anaphora.base.locale.translation import N_
from anaphora.data.corpora.blocks import four_line_items, masked_example
from anaphora.data.corpora.division import Origin, ReadingReport, existing_path
from anaphora.data.corpora.reading import RowReader, adjacent_groups, split_examples
from anaphora.data.example import Example
from anaphora.settings.data import Pdp60

ORIGIN = Origin(files="PDP.txt, the copy in four-line blocks with [MASK]", licence=N_("CC BY 4.0 (collection)"))


def read(settings: Pdp60) -> tuple[dict[str, list[Example]], ReadingReport]:
    """Return the examples by split and the report.

    Raises:
        UserError: the file does not consist of such blocks; file, line and value are named.
    """
    reading = RowReader()
    rows = four_line_items(existing_path(settings.path, ORIGIN.files))
    converted = [pair for _, pair in reading.convert(rows, lambda row: (row, masked_example(row, "pdp60")))]
    names = adjacent_groups("pdp60", [(tuple(row["text"].split()[:4]), row["answer"]) for row, _ in converted])
    # Two questions about one passage are no minimal pair: they differ in more than a cue.
    examples = [replace(example, group=group) for (_, example), (group, _) in zip(converted, names, strict=True)]
    return split_examples(examples, None, settings), reading.report()
