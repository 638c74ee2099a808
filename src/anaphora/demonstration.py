"""The demonstration: train if need be, then everything that is asked of a run, ending with the report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from anaphora.analysis.settings import Report
from anaphora.checkpoint import Layout, load
from anaphora.config import Config, read
from anaphora.errors import UserError
from anaphora.evidence import gather, print_verdict, write
from anaphora.report.rows import write_rows
from anaphora.workflow import alike, console, plot_study, print_headline


def demonstrate(config: Config) -> None:
    """Train if need be, extract, score, plot, and end with the headline table and where everything lies."""
    directory = Path(config.output) / (config.name or "demo")
    layout = Layout(directory)
    if layout.config.exists() and not alike(read(layout.config), config):
        raise UserError(f"{directory} holds a run with other settings; choose another name=")
    if layout.weights.exists():
        console.print(f"{directory}: the run is finished; its weights are re-used", soft_wrap=True)
    else:
        from anaphora.training.run import train

        if layout.config.exists():
            console.print(f"{directory}: the run is unfinished; it is resumed", soft_wrap=True)
            train(replace(config, resume=str(directory)))
        else:
            console.print(f"{directory}: training", soft_wrap=True)
            train(replace(config, name=directory.name))
    asked = Report(run=str(directory))
    run = load(directory)
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
