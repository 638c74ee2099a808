"""The evidence on a run: what is measured beyond its scores, the controls that have to be trained, and the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rich import box
from rich.table import Table

from anaphora.analysis.evidence import controls
from anaphora.analysis.evidence.schema.evidence import Control
from anaphora.base.console import console
from anaphora.base.device import Device
from anaphora.report.numbers import format_percent
from anaphora.runs.directory import Run, load, locked_run
from anaphora.runs.items import evaluation_splits
from anaphora.runs.reuse import same_settings
from anaphora.settings.commands.analysis import TrainedControls
from anaphora.settings.run import Config
from anaphora.training.reuse import load_or_train


def train_controls(settings: TrainedControls) -> dict[str, Control | None]:
    """Train each control that is not trained yet, measure it, and write `controls/controls.json` in the run directory.

    Returns:
        What the file holds: the controls by name, None for one that was never trained.

    Raises:
        UserError: the run is not finished, or a control's directory holds something else.
    """
    run = load(settings.run, Device(device="cuda" if settings.trainer.device == "cuda" else "cpu"))
    with locked_run(controls.controls_path(run.directory, settings.split).parent):
        return _train_controls(run, settings)


def _train_controls(run: Run, settings: TrainedControls) -> dict[str, Control | None]:
    with console.status("reading the data"):
        splits = evaluation_splits(run, settings.split)
    by_name = controls.read_to_replace(run.directory, settings.split)
    for number, name in enumerate(settings.controls, start=1):
        console.print(f"control {number} of {len(settings.controls)}: {name}", soft_wrap=True)
        trained = _trained_control(run, name, settings.trainer.device)
        with console.status(f"measuring {name}"):
            by_name[name] = controls.measure_control(name, trained, splits.development, splits.measured)
        # After each, so that an interrupted command keeps what is done.
        controls.write(run.directory, settings.split, by_name)
    measured = {name: control for name in settings.controls if (control := by_name[name]) is not None}
    console.print(_controls_table(run, settings.split, measured))
    for name, control in measured.items():
        result = {True: "as expected", False: "NOT as expected", None: "nothing to check"}[control.as_expected]
        console.print(f"{name}: {result}. Expected: {control.expected} Observed: {control.observed}")
    console.print(f"controls  {controls.controls_path(run.directory, settings.split)}", soft_wrap=True)
    return by_name


def control_settings(run: Run, control: str, device: str | None) -> Config:
    """The settings with which a control of a run is trained; they go by the run's own, whatever its recipe."""
    config = controls.control_config(run.config, control)
    trainer = replace(config.trainer, device=device or config.trainer.device)
    return replace(config, name=control, output=str(run.directory / "controls"), resume=None, trainer=trainer)


def _trained_control(run: Run, control: str, device: str | None) -> Run:
    """The finished control."""
    config = control_settings(run, control, device)
    if same_settings(config, run.config):
        console.print("the run itself is this control: its settings leave nothing to change")
        return run
    return load_or_train(config, "remove or rename this folder")


def _controls_table(run: Run, split: str, measured: Mapping[str, Control]) -> Table:
    table = Table(
        title=f"{run.name}: trained controls, {split} split, shares in %",
        title_justify="left",
        box=box.SIMPLE_HEAD,
    )
    for name in ("control", "language", "kind"):
        table.add_column(name)
    for name in ("task", "candidate [95 %]", "chance"):
        table.add_column(name.replace("[", r"\["), justify="right")
    for name, control in measured.items():
        for language, kinds in control.languages.items():
            for kind, cell in kinds.items():
                table.add_row(
                    name,
                    language,
                    kind,
                    format_percent(cell.task_accuracy),
                    format_percent(cell.candidate_accuracy, cell.interval),
                    format_percent(cell.chance),
                )
    return table
