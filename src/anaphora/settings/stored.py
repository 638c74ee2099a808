"""Serialisation of a run's settings, as config.yaml or as plain values."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from anaphora.base.errors import UserError, one_line
from anaphora.settings.run import Config
from anaphora.settings.typed import construct


def load_yaml(path: Path, missing: str) -> Any:
    """Return the content of a YAML file as OmegaConf containers.

    Args:
        path: path of the file.
        missing: error message if the file does not exist.

    Raises:
        UserError: the file does not exist, or is not YAML.
    """
    try:
        return OmegaConf.load(path)
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(f"{path}: {missing}") from None
    except Exception as error:  # YAML and OmegaConf raise unrelated classes
        raise UserError(f"{path}: not readable as YAML ({one_line(error)})") from None


def read(path: Path) -> Config:
    """Read the settings of a run from its config.yaml.

    Raises:
        UserError: the file is missing, is not YAML, or has an unknown or invalid setting.
    """
    composed = load_yaml(path, "there is no run here (config.yaml is missing)")
    try:
        if not isinstance(composed, DictConfig):
            raise UserError("must hold settings by name")
        # References are not resolved, so that a downloaded run cannot read anything from this machine.
        plain = OmegaConf.to_container(composed, resolve=False)
        assert isinstance(plain, dict)
    except OmegaConfBaseException as error:
        raise UserError(f"{path}: {one_line(error)}") from None
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    return from_plain({str(name): value for name, value in plain.items()}, str(path))


def from_plain(plain: Mapping[str, Any], place: str) -> Config:
    """Return a run's settings from plain values; `place` names their source in messages.

    Raises:
        UserError: a setting is unknown or invalid, or contains a reference.
    """
    try:
        _refuse_interpolations(plain)
        return construct(Config, plain, "")
    except OmegaConfBaseException as error:
        raise UserError(f"{place}: {one_line(error)}") from None
    except UserError as error:
        raise UserError(f"{place}: {error}") from None


def _refuse_interpolations(plain: Any, place: str = "") -> None:
    inner = plain.items() if isinstance(plain, Mapping) else enumerate(plain) if isinstance(plain, list) else ()
    for name, value in inner:
        _refuse_interpolations(value, f"{place}.{name}" if place else str(name))
    if isinstance(plain, str) and "${" in plain:
        raise UserError(f"{place} ({plain[:80]!r}) refers to another setting; a stored run may hold only values")


def to_plain(config: Config) -> dict[str, Any]:
    """Return settings as plain values that `from_plain` can read.

    `resume_data` is left out, since no stored run has this setting: it only gives new paths when a run is resumed.
    Files and digests of settings are therefore the same as before the setting existed.
    """
    return {name: value for name, value in dataclasses.asdict(config).items() if name != "resume_data"}


def dumps(config: Config) -> str:
    """Return settings as YAML text that `read` can read."""
    return OmegaConf.to_yaml(OmegaConf.create(to_plain(config)))
