"""The cells of a study as checked settings: composed and compared before anything is trained."""

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
"""Settings of a run that the study decides."""


@dataclass(frozen=True)
class StudyCell:
    """One recipe of a study.

    Attributes:
        name: of its folder.
        factor: what it changes; "" for the base, "pairs" where several changes are made together.
        parts: the cells whose changes it makes, none for the base.
        overrides: what it changes, as on the command line.
        config: its settings, the seed aside.
    """

    name: str
    factor: str
    parts: tuple[str, ...]
    overrides: tuple[str, ...]
    config: Config


@dataclass(frozen=True)
class Job:
    """One run of a study: a cell and a seed, with the settings and the directory of the run."""

    cell: str
    seed: int
    config: Config
    directory: Path


def cells_of(plan: StudyPlan, folder: Path) -> list[StudyCell]:
    """Return the cells of a study, the base first, every one composed and checked.

    Args:
        plan: the study.
        folder: of the configuration.

    Raises:
        UserError: an override is wrong, changes nothing, or sets what the study decides; study and cell are named.
    """
    single = {name: tuple(overrides) for cells in plan.factors.values() for name, overrides in cells.items()}
    named: list[tuple[str, str, tuple[str, ...]]] = [(BASE_CELL, "", ())]
    named += [(name, factor, (name,)) for factor, cells in plan.factors.items() for name in cells]
    named += [(combined_cell_name(pair), "pairs", tuple(pair)) for pair in plan.pairs]
    composed: list[StudyCell] = []
    for name, factor, parts in named:
        overrides = tuple(override for part in parts for override in single[part])
        title = f"study {plan.name}, cell {name}"
        device = [f"trainer.device={plan.trainer.device}"] if plan.trainer.device else []
        all_overrides = [*plan.base, *overrides, *device, *plan.more]
        for override in all_overrides:
            setting = override.lstrip("+~").partition("=")[0]
            if setting in _STUDY_SETTINGS:
                raise UserError(f"{title}: {override} sets {setting}, which the study decides")
        # Dozens of runs would have too many pictures to read: a study draws them only where it sets so.
        config = replace(compose_run(folder, ["trainer.pictures=0", *all_overrides], title), resume=None)
        for other in composed:
            if other.config == config:
                raise UserError(f"{title}: its settings are those of cell {other.name}; it would change nothing")
        composed.append(StudyCell(name, factor, parts, overrides, config))
    return composed


def jobs_of(plan: StudyPlan, cells: Sequence[StudyCell]) -> list[Job]:
    """Return the runs of a study, seed by seed, so that a study stopped early has every cell.

    Raises:
        UserError: a cell starts from something that is not there, or sets what that brings along.
    """
    root = Path(plan.output) / plan.name
    # Start models are read now and not when cells are compared, for they may have to come from the hub.
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
