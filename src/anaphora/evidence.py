"""The trained controls of a run: the same data, steps and stopping with one thing taken away, trained and measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

from anaphora.analysis import controls
from anaphora.analysis.settings import Analysis, Evidence
from anaphora.checkpoint import Layout, Run, load
from anaphora.config import Config, read
from anaphora.errors import UserError
from anaphora.files import held, write_json
from anaphora.workflow import alike, console, material_of


def train_controls(asked: Evidence) -> dict[str, Any]:
    """Train each control that is not trained yet, measure it, and write `controls/controls.json` in the run directory.

    Returns:
        What the file holds: {control: what `analysis.controls.measure` says, None where it was never trained}.

    Raises:
        UserError: the run is not finished, or a control's directory holds something else.
    """
    run = load(asked.run)
    with console.status("reading the data"):
        material = material_of(run, Analysis(run=asked.run, split=asked.split))
    found = controls.read(run.directory, asked.split)
    for number, name in enumerate(asked.controls, start=1):
        console.print(f"control {number} of {len(asked.controls)}: {name}", soft_wrap=True)
        trained = _trained(run, name, asked.device)
        with console.status(f"measuring {name}"):
            found[name] = controls.measure(name, trained, material.development, material.measured)
        # After each, so that whoever stops here keeps what is done.
        with held(run.directory):
            write_json(controls.path_of(run.directory, asked.split), found)
    console.print(_table(run, asked, found))
    for name in asked.controls:
        told = {True: "as expected", False: "NOT as expected", None: "nothing to check"}[found[name]["as_expected"]]
        console.print(f"{name}: {told}. Expected: {found[name]['expected']} Seen: {found[name]['seen']}")
    console.print(f"controls  {controls.path_of(run.directory, asked.split)}", soft_wrap=True)
    return found


def settings_of(run: Run, control: str, device: str | None) -> Config:
    """The settings with which a control of a run is trained; they go by the run's own, whatever its recipe."""
    config = controls.changed(run.config, control)
    trainer = replace(config.trainer, device=device or config.trainer.device)
    return replace(config, name=control, output=str(run.directory / "controls"), resume=None, trainer=trainer)


def _trained(run: Run, control: str, device: str | None) -> Run:
    """The finished control: re-used, resumed or trained."""
    config = settings_of(run, control, device)
    if alike(config, run.config):
        console.print("the run itself is this control: its settings leave nothing to change")
        return run
    directory = Path(config.output) / control
    layout = Layout(directory)
    if layout.config.exists() and not alike(read(layout.config), config):
        raise UserError(f"{directory} holds a control of other settings; remove or rename this folder")
    if layout.weights.exists():
        console.print(f"{directory}: finished; its weights are re-used", soft_wrap=True)
        return load(directory)

    from anaphora.training.run import train

    if layout.config.exists():
        console.print(f"{directory}: unfinished; it is resumed", soft_wrap=True)
        train(replace(config, resume=str(directory)))
    else:
        console.print(f"{directory}: training", soft_wrap=True)
        train(config)
    return load(directory)


def _table(run: Run, asked: Evidence, found: dict[str, Any]) -> Table:
    table = Table(
        title=f"{run.name}: trained controls, {asked.split} split, shares in %",
        title_justify="left",
        box=box.SIMPLE_HEAD,
    )
    for name in ("control", "language", "kind"):
        table.add_column(name)
    for name in ("task", "candidate", "[95 %]", "chance"):
        table.add_column(name.replace("[", r"\["), justify="right")
    for name in asked.controls:
        for language, kinds in found[name]["languages"].items():
            for kind, cell in kinds.items():
                ends = cell["interval"]
                table.add_row(
                    name,
                    language,
                    kind,
                    _share(cell["task_accuracy"]),
                    _share(cell["candidate_accuracy"]),
                    f"{_share(ends[0])}, {_share(ends[1])}" if ends else "–",
                    _share(cell["chance"]),
                )
    return table


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"
