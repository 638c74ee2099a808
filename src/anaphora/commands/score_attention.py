"""Choose a head on the development split and measure it on another."""

from __future__ import annotations

from anaphora.analysis.evidence.headline import Headline
from anaphora.analysis.evidence.storage import write_evidence
from anaphora.base.console import console
from anaphora.commands.shared import headline_of, held_output
from anaphora.report.terminal import print_headline
from anaphora.runs.directory import load
from anaphora.settings.commands.analysis import Analysis


def score_heads(settings: Analysis) -> Headline:
    """Choose a head on development, measure it on the split, write `metrics.json` and tables, print the headline."""
    run = load(settings.run, settings.trainer)
    with held_output(settings.output, run.directory) as folder:
        with console.status("reading the data") as status:
            headline = headline_of(run, settings, status)
        write_evidence(headline, folder)
    print_headline(headline.evidence())
    return headline
