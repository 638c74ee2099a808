"""Digests of weights and of the code that measures, so that what others measured is known as such."""

from __future__ import annotations

import hashlib

import torch

from anaphora.base.code import code_digest
from anaphora.base.tensors import file_digest
from anaphora.runs.directory import Run, RunFiles


def analysis_code_digest(*more: str) -> str:
    """A digest of all code that analysis rests on, and of torch's version.

    Args:
        more: further modules, dotted, which rest on other code too.
    """
    return hashlib.sha256(f"{code_digest('anaphora.analysis', *more)} {torch.__version__}".encode()).hexdigest()[:16]


def weights_digest(run: Run) -> str:
    """A digest of a run's weights."""
    return file_digest(RunFiles(run.directory).weights)[:16]
