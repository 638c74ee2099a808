"""What every command imports and works out anew, done once: each trial is a fork of the process that did it."""

from __future__ import annotations

from importlib import import_module

import datasets  # noqa: F401
import torch
from hydra.core.override_parser.overrides_parser import OverridesParser

from anaphora.base.code import code_digest
from anaphora.cli import COMMANDS
from anaphora.settings.compose import register_configs

for command in ("train", "score_attention", "extract_attention", "evidence", "study"):
    import_module(f"anaphora.commands.{command}")
torch.set_num_threads(1)
register_configs({each.config: each.schema for each in COMMANDS.values()})
code_digest("anaphora.data.store")
OverridesParser.create().parse_override("a=1")
