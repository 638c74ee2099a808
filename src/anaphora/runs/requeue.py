"""Requeueing of a run that a cluster stops: its job ends so that submitit queues it again."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator

GRACE_SECONDS = 300.0
"""How long a job that was asked to end waits for the signal that queues it again, or for the kill."""


@contextlib.contextmanager
def until_requeued() -> Iterator[None]:
    """Run the block as a submitit job that may be preempted; elsewhere it has no effect.

    Training ends by KeyboardInterrupt for two reasons. submitit, having queued the job again, exits: then that exit is
    what leaves the block. Or the cluster sent SIGTERM, as it does some time before it preempts, and Lightning stopped:
    then the block waits for what queues the job again, which is submitit at the next signal, or the cluster itself.
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
