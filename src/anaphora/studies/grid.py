"""Cells (configurations) and jobs (runs) of a study, with settings composed and checked before any training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from anaphora.base.errors import UserError
from anaphora.runs.warm_start import with_start_model
from anaphora.settings.compose import compose_run
from anaphora.settings.run import Config
from anaphora.studies.plan import BASE_CELL, StudyPlan, combined_cell_name

_STUDY_SETTINGS = ("name", "output", "seed", "resume")
"""Settings of a run that only the study may set."""


@dataclass(frozen=True)
class StudyCell:
    """Cell of a study: a training configuration that is run with each seed.

    Attributes:
        name: name of the cell and of its folder.
        factor: aspect in which the cell differs from the base cell, such as "position"; "" for the base cell, and
            "pairs" for a cell that combines the changes of other cells.
        parts: names of the cells whose changes this cell combines; only its own name if it combines none, and empty for
            the base cell.
        overrides: changes to the settings of the base cell, in command-line syntax.
        config: settings of the cell's runs; seed, name and output folder are set later for each run.
    """

    name: str
    factor: str
    parts: tuple[str, ...]
    overrides: tuple[str, ...]
    config: Config


@dataclass(frozen=True)
class Job:
    """Job of a study: the run of one cell (configuration) with one seed, its settings and its directory."""

    cell: str
    seed: int
    config: Config
    directory: Path


def cells_of(plan: StudyPlan, folder: Path) -> list[StudyCell]:
    """Compose and check the settings of all cells (configurations), the base cell first.

    `folder` holds the configuration files. Runs draw no images during training unless `trainer.pictures` is set.

    Raises:
        UserError: an override is invalid or changes a setting in `_STUDY_SETTINGS`, or two cells have the same
            settings.
    """
    single = {name: overrides for cells in plan.factors.values() for name, overrides in cells.items()}
    named: list[tuple[str, str, tuple[str, ...]]] = [(BASE_CELL, "", ())]
    named += [(name, factor, (name,)) for factor, cells in plan.factors.items() for name in cells]
    named += [(combined_cell_name(pair), "pairs", tuple(pair)) for pair in plan.pairs]
    device = [f"trainer.device={plan.trainer.device}"] if plan.trainer.device else []
    composed: list[StudyCell] = []
    for name, factor, parts in named:
        overrides = tuple(override for part in parts for override in single[part])
        title = f"study {plan.name}, cell {name}"
        all_overrides = [*plan.base, *overrides, *device, *plan.more]
        for override in all_overrides:
            setting = override.lstrip("+~").partition("=")[0]
            if setting in _STUDY_SETTINGS:
                raise UserError(f"{title}: {override} sets {setting}, which the study decides")
        # No images during training by default, because dozens of runs would draw too many.
        config = replace(compose_run(folder, ["trainer.pictures=0", *all_overrides], title), resume=None)
        for other in composed:
            if other.config == config:
                raise UserError(f"{title}: its settings are those of cell {other.name}; it would change nothing")
        composed.append(StudyCell(name, factor, parts, overrides, config))
    return composed


def jobs_of(plan: StudyPlan, cells: Sequence[StudyCell]) -> list[Job]:
    """Return the jobs (runs) of a study, ordered by seed, so that a study stopped early has runs of every cell.

    The model from which a run starts (`Config.start`) is downloaded if it is on the Hugging Face Hub.

    Raises:
        UserError: the start model of a cell does not exist, or the cell changes settings that this model determines.
    """
    root = Path(plan.output) / plan.name
    # Start models are resolved only here, after the cells are compared, because they may have to be downloaded.
    settled = {cell.name: with_start_model(cell.config) for cell in cells}
    return [
        Job(
            cell=cell.name,
            seed=seed,
            config=replace(settled[cell.name], seed=seed, name=f"seed_{seed}", output=str(root / cell.name)),
            directory=root / cell.name / f"seed_{seed}",
        )
        for seed in plan.seeds
        for cell in cells
    ]
