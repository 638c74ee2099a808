"""Several processes that train one run, like torchrun but faster to start, and items for them."""

from __future__ import annotations

import multiprocessing
import os
import socket
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from anaphora.data.example import Example

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["anaphora.training.run"])  # imported once for all processes of all tests


def train_on(
    ranks: int, config: Any, signal_to_rank_1: int | None = None, cache_of_rank_1: Path | None = None
) -> list[str]:
    """Train in several processes; rank 1 may get a signal at step 5, or a separate cache as on another host.

    Returns:
        The message with which each process ended; "" for a killed one.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes, ends = [], []
    for rank in range(ranks):
        receiver, sender = CONTEXT.Pipe(duplex=False)
        variables = {
            "ANAPHORA_CACHE": str(cache_of_rank_1 if cache_of_rank_1 and rank == 1 else os.environ["ANAPHORA_CACHE"]),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "WORLD_SIZE": str(ranks),
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
        }
        processes.append(
            CONTEXT.Process(target=_train, args=(variables, config, signal_to_rank_1 if rank == 1 else None, sender))
        )
        processes[-1].start()
        sender.close()
        ends.append(receiver)
    for process in processes:
        process.join(60)
        assert process.exitcode is not None, "the processes wait for one another"
    return [_received(end) for end in ends]


def _received(end: Connection) -> str:
    try:
        return str(end.recv())
    except EOFError:
        return ""


def _train(variables: dict[str, str], config: Any, signal_at_step_5: int | None, sender: Connection) -> None:
    os.environ.update(variables)
    import torch

    from anaphora.base.errors import UserError
    from anaphora.runs.directory import training_record
    from anaphora.runs.processes import Terminated
    from anaphora.training.run import train

    torch.set_num_threads(1)
    if signal_at_step_5 is not None:
        _signal_oneself(signal_at_step_5)
    try:
        end = f"{training_record(train(config))['steps']} steps"
    except UserError as error:
        end = str(error)
    except Terminated:
        end = "terminated"
    except KeyboardInterrupt:
        end = "stopped"
    except RuntimeError:
        end = "broken off"
    sender.send(end)


def _signal_oneself(number: int) -> None:
    from anaphora.training.module import TrainingModule

    patched: Any = TrainingModule
    whole_step = patched.training_step

    def signalled(module: TrainingModule, batch: Any, batch_idx: int) -> Any:
        if module.global_step == 5:
            os.kill(os.getpid(), number)
        return whole_step(module, batch, batch_idx)

    patched.training_step = signalled


def in_minimal_pairs(examples: Sequence[Example]) -> list[Example]:
    """Return every second example twice, as a pair with different answers; one pair in three is not marked as one."""
    return [
        replace(example, antecedents=(answer,), minimal_pair=f"pair {number}" if number % 3 else "")
        for number, example in enumerate(examples[::2])
        for answer in (0, 1)
    ]
