"""The demonstration: train if need be, then everything that is asked of a run, ending with the report."""

from __future__ import annotations

from dataclasses import replace

from anaphora.analysis.settings import Report
from anaphora.checkpoint import Layout
from anaphora.config import Config
from anaphora.evidence import gather, print_verdict, write
from anaphora.report.rows import write_rows
from anaphora.workflow import console, plot_study, print_headline, trained


def demonstrate(config: Config) -> None:
    """Train if need be, extract, score, plot, and end with the headline table and where everything lies."""
    run = trained(replace(config, name=config.name or "demo"), "choose another name=")
    directory, layout = run.directory, Layout(run.directory)
    asked = Report(run=str(directory))
    with console.status("reading the data") as status:
        told = gather(run, asked, status.update)
        status.update("writing rows and figures")
        write_rows(directory / "attention" / "test.parquet", told.found.seen.records)
        plot_study(told.found, told.metrics, layout.figures, asked.formats)
        page = write([told], asked)
    print_headline(told.metrics)
    print_verdict(told.metrics)
    console.print(f"numbers   {layout.metrics}", soft_wrap=True)
    console.print(f"figures   {layout.figures}", soft_wrap=True)
    console.print(f"rows      {directory / 'attention'}", soft_wrap=True)
    console.print(f"report    {page}", soft_wrap=True)
