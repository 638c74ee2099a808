"""Choose an attention head on the development split and measure it on another split.

Example: anaphora score run=outputs/demo split=dev
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anaphora.base.checks import at_least
from anaphora.base.translation import _
from anaphora.commands.parts.settings import RunHead
from anaphora.settings.data import NoData

if TYPE_CHECKING:
    from anaphora.analysis.evidence.headline import Measurement
    from anaphora.runs.directory import Run


@dataclass(kw_only=True)
class Scoring(RunHead):
    """Settings of `anaphora score`."""

    untrained: int = 20  # number of untrained models to measure as a control

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("untrained", self.untrained, 0)


def score(settings: Scoring) -> Measurement:
    """Measure the head that the settings name, or one chosen on the development split; print and write the scores.

    The files are tables and `metrics.json` (`metrics_<split>.json` for a split other than `test`).

    Raises:
        UserError: scores on other data would be written among those on the run's own data, or `headline_of`,
            `held_output` or `score_transformers` fails.
    """
    from anaphora.analysis.evidence.storage import write_evidence
    from anaphora.base.console import working
    from anaphora.commands.parts import shared
    from anaphora.commands.parts.tables import print_trained_items
    from anaphora.report.terminal import print_headline, print_undecided
    from anaphora.runs.directory import load
    from anaphora.runs.items import questions_of

    if shared.is_of_transformers(settings.run):
        return score_transformers(settings)
    run = load(settings.run, settings.trainer)
    shared.check_place_of_like_data(run, settings)
    folder = shared.output_folder(settings.output, run.directory)
    with shared.held_output(folder, run, settings, results_of(folder, run, settings)):
        with working(_("reading the data")) as progress:
            headline = shared.headline_of(run, settings, settings.untrained, progress, keep_rows=False)
        write_evidence(headline, folder)
    print_headline(headline.evidence())
    print_undecided(headline.capture.answers)
    shared.print_weak_choice(headline)
    shared.print_unread(headline.unread)
    print_trained_items(run, settings.data, questions_of(headline.measured.examples), settings.split)
    return headline


def results_of(folder: Path, model: Run | str, settings: Scoring) -> dict[str, dict[str, Any]]:
    """Return the settings that determine each file of scores, keyed by file name.

    The table of all heads is measured on the development items, whatever the split of the other scores.
    """
    from anaphora.analysis.evidence.storage import HEADS_TABLE, metrics_path
    from anaphora.commands.parts.shared import result_settings

    return {
        metrics_path(Path(), settings.split).name: result_settings(
            folder, model, settings, "items", "layer", "head", "untrained"
        ),
        HEADS_TABLE: result_settings(folder, model, settings, "items"),
    }


def score_transformers(settings: Scoring) -> Measurement:
    """Score the heads of a `transformers` model, and print and write the scores.

    Causal tests are included if the model can predict antecedents.

    Raises:
        UserError: the model cannot be opened, or `held_output`, `read_splits` or `score_on` fails.
    """
    from anaphora.analysis.evidence.storage import write_measurement
    from anaphora.api.models import open_any
    from anaphora.api.scoring import CAUSAL_ITEMS, read_splits, score_on
    from anaphora.base.console import say, working
    from anaphora.commands.parts.shared import held_output, named_head, output_folder, print_unread, print_weak_choice
    from anaphora.report.terminal import print_causal, print_headline
    from anaphora.runs.directory import results_folder

    model = open_any(settings.run, device=settings.trainer)
    folder = output_folder(settings.output, results_folder(settings.run))
    with held_output(folder, settings.run, settings, results_of(folder, settings.run, settings)):
        with working(_("reading the data")) as progress:
            scores = score_on(
                model,
                read_splits(settings.data or NoData(), settings.split, settings.items),
                causal_items=CAUSAL_ITEMS,
                untrained=settings.untrained,
                chosen=named_head(settings),
                progress=progress,
            )
        write_measurement(scores.measurement, folder, scores.evidence)
    print_headline(scores.evidence)
    print_weak_choice(scores.measurement)
    print_unread(scores.unread)
    if scores.untested:
        say("no causal tests: {reason}", reason=scores.untested)
    print_causal(scores.evidence)
    return scores.measurement
