"""Score a run on the everyday sentences of both languages: python -m experiments.shipped.scores.

The scores of the run inside the package are compared with those that were released with it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anaphora.base.errors import UserError
from anaphora.base.files import read_json, write_json
from anaphora.base.language import LANGUAGES
from anaphora.cli import run_program
from anaphora.runs.shipped import SHIPPED, read_release, shipped_folder
from experiments.shipped.settings import SentenceScores

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from anaphora.analysis.evidence.headline import Measurement

SCORES = "scores.json"
ALL = "all"
"""What the row of all types is called."""
_TOLERANCE = 0.5
"""Percentage points by which two machines may differ, which round sums differently: one answer of 200 may change."""


@dataclass(frozen=True)
class SentenceScore:
    """How often the run and its head are right in the sentences of one type.

    Attributes:
        language: of the sentences.
        type: what decides in them.
        sentences: how many there are.
        answer, answer_interval: the run's answers that are right, in %, and the 95 % interval over minimal pairs.
        head, head_interval: the same for the candidate to which the chosen head gives most weight.
    """

    language: str
    type: str
    sentences: int
    answer: float
    answer_interval: tuple[float, float] | None
    head: float
    head_interval: tuple[float, float] | None


def work(settings: SentenceScores) -> None:
    """Measure, print and write the scores; the exit status is 1 if they are not those of the release."""
    from anaphora.base.console import say

    folder = Path(settings.output)
    rows = score_sentences(settings.run, Path(settings.sentences), folder)
    release = read_release().digest if settings.run == SHIPPED else None
    write_json(folder / SCORES, {"release": release, "scores": [asdict(row) for row in rows]})
    print_scores(rows)
    say(str(folder / SCORES))
    if settings.run != SHIPPED:
        return
    differing = differences(rows, released_scores())
    for line in differing:
        say(line)
    if differing:
        sys.exit(1)
    say(f"as released ({release})")


def score_sentences(run: str, sentences: Path, folder: Path) -> list[SentenceScore]:
    """Choose a head on the dev split of each language, and measure it and the run's answers on the test split.

    Args:
        run: the run, by its name.
        sentences: the folder with the sentences.
        folder: gets a folder of scores for each language.
    """
    from anaphora.commands.score import Scoring, score
    from anaphora.settings.data import OwnExamples

    rows = []
    for language in LANGUAGES:
        data = OwnExamples(path=str(sentences / f"{language}.jsonl"))
        rows += score_rows(score(Scoring(run=run, data=data, output=str(folder / language), untrained=0)))
    return rows


def score_rows(measured: Measurement) -> list[SentenceScore]:
    """Return the scores of each type of sentence of one language, those of all types first."""
    import numpy as np

    examples, head = measured.measured.examples, measured.head
    picks = measured.measured.candidate_accuracy[:, head.layer, head.head]
    types = np.array([example.factors.get("type", "") for example in examples])
    rows = []
    for name in (ALL, *dict.fromkeys(types.tolist())):
        chosen = np.flatnonzero((types == name) | (name == ALL))
        pairs = [examples[number].group for number in chosen]
        answer, head_right = _percent(measured.task_correct[chosen], pairs), _percent(picks[chosen], pairs)
        rows.append(SentenceScore(examples[chosen[0]].language, name, len(chosen), *answer, *head_right))
    return rows


def _percent(right: NDArray[np.floating], pairs: Sequence[str]) -> tuple[float, tuple[float, float] | None]:
    """Return how many are right, in %, with the interval over pairs."""
    from anaphora.analysis.scores.statistics import cluster_interval

    interval = cluster_interval(100 * right, pairs, bounds=(0, 100))
    rounded = None if interval is None else (round(interval[0], 1), round(interval[1], 1))
    return round(100 * float(right.mean()), 1), rounded


def print_scores(rows: Sequence[SentenceScore]) -> None:
    """Print the scores as a table."""
    from rich.table import Table

    from anaphora.base.console import print_table

    table = Table()
    for column in ("language", "type", "sentences", "answer, %", "95 %", "head, %", "95 %"):
        table.add_column(column)
    for row in rows:
        cells = (row.language, row.type, str(row.sentences), f"{row.answer:.1f}", shown_interval(row.answer_interval))
        table.add_row(*cells, f"{row.head:.1f}", shown_interval(row.head_interval))
    print_table(table)


def shown_interval(interval: tuple[float, float] | None) -> str:
    """Return an interval as it stands in a table."""
    return "" if interval is None else f"{interval[0]:.0f} to {interval[1]:.0f}"


def released_scores() -> list[dict[str, Any]]:
    """Return the scores that come with the run inside the package.

    Raises:
        UserError: there are none.
    """
    path = shipped_folder() / SCORES
    try:
        stored: list[dict[str, Any]] = read_json(path, {"scores": [{str: object}]})["scores"]
    except FileNotFoundError:
        raise UserError(f"{path} is missing; the run inside the package was released without scores") from None
    return stored


def differences(rows: Sequence[SentenceScore], released: Sequence[dict[str, Any]]) -> list[str]:
    """Return a line for each score that is not the released one."""
    before = {(one["language"], one["type"]): one for one in released}
    lines = []
    for row in rows:
        other = before.pop((row.language, row.type), None)
        if other is None:
            lines.append(f"{row.language} {row.type}: not among the released scores")
            continue
        for name in ("sentences", "answer", "head"):
            now, then = getattr(row, name), other[name]
            if abs(now - then) > (0 if name == "sentences" else _TOLERANCE):
                lines.append(f"{row.language} {row.type}: {name} is {now}, released was {then}")
    return lines + [f"{language} {kind}: released, but not measured here" for language, kind in before]


if __name__ == "__main__":
    run_program(SentenceScores, work)
