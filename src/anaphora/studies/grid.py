"""The cells of a study as checked settings: composed and compared before anything is trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from anaphora.command import composed_run
from anaphora.config import Config
from anaphora.errors import UserError
from anaphora.start import settle
from anaphora.studies.settings import BASE, Plan, pair_name

_OWN = ("name", "output", "seed", "resume")
"""Settings of a run that the study decides."""


@dataclass(frozen=True)
class Cell:
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


def cells_of(plan: Plan, folder: Path) -> list[Cell]:
    """The cells of a study, the base first, every one composed and checked.

    Args:
        plan: the study.
        folder: of the configuration.

    Raises:
        UserError: an override is wrong, changes nothing, or sets what the study decides; study and cell are named.
    """
    single = {name: tuple(overrides) for cells in plan.factors.values() for name, overrides in cells.items()}
    named: list[tuple[str, str, tuple[str, ...], tuple[str, ...]]] = [(BASE, "", (), ())]
    for factor, cells in plan.factors.items():
        named += [(name, factor, (name,), tuple(overrides)) for name, overrides in cells.items()]
    for pair in plan.pairs:
        named.append((pair_name(pair), "pairs", tuple(pair), tuple(one for name in pair for one in single[name])))
    found: list[Cell] = []
    for name, factor, parts, overrides in named:
        what = f"study {plan.name}, cell {name}"
        place = [f"trainer.device={plan.trainer.device}"] if plan.trainer.device else []
        whole = [*plan.base, *overrides, *place, *plan.more]
        _check_own(whole, what)
        # Nobody looks at the pictures of dozens of runs: a study draws them only where it asks for them.
        config = replace(composed_run(folder, ["trainer.pictures=0", *whole], what), resume=None)
        for other in found:
            if other.config == config:
                raise UserError(f"{what}: its settings are those of cell {other.name}; it would change nothing")
        found.append(Cell(name, factor, parts, overrides, config))
    return found


def jobs_of(plan: Plan, cells: Sequence[Cell]) -> list[Job]:
    """The runs of a study, seed by seed, so that a study stopped early has every cell: those that `only` names.

    Raises:
        UserError: a cell starts from something that is not there, or sets what that brings along.
    """
    root = Path(plan.output) / plan.name
    # What runs start from is read here and not when cells are compared, for it may have to come from the hub.
    settled = {cell.name: settle(cell.config) for cell in cells if not plan.only or cell.name in plan.only}
    return [
        Job(
            cell=cell.name,
            seed=seed,
            config=replace(settled[cell.name], seed=seed, name=f"seed_{seed}", output=str(root / cell.name)),
            directory=root / cell.name / f"seed_{seed}",
        )
        for seed in plan.seeds
        for cell in cells
        if cell.name in settled
    ]


def _check_own(overrides: Sequence[str], what: str) -> None:
    for override in overrides:
        name = override.lstrip("+~").partition("=")[0]
        if name in _OWN:
            raise UserError(f"{what}: {override} sets {name}, which the study decides")
