"""Compare the answers of two runs on all test sets: python -m experiments.shipped.difference other=FOLDER."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from anaphora.base.language import LANGUAGES
from anaphora.cli import run_program
from experiments.shipped.introductions import is_right
from experiments.shipped.settings import RunDifference

if TYPE_CHECKING:
    from anaphora.data.example import Example

TEST_SETS = ("{language}", *(f"{name}.{{language}}" for name in ("second", "third", "fourth", "fifth", "sixth")))
"""File names of the test sets; the first file also has the dev split."""


def work(settings: RunDifference) -> None:
    """Print the accuracy of both runs on each test set in %, and their difference over all of them, in points."""
    from anaphora.base.console import say
    from anaphora.data.corpora.tables import read
    from anaphora.settings.data import OwnExamples

    for language in LANGUAGES:
        paths = [Path(settings.sentences) / f"{name.format(language=language)}.jsonl" for name in TEST_SETS]
        sets = [read(OwnExamples(path=str(path)))[0]["test"] for path in paths]
        right, others = ([hits(run, examples) for examples in sets] for run in (settings.run, settings.other))
        for path, ours, theirs in zip(paths, right, others, strict=True):
            say(f"{path.name}: {share(ours):.1f}, {share(theirs):.1f}")
        pairs = [example.group for examples in sets for example in examples]
        say(f"{language}, all: {difference([*chain(*right)], [*chain(*others)], pairs)}")


def hits(run: str, examples: Sequence[Example]) -> list[bool]:
    """Return for each sentence whether the run answers correctly."""
    import anaphora

    answers = anaphora.answers(run, examples)
    return [is_right(example, answer) for example, answer in zip(examples, answers, strict=True)]


def share(right: Sequence[bool]) -> float:
    """Return the share of correct answers, in %."""
    return 100 * sum(right) / len(right)


def difference(ours: Sequence[bool], theirs: Sequence[bool], pairs: Sequence[str]) -> str:
    """Return the difference in percentage points as text, with the 95 % interval over minimal pairs."""
    from anaphora.analysis.scores.statistics import cluster_interval

    values = [100 * (one - other) for one, other in zip(ours, theirs, strict=True)]
    interval = cluster_interval(values, pairs)
    shown = "" if interval is None else f" [{interval[0]:.1f}, {interval[1]:.1f}]"
    return f"{sum(values) / len(values):.1f}{shown}"


if __name__ == "__main__":
    run_program(RunDifference, work)
