"""Distributed training: start, synchronisation and end of the processes (ranks) of a run.

Each rank processes some rows of every batch (`training/losses.py`), and torch's DistributedDataParallel averages the
gradients. Only rank 0 writes files.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from lightning_fabric.plugins.environments.cluster_environment import ClusterEnvironment
from lightning_fabric.plugins.environments.lightning import LightningEnvironment
from lightning_fabric.plugins.environments.slurm import SLURMEnvironment
from numpy.typing import NDArray
from pytorch_lightning.strategies import DDPStrategy
from torch import Tensor, distributed

from anaphora.base.errors import UserError
from anaphora.runs.processes import Processes
from anaphora.training.checkpoints import CheckpointFile

Outcome = TypeVar("Outcome")


@contextmanager
def joined(processes: Processes, device: torch.device) -> Iterator[None]:
    """Join the ranks in a process group inside the `with` block; do nothing for a single process.

    Raises:
        UserError: the device does not support several processes.
    """
    if processes.count == 1:
        yield
        return
    if device.type == "mps":
        raise UserError(f"trainer.device (mps) trains in a single process, but {processes.launcher} started several")
    if processes.launcher == "srun":
        set_rendezvous_address()
    if device.type == "cuda":
        torch.cuda.set_device(local_device(processes, device))
    distributed.init_process_group("gloo", rank=processes.rank, world_size=processes.count)
    yield
    distributed.barrier()  # so that all ranks see what rank 0 wrote
    distributed.destroy_process_group()


def set_rendezvous_address() -> None:
    """Set the address at which the ranks of a Slurm job step meet, in `MASTER_ADDR` and `MASTER_PORT`.

    The address is the first machine of the job step, and the port is derived from the ids of job and step. A variable
    that is already set is not changed.
    """
    hosts = os.environ.get("SLURM_STEP_NODELIST", "127.0.0.1")
    step = int(os.environ.get("SLURM_JOB_ID", "0")) + int(os.environ.get("SLURM_STEP_ID", "0"))
    os.environ.setdefault("MASTER_ADDR", SLURMEnvironment.resolve_root_node_address(hosts))
    os.environ.setdefault("MASTER_PORT", str(15_000 + step % 10_000))


def local_device(processes: Processes, device: torch.device) -> torch.device:
    """Return the device of this rank; GPUs are assigned by the rank's index on its machine."""
    if device.type != "cuda":
        return device
    return torch.device("cuda", processes.local_rank % torch.cuda.device_count())


def on_every_rank(work: Callable[[], Outcome]) -> Outcome:
    """Run a function on every rank and return the result of this rank.

    If the function raises a `UserError` on any rank, the error is raised on all ranks, so that no rank waits for
    another one forever.

    Raises:
        UserError: the error of the lowest rank that raised one.
    """
    outcome, error = _attempt(work)
    if distributed.is_initialized():
        errors: list[UserError | None] = [None] * distributed.get_world_size()
        distributed.all_gather_object(errors, error)
        error = next((each for each in errors if each is not None), None)
    if error is not None:
        raise error
    return outcome  # type: ignore[return-value]  # there is an outcome if there is no error


def on_first_rank(work: Callable[[], Outcome]) -> Outcome:
    """Run `work` on rank 0 only and return its result, or raise its `UserError`, on every rank."""
    if not distributed.is_initialized():
        return work()
    outcome: list[Any] = list(_attempt(work)) if distributed.get_rank() == 0 else [None, None]
    distributed.broadcast_object_list(outcome, src=0)
    if outcome[1] is not None:
        raise outcome[1]
    result: Outcome = outcome[0]
    return result


def check_same_on_every_rank(*arrays: NDArray[Any]) -> None:
    """Raise UserError on every rank unless the arrays, which hold the training data, are equal on all ranks."""
    if not distributed.is_initialized():
        return
    digest = hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()
    of_first = on_first_rank(lambda: digest)

    def check() -> None:
        if digest != of_first:
            rank = distributed.get_rank()
            raise UserError(f"the training split of rank {rank} is not that of rank 0: their data or code differ")

    on_every_rank(check)


def _attempt(work: Callable[[], Outcome]) -> tuple[Outcome | None, UserError | None]:
    try:
        return work(), None
    except UserError as error:
        return None, error.with_traceback(None)


def mean_over_ranks(values: Sequence[Tensor | float]) -> list[Tensor]:
    """Return the mean of each value over ranks, on every rank."""
    vector = torch.tensor([float(value) for value in values])
    distributed.all_reduce(vector)
    return list(vector / distributed.get_world_size())


def trainer_options(processes: Processes, device: torch.device) -> dict[str, Any]:
    """Return the arguments of Lightning's Trainer for the device, the processes and the checkpoint files."""
    if processes.count == 1:
        # Otherwise a single process on a cluster is taken for one of several.
        return {"accelerator": device.type, "devices": 1, "plugins": [LightningEnvironment(), CheckpointFile()]}
    here = local_device(processes, device)
    group = None
    if here.type == "cuda":
        uuids: list[str] = [""] * processes.count
        distributed.all_gather_object(uuids, str(torch.cuda.get_device_properties(here).uuid))
        if len(set(uuids)) == processes.count:  # NCCL does not support ranks that share a device
            group = distributed.new_group(backend="nccl")
    strategy = DDPStrategy(
        parallel_devices=[here] * (processes.local_rank + 1),
        cluster_environment=_StartedProcesses(processes),
        process_group_backend="gloo",
        process_group=group,
        find_unused_parameters=True,  # a share may lack elements of a loss part, such as masked tokens
        broadcast_buffers=False,
    )
    devices = processes.local_rank + 1
    return {"accelerator": device.type, "devices": devices, "strategy": strategy, "plugins": [CheckpointFile()]}


class _StartedProcesses(ClusterEnvironment):
    """Lightning environment for processes that a launcher has started, with any number of them on each machine."""

    def __init__(self, processes: Processes) -> None:
        super().__init__()
        self._processes = processes

    @property
    def creates_processes_externally(self) -> bool:
        return True

    @property
    def main_address(self) -> str:
        return os.environ["MASTER_ADDR"]

    @property
    def main_port(self) -> int:
        return int(os.environ["MASTER_PORT"])

    @staticmethod
    def detect() -> bool:
        return False  # passed to Lightning explicitly, not detected

    def world_size(self) -> int:
        return self._processes.count

    def set_world_size(self, size: int) -> None:
        """Do nothing: the launcher determines the number of processes."""

    def global_rank(self) -> int:
        return self._processes.rank

    def set_global_rank(self, rank: int) -> None:
        """Do nothing: the launcher determines the rank."""

    def local_rank(self) -> int:
        return self._processes.local_rank

    def node_rank(self) -> int:
        return 0  # Lightning derives global ranks from it, but they are given
