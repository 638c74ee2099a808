"""Requeueing of preempted jobs: a job ends in such a way that submitit queues it again."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator

GRACE_SECONDS = 300.0
"""How long a job that received SIGTERM waits for the signal that requeues it, or for the kill."""


@contextlib.contextmanager
def until_requeued() -> Iterator[None]:
    """Let a preempted submitit job be requeued; outside submitit the block runs as usual.

    Training ends with KeyboardInterrupt in two cases. If submitit has requeued the job and exits, its SystemExit is
    raised. If the cluster sent SIGTERM, which precedes preemption, and Lightning stopped, the block waits until
    submitit, at the next signal, or the cluster requeues the job.
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
