"""Settings of exported runs, which are in a config.json in the format of `transformers`.

A run directory has a config.yaml instead; all code that reads runs supports both. Importing this module does not import
torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path, PurePath
from typing import Any

from anaphora.base.errors import UserError
from anaphora.base.files import read_json
from anaphora.base.hub import HUB_PREFIX
from anaphora.model.pretrained.families import CONFIG
from anaphora.settings.data import Data
from anaphora.settings.model.attention import heads_of
from anaphora.settings.model.position import Learned
from anaphora.settings.run import Config, from_plain, read_config, to_plain
from anaphora.settings.typed import PATHS
from anaphora.settings.vocabulary import PADDING

MODEL_TYPE = "anaphora"  # value of `model_type` in the config.json of an exported run
RUN_CONFIG = "config.yaml"  # file with the settings in a run directory
CALIBRATION = "calibration.json"  # file with the softmax temperatures of a run's answers


def is_run(folder: Path) -> bool:
    """Return whether a folder holds a run of this package, trained or exported."""
    return (folder / RUN_CONFIG).exists() or _json_config(folder).get("model_type") == MODEL_TYPE


def settings_of(folder: Path) -> Config:
    """Return the settings of the run in a folder.

    Raises:
        UserError: the folder holds no run, or its settings are broken or invalid.
    """
    config = _json_config(folder)
    if (folder / RUN_CONFIG).exists() or config.get("model_type") != MODEL_TYPE:
        return read_config(folder / RUN_CONFIG)
    return published_settings(config.get("run"), str(folder / CONFIG))


def published_settings(run: Any, place: str) -> Config:
    """Return a run's settings from the value of the key `run` in a config.json; `place` names the file in messages."""
    if not isinstance(run, dict):
        raise UserError(f"{place}: run ({run!r}) must hold the settings of a run")
    return from_plain(run, place)


def config_json(config: Config, vocabulary: int) -> dict[str, Any]:
    """Return the content of config.json: the run's settings, and the model's shape in the fields of `transformers`.

    Absolute paths and paths in a home folder are reduced to their last part, so that they do not reveal folder names.
    """
    return {
        "model_type": MODEL_TYPE,
        "architectures": ["AnaphoraForMaskedLM" if config.task.masked_lm > 0 else "AnaphoraModel"],
        "vocab_size": vocabulary,
        **shape(config),
        "run": _with_paths(to_plain(config), _without_own_folders),
    }


def shape(config: Config) -> dict[str, Any]:
    """Return a model's shape as the fields that `transformers` uses in config.json."""
    position = config.model.position
    longest = {"max_position_embeddings": position.max_length} if isinstance(position, Learned) else {}
    return {
        "hidden_size": config.model.width,
        "num_hidden_layers": config.model.layers,
        "num_attention_heads": heads_of(config.model.attention),
        "tie_word_embeddings": config.model.tied_output,
        "pad_token_id": PADDING,
        **longest,
    }


def without_folders(config: Config) -> Config:
    """Return the settings with every path reduced to its last part; names on the Hugging Face Hub are kept."""
    return from_plain(_with_paths(to_plain(config), _file_name), RUN_CONFIG)


def data_without_folders(data: Data) -> dict[str, Any]:
    """Return the settings of a corpus as plain values, with every path reduced to its last part.

    Names of corpora on the Hugging Face Hub are not changed.
    """
    plain: dict[str, Any] = _with_paths(asdict(data), _file_name, "data")
    return plain


def _file_name(path: str) -> str:
    return path if path.startswith(HUB_PREFIX) else PurePath(path).name


def _json_config(folder: Path) -> dict[str, Any]:
    """Return the content of the file config.json in a folder; empty if the file is missing or broken."""
    try:
        config: dict[str, Any] = read_json(folder / CONFIG, dict)
    except (FileNotFoundError, UserError):
        return {}
    return config


def _without_own_folders(path: str) -> str:
    """Reduce an absolute path, or a path in a home folder, to its last part; return any other path unchanged."""
    return PurePath(path).name if path.startswith("~") or PurePath(path).is_absolute() else path


def _with_paths(plain: Any, shown: Callable[[str], str], setting: str = "") -> Any:
    """Apply `shown` to every path in plain settings. A path is a string whose dotted setting name is in `PATHS`.

    `plain` is the value of the setting, or group of settings, with the dotted name `setting`.
    """
    if isinstance(plain, dict):
        return {name: _with_paths(value, shown, f"{setting}.{name}".strip(".")) for name, value in plain.items()}
    if isinstance(plain, list):
        return [_with_paths(value, shown, setting) for value in plain]
    return shown(plain) if isinstance(plain, str) and setting in PATHS else plain
