"""Hydra composes what the typed settings describe; a mistake in it becomes one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from anaphora.base.errors import UserError, one_line
from anaphora.settings.run import Config
from anaphora.settings.typed import resolve
from anaphora.settings.variants import GROUPS, VARIANTS


def register_configs(schemas: Mapping[str, type[Any]]) -> None:
    """Tell Hydra every group and option, and the schema of each file of `configs`, before anything is composed.

    Args:
        schemas: settings by the file that they belong to; Hydra knows them as "<file>_schema".
    """
    store = ConfigStore.instance()
    for name, schema in schemas.items():
        store.store(name=f"{name}_schema", node=schema)
    for group, base in GROUPS.items():
        for name, variant in VARIANTS[base].items():
            store.store(group=group, name=name, node=variant)


def config_folder() -> Path:
    """Where the configuration of the command that is running lies."""
    sources = HydraConfig.get().runtime.config_sources
    return Path(next(source.path for source in sources if source.provider == "main"))


def error_message(error: BaseException) -> str:
    """A user's mistake, whoever found it, with what is allowed where that is known."""
    from hydra.errors import OverrideParseException

    message = one_line(error)
    if isinstance(error, OverrideParseException):
        message += " (a value with blanks, punctuation or Chinese needs quotes inside quotes: \"text='...'\")"
    elif error.__cause__ is not None:
        message += f" ({one_line(error.__cause__)})"
    allowed = _allowed_values(error)
    if allowed:
        message += f"; allowed: {', '.join(allowed)}"
    return message


def _allowed_values(error: BaseException) -> list[str]:
    """What could stand in the wrong setting's or the wrong option's place, where the error knows."""
    _, listed, options = str(error).partition("Available options")
    if listed:
        return [line.strip() for line in options.splitlines()[1:] if line.strip() and ":" not in line]
    cause = error.__cause__ or error.__context__
    parent = getattr(cause, "parent_node", None)
    if isinstance(parent, DictConfig) and "not in" in str(cause):
        return [str(name) for name in parent]
    return []


def compose_run(folder: Path, overrides: Sequence[str], what: str) -> Config:
    """The checked settings of a training run, as `scripts/train.py` would compose them.

    Args:
        folder: of the configuration.
        overrides: as on the command line.
        what: what they belong to, for the message.

    Raises:
        UserError: an override is wrong; the message names `what`.
    """
    from hydra import compose, initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra
    from hydra.errors import HydraException

    register_configs({"train": Config})
    running = GlobalHydra.instance()
    outer, running.hydra = running.hydra, None  # that of the script; Hydra knows one at a time
    try:
        with initialize_config_dir(str(folder.absolute()), version_base="1.3"):
            return resolve(compose("train", overrides=list(overrides)), Config)
    except (HydraException, OmegaConfBaseException, UserError) as error:
        raise UserError(f"{what}: {error_message(error)}") from None
    finally:
        running.hydra = outer
