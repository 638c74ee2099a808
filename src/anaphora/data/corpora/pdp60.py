"""Pronoun Disambiguation Problems (Morgenstern, Davis and Ortiz 2016): four-line blocks -> Examples.

The common copy, PDP.txt of Kocijan et al. (2019), writes [MASK] for the pronoun: its form is lost. Questions about one
passage stand in a row, begin with the same words and share a group.
"""

from __future__ import annotations

from dataclasses import replace

from anaphora.data.corpora.blocks import blocks, masked
from anaphora.data.corpora.division import Origin, ReadingReport, divide, existing
from anaphora.data.corpora.reading import Reading, neighbours
from anaphora.data.example import Example
from anaphora.data.settings import Pdp60

ORIGIN = Origin(files="PDP.txt, the copy in four-line blocks with [MASK]", licence="CC BY 4.0 (collection)")


def read(settings: Pdp60) -> tuple[dict[str, list[Example]], ReadingReport]:
    """The examples by split and the report.

    Raises:
        UserError: the file is not made of such blocks; file, line and value are named.
    """
    reading = Reading()
    rows = blocks(existing(settings.path, ORIGIN.files))
    made = [each for _, each in reading.each(rows, lambda row: (row, masked(row, "pdp60")))]
    names = neighbours("pdp60", [(tuple(row["text"].split()[:4]), row["answer"]) for row, _ in made])
    # Two questions about one passage are no twins: they differ in more than a cue.
    examples = [replace(example, group=group) for (_, example), (group, _) in zip(made, names, strict=True)]
    return divide(examples, settings.dev_share, settings.test_share, settings.seed), reading.report()
