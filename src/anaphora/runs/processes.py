"""The processes that train one run together, as started by torchrun or srun; no heavy imports."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from anaphora.base.errors import UserError

_VARIABLES = {
    "torchrun": ("WORLD_SIZE", "RANK", "LOCAL_RANK"),
    # Of the job step: only srun sets the first one. A batch script has the others too, though it is a single process.
    "srun": ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_LOCALID"),
}
"""How many processes there are, which one this is, and which on its machine, by who started them."""


@dataclass(frozen=True)
class Processes:
    """The number of processes that train a run together, and the index of this one.

    Attributes:
        count: how many there are on all machines.
        rank: the number of this one, from 0.
        local_rank: its number among those on its own machine, from 0.
        launcher: "torchrun" or "srun"; of a single process "".
    """

    count: int = 1
    rank: int = 0
    local_rank: int = 0
    launcher: str = ""

    def check_single(self, work: str) -> None:
        """Check that only one process does this work.

        Raises:
            UserError: there are several.
        """
        if self.count > 1:
            raise UserError(
                f"{work} runs in a single process, but {self.launcher} started {self.count}; "
                "only a single training run (train) can use several"
            )


def started_processes(environment: Mapping[str, str] = os.environ) -> Processes:
    """Return the processes of the environment: of torchrun, else srun, else this one only.

    Raises:
        UserError: the variables are incomplete or contradict one another.
    """
    for launcher, names in _VARIABLES.items():
        if environment.get(names[0], "1") != "1":
            count, rank, local_rank = (_number(environment, name, names[0]) for name in names)
            if not local_rank <= rank < count:
                listed = ", ".join(f"{name}={environment[name]}" for name in names)
                raise UserError(f"{listed}: a rank must be below the number of processes; start them with {launcher}")
            return Processes(count, rank, local_rank, launcher)
    return Processes()


def _number(environment: Mapping[str, str], name: str, count_name: str) -> int:
    if not environment.get(name, "").isdecimal():
        raise UserError(
            f"{name} ({environment.get(name, 'not set')}) must be a number when {count_name} is set "
            f"({environment[count_name]}): start the processes with torchrun or srun"
        )
    return int(environment[name])
