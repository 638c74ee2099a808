"""Digests of weights, items and analysis code, to detect outdated results; each has 16 hexadecimal digits."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict

import torch

from anaphora.base.code import code_digest
from anaphora.base.files import file_digest
from anaphora.base.tensors import arrays_digest
from anaphora.data.example import Example, to_record
from anaphora.data.text import Text
from anaphora.runs.directory import Run, distinct_tensors


def analysis_code_digest(*more: str) -> str:
    """Return a digest of the analysis code, of all code that it imports, and of torch's version.

    Args:
        more: dotted names of further modules to include.
    """
    return hashlib.sha256(f"{code_digest('anaphora.analysis', *more)} {torch.__version__}".encode()).hexdigest()[:16]


def weights_digest(run: Run) -> str:
    """Return a digest of a run's weights file."""
    return file_digest(run.files.weights)[:16]


def model_digest(run: Run) -> str:
    """Return a digest of a run's weights, whatever file they were read from."""
    return arrays_digest({name: tensor.numpy() for name, tensor in distinct_tensors(run.model).items()})[:16]


def examples_digest(examples: Iterable[Example | Text]) -> str:
    """Return a digest of items, whatever file they were read from."""
    items = hashlib.sha256()
    for example in examples:
        record = to_record(example) if isinstance(example, Example) else asdict(example)
        items.update(json.dumps(record, sort_keys=True).encode())
    return items.hexdigest()[:16]
