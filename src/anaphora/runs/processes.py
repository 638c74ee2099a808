"""Processes of distributed training, requeueing of preempted jobs, and clean-up of a command that is terminated.

Importing this module does not import torch.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import FrameType

from anaphora.base.errors import UserError

_VARIABLES = {
    "torchrun": ("WORLD_SIZE", "RANK", "LOCAL_RANK"),
    # Only srun sets the first variable; a batch script, which is a single process, has the others too.
    "srun": ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_LOCALID"),
}
"""Environment variables with the number of processes, the rank and the local rank, by launcher."""

GRACE_SECONDS = 300.0
"""Number of seconds that a job waits after SIGTERM for the signal that requeues it, or for SIGKILL."""


@dataclass(frozen=True)
class Processes:
    """Number of processes of a distributed training run, and rank of this process."""

    count: int = 1  # number of processes on all machines
    rank: int = 0  # index of this process, from 0
    local_rank: int = 0  # index of this process on its machine, from 0
    launcher: str = ""  # "torchrun" or "srun"; "" for a single process

    def check_single(self, work: str) -> None:
        """Raise `UserError` if several processes were started; `work` names the command in the message."""
        if self.count > 1:
            raise UserError(
                f"{work} runs in a single process, but {self.launcher} started {self.count}; "
                "only a single training run (train) can use several"
            )


def started_processes(environment: Mapping[str, str] = os.environ) -> Processes:
    """Return the processes that torchrun or srun describes in environment variables, or else a single process.

    Raises:
        UserError: a variable is missing or not a number, or the variables contradict one another.
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


@contextlib.contextmanager
def until_requeued() -> Iterator[None]:
    """Let a preempted submitit job be requeued after the `with` block; do nothing outside submitit.

    A preempted job leaves the block with KeyboardInterrupt. If the cause is the SystemExit that submitit raises after
    it has requeued the job, this SystemExit is raised again. Otherwise, the job is not yet requeued, because Lightning
    has stopped training at the SIGTERM that precedes a preemption. The process then waits for `GRACE_SECONDS`, so that
    submitit (at the next signal) or the cluster can requeue the job.
    """
    try:
        yield
    except KeyboardInterrupt as interrupt:
        if "SUBMITIT_EXECUTOR" not in os.environ:
            raise
        cause = interrupt.__context__
        if isinstance(cause, SystemExit) and cause.code is not None:  # Lightning's own has no code
            raise cause from None
        time.sleep(GRACE_SECONDS)
        raise


class Terminated(KeyboardInterrupt):
    """Exception for SIGTERM or SIGHUP; as a KeyboardInterrupt, it makes a command clean up as after Ctrl-C.

    Attributes:
        number: number of the signal.
    """

    def __init__(self, number: int = signal.SIGTERM) -> None:
        super().__init__()
        self.number = number


def _terminate(number: int, _frame: FrameType | None) -> None:
    raise Terminated(number)


@contextlib.contextmanager
def termination_raises() -> Iterator[None]:
    """Raise `Terminated` at SIGTERM and SIGHUP in the `with` block.

    A signal that already has a handler or is ignored, as SIGHUP is under `nohup`, is left as it is.
    """
    is_main = threading.current_thread() is threading.main_thread()
    free = [each for each in (signal.SIGTERM, signal.SIGHUP) if is_main and signal.getsignal(each) is signal.SIG_DFL]
    for number in free:
        signal.signal(number, _terminate)
    try:
        yield
    finally:
        for number in free:
            signal.signal(number, signal.SIG_DFL)
