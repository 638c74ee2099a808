"""Train and measure the controls of a run, such as a model trained on shuffled labels.

Example: anaphora controls run=outputs/demo
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from anaphora.analysis.evidence.plan import ALL_CONTROLS, CONTROLS
from anaphora.base.checks import one_of
from anaphora.base.device import Device, RunsDevice
from anaphora.base.errors import UserError
from anaphora.base.translation import _
from anaphora.settings.data import SPLITS
from anaphora.settings.run import Config

if TYPE_CHECKING:
    from anaphora.analysis.evidence.evidence import Control
    from anaphora.runs.directory import Run


@dataclass(kw_only=True)
class TrainedControls:
    """Settings of `anaphora controls`; a control is a model trained with the run's settings except for one change."""

    run: str = "outputs/demo"  # the run directory
    # The controls to train; masked_tokens, pairwise and nearest are also available.
    controls: list[str] = field(default_factory=lambda: [*CONTROLS])
    split: str = "test"  # split on which the controls are measured: `train`, `dev` or `test`
    trainer: RunsDevice = field(default_factory=RunsDevice)  # device to train and measure on

    def __post_init__(self) -> None:
        one_of("split", self.split, SPLITS)
        for name in self.controls:
            one_of("controls", name, ALL_CONTROLS)
        if not self.controls:
            raise ValueError(f"controls must name at least one of {', '.join(ALL_CONTROLS)}")


def controls(settings: TrainedControls) -> dict[str, Control | None]:
    """Train the requested controls if necessary, measure them, and write `controls/controls.json` in the run directory.

    A control is a model trained with one setting changed, such as shuffled labels. For a split other than `test`, the
    file is `controls_<split>.json`. Results of other controls that the file already holds are retained.

    Returns:
        The results in the file, keyed by the name of the control; None for a control that has never been measured.

    Raises:
        UserError: the run is unfinished or has no attention maps, or a control's directory holds another run.
    """
    from anaphora.analysis.evidence import controls
    from anaphora.runs.directory import load, locked_run

    run = load(settings.run, Device(device="cuda" if settings.trainer.device == "cuda" else "cpu"))
    with locked_run(controls.controls_path(run.directory, settings.split).parent):
        return _train_controls(run, settings)


def _train_controls(run: Run, settings: TrainedControls) -> dict[str, Control | None]:
    from anaphora.analysis.evidence import controls
    from anaphora.analysis.evidence.measurement import measured_on
    from anaphora.base.console import say, working
    from anaphora.model.mixer import NO_MAPS
    from anaphora.report.terminal import print_controls
    from anaphora.runs.items import evaluation_splits
    from anaphora.settings.run import same_settings
    from anaphora.training.reuse import load_or_train

    if not run.model.encoder.has_maps:
        raise UserError(NO_MAPS)
    with working(_("reading the data")):
        splits = evaluation_splits(run, settings.split)
    about = measured_on(run, splits)  # before training, because this reads the weights file
    by_name = controls.read_to_replace(run.directory, settings.split)
    for number, name in enumerate(settings.controls, start=1):
        say("control {number} of {all}: {name}", number=number, all=len(settings.controls), name=name)
        config = control_settings(run, name, settings.trainer.device)
        if same_settings(config, run.config):
            say("the run itself is this control: its settings leave nothing to change")
            trained = run
        else:
            trained = load_or_train(config, "remove or rename this folder")
        with working(_("measuring {name}").format(name=name)):
            trained_control = controls.measure_control(name, trained, splits.development, splits.measured)
            by_name[name] = replace(trained_control, measured_on=about)
        # Written after each control, so that an interrupted command keeps the finished ones.
        controls.write(run.directory, settings.split, by_name)
    measured = {name: control for name in settings.controls if (control := by_name[name]) is not None}
    print_controls(run.name, settings.split, measured)
    say("controls  {path}", path=controls.controls_path(run.directory, settings.split))
    return by_name


def control_settings(run: Run, control: str, device: str | None) -> Config:
    """Return the training settings of a control: the settings of the run with one change, such as shuffled labels."""
    from anaphora.analysis.evidence import controls

    config = controls.control_config(run.config, control)
    trainer = replace(config.trainer, device=device or config.trainer.device)
    return replace(config, name=control, output=str(run.directory / "controls"), resume=None, trainer=trainer)
