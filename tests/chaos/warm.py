"""Imports and cached results shared by all commands, prepared once in the process from which trials are forked."""

from __future__ import annotations

from importlib import import_module

import pyarrow.compute  # noqa: F401
import torch
from hydra.core.override_parser.overrides_parser import OverridesParser

from anaphora.base.code import code_digest
from anaphora.cli import register_commands

HEAVY = (
    "training.reuse",
    "commands.parts.shared",
    "analysis.evidence.measurement",
    "analysis.tasks.extraction",
    "studies.run",
)
for module in (*HEAVY, "studies.run"):
    import_module(f"anaphora.{module}")
torch.set_num_threads(1)
register_commands()
code_digest("anaphora.data.store")
OverridesParser.create().parse_override("a=1")
