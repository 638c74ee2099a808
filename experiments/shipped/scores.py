"""Score a run on the everyday sentences of both languages: python -m experiments.shipped.scores.

The scores of the shipped run are compared with the released scores.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from anaphora.base.errors import UserError
from anaphora.base.files import read_json, write_json, write_text
from anaphora.base.language import LANGUAGES
from anaphora.cli import run_program
from anaphora.data.corpora.division import existing_path
from anaphora.runs.shipped import SHIPPED, read_release, shipped_folder
from experiments.shipped.settings import TEST_SET, SentenceScores

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from anaphora.analysis.evidence.headline import Measurement
    from anaphora.analysis.scores.calibration import LanguageCalibration
    from anaphora.runs.directory import Run

SCORES = "scores.json"
ALL = "all"
"""Name of the row for all cue types."""
_TOLERANCE = 0.5
"""Tolerance in percentage points for rounding differences between machines: one answer of 200 may change."""


@dataclass(frozen=True)
class SentenceScore:
    """Accuracies of the run and its head on the sentences of one cue type.

    Attributes:
        language: language of the sentences.
        type: cue type.
        sentences: number of sentences.
        answer, answer_interval: accuracy of the run's answers in %, and its 95 % interval over minimal pairs.
        head, head_interval: the same for the candidate with the most weight in the chosen head.
    """

    language: str
    type: str
    sentences: int
    answer: float
    answer_interval: tuple[float, float] | None
    head: float
    head_interval: tuple[float, float] | None


@dataclass(frozen=True)
class EdgeScore:
    """Effect on the answers of knocking out the edge from the pronoun to the antecedent in the chosen head.

    Attributes:
        language: language of the sentences.
        layer, head: head chosen on the dev split of the language.
        points: loss in percentage points, minus that for a matched edge; None without a matched edge.
        interval: 95 % interval over minimal pairs.
    """

    language: str
    layer: int
    head: int
    points: float | None
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class RunScores:
    """Scores of a run in each language: accuracies by cue type, effect of the chosen head's edge, and calibration."""

    sentences: tuple[SentenceScore, ...]
    edges: tuple[EdgeScore, ...]
    calibration: tuple[LanguageCalibration, ...]


def work(settings: SentenceScores) -> None:
    """Measure, print and write the scores; exit with status 1 if they differ from the released scores."""
    from anaphora.base.console import say
    from anaphora.commands.parts.shared import identity
    from anaphora.runs.directory import claimed, load, locked_run

    folder = Path(settings.output or "outputs/shipped")
    sentences = existing_path(settings.sentences, setting="sentences")
    used = "".join(development_and_test_set(sentences, language) for language in LANGUAGES)
    digest = hashlib.sha256(used.encode()).hexdigest()[:16]
    about = {"run": identity(load(settings.run)), "sentences": f"{sentences.name} ({digest})"}
    with locked_run(folder), claimed(folder, {SCORES: about}, settings):
        scores = score_sentences(settings.run, sentences, folder)
        release = read_release().digest if settings.run == SHIPPED else None
        write_json(folder / SCORES, {"release": release, **asdict(scores)})
    print_scores(scores)
    say(str(folder / SCORES))
    if settings.run != SHIPPED:
        return
    differing = differences(scores, released_scores())
    for line in differing:
        say(line)
    if differing:
        sys.exit(1)
    say(f"as released ({release})")


def score_sentences(run: str, sentences: Path, folder: Path) -> RunScores:
    """Choose a head on the dev split of each language, and measure it and the run's answers on the test set.

    Args:
        run: name of the run.
        sentences: folder with the sets of sentences.
        folder: output folder, with a subfolder for each language.
    """
    from anaphora.commands.score import Scoring, score
    from anaphora.runs.directory import load
    from anaphora.settings.data import OwnExamples

    opened = load(run)
    rows, edges, calibration = [], [], []
    with TemporaryDirectory() as both:
        for language in LANGUAGES:
            path = Path(both) / f"{language}.jsonl"
            write_text(path, development_and_test_set(sentences, language))
            data = OwnExamples(path=str(path))
            scoring = Scoring(run=run, data=data, output=str(folder / language), untrained=0, overwrite=True)
            measured = score(scoring)
            rows += score_rows(measured)
            edges.append(knock_out_edge(opened, measured, language))
            calibration += calibrate(opened, measured)
    return RunScores(tuple(rows), tuple(edges), tuple(calibration))


def development_and_test_set(sentences: Path, language: str) -> str:
    """Return the lines of the first set's dev split, of the second dev set, and of TEST_SET (all in its test split)."""
    first, more, test = (
        existing_path(str(sentences / f"{name}{language}.jsonl"), "", "sentences").read_text("utf-8").splitlines()
        for name in ("", "dev.", f"{TEST_SET}.")
    )
    kept = (line for line in first if json.loads(line)["split"] == "dev")
    return "".join(f"{line}\n" for line in (*kept, *more, *test))


def score_rows(measured: Measurement) -> list[SentenceScore]:
    """Return the scores in one language, first for all cue types together, then for each type."""
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


def calibrate(run: Run, measured: Measurement) -> list[LanguageCalibration]:
    """Fit a temperature for the answers on the dev split, and measure the calibration error on the test split."""
    from anaphora.analysis.maps.capture import log_probabilities
    from anaphora.analysis.scores.calibration import calibration_by_language, fit_temperatures
    from anaphora.runs.items import encode

    batching = run.config.batching
    development, test = (encode(run, scores.examples) for scores in (measured.development, measured.measured))
    fitted = fit_temperatures(development.examples, log_probabilities(run.model, development, batching))
    logs = log_probabilities(run.model, test, batching)
    return calibration_by_language(test.examples, logs, fitted)


def knock_out_edge(run: Run, measured: Measurement, language: str) -> EdgeScore:
    """Knock out the edge from the pronoun to the antecedent in the chosen head, and a matched one."""
    import numpy as np

    from anaphora.analysis.causal.causal_tests import run_subject, testable_items
    from anaphora.analysis.causal.knockout_and_ablation import CausalTests, knockout_cell
    from anaphora.analysis.evidence.headline import no_progress
    from anaphora.analysis.scores.heads import ranked_heads

    subject = run_subject(run, testable_items(measured.measured.examples))
    tests = CausalTests(subject, measured.head, ranked_heads(measured.development), no_progress)
    lost = knockout_cell(tests, tests.knockout(), np.ones(len(subject.examples), dtype=bool))["head"].gold_minus_matched
    points = None if lost.value is None else round(100 * lost.value, 1)
    interval = None if lost.interval is None else (round(100 * lost.interval[0], 1), round(100 * lost.interval[1], 1))
    return EdgeScore(language, measured.head.layer, measured.head.head, points, interval)


def _percent(right: NDArray[np.floating], pairs: Sequence[str]) -> tuple[float, tuple[float, float] | None]:
    """Return the accuracy in %, with the 95 % interval over minimal pairs."""
    from anaphora.analysis.scores.statistics import cluster_interval

    interval = cluster_interval(100 * right, pairs, bounds=(0, 100))
    rounded = None if interval is None else (round(interval[0], 1), round(interval[1], 1))
    return round(100 * float(right.mean()), 1), rounded


def print_scores(scores: RunScores) -> None:
    """Print the scores as a table, and a line for the edge of each language."""
    from rich.table import Table

    from anaphora.base.console import print_table, say

    table = Table()
    for column in ("language", "type", "sentences", "answer, %", "95 %", "head, %", "95 %"):
        table.add_column(column)
    for row in scores.sentences:
        cells = (row.language, row.type, str(row.sentences), f"{row.answer:.1f}", shown_interval(row.answer_interval))
        table.add_row(*cells, f"{row.head:.1f}", shown_interval(row.head_interval))
    print_table(table)
    for edge in scores.edges:
        say(edge_sentence(edge))
    for one in scores.calibration:
        say(calibration_sentence(one))


def edge_sentence(edge: EdgeScore) -> str:
    """Return the score of an edge as a sentence."""
    head = f"{edge.language}, layer {edge.layer} head {edge.head}"
    if edge.points is None:
        return f"{head}: there is no matched edge to compare with"
    shown = f" [{edge.interval[0]:.0f}, {edge.interval[1]:.0f}]" if edge.interval else ""
    lost = f"{edge.points:.1f}{shown} points more than without a matched one"
    return f"{head}: without its edge from pronoun to antecedent, the answers lose {lost}"


def shown_interval(interval: tuple[float, float] | None) -> str:
    """Return an interval as text for a table; "" for None."""
    return "" if interval is None else f"{interval[0]:.0f} to {interval[1]:.0f}"


def calibration_sentence(one: LanguageCalibration) -> str:
    """Return the calibration error in a language as a sentence."""
    return (
        f"{one.language}: expected calibration error {one.after:.3f} at temperature {one.temperature:.2f}, "
        f"{one.before:.3f} without"
    )


def released_scores() -> dict[str, Any]:
    """Return the released scores of the shipped run.

    Raises:
        UserError: the file of scores is missing or damaged.
    """
    path = shipped_folder() / SCORES
    try:
        rows = [{str: object}]
        stored: dict[str, Any] = read_json(path, {"sentences": rows, "edges": rows, "calibration": rows})
    except FileNotFoundError:
        raise UserError(f"{path} is missing; the run inside the package was released without scores") from None
    return stored


def differences(scores: RunScores, released: dict[str, Any]) -> list[str]:
    """Return a line for each score that differs from the released score."""
    now, then = _by_name(asdict(scores)), _by_name(released)
    lines = [f"{name}: not among the released scores" for name in now.keys() - then.keys()]
    lines += [f"{name}: released, but not measured here" for name in then.keys() - now.keys()]
    for name in now.keys() & then.keys():
        one, other = now[name], then[name]
        if one != other and (one is None or other is None or abs(one - other) > _TOLERANCE):
            lines.append(f"{name} is {one}, released was {other}")
    return sorted(lines)


def _by_name(scores: dict[str, Any]) -> dict[str, float | None]:
    """Return the values of stored scores by language, type and name."""
    named: dict[str, float | None] = {}
    for row in scores["sentences"]:
        named |= {f"{row['language']} {row['type']}: {name}": row[name] for name in ("sentences", "answer", "head")}
    for edge in scores["edges"]:
        named |= {f"{edge['language']} edge: {name}": edge[name] for name in ("layer", "head", "points")}
    for one in scores["calibration"]:
        named[f"{one['language']} calibration error, in %"] = 100 * one["after"]
    return named


if __name__ == "__main__":
    run_program(SentenceScores, work)
