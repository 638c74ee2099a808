"""Where a run starts from: a run of ours, or pretrained weights in a folder or on the hub. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from anaphora import config as configuration
from anaphora.config import Config
from anaphora.data.settings import WordVocabulary
from anaphora.errors import UserError
from anaphora.hub import is_reachable
from anaphora.model import settings
from anaphora.model.families import CONFIG, WEIGHTS, model_settings

TOKENIZERS = ("tokenizer.json", "vocab.txt")
_PICKLES = ("pytorch_model.bin", "model.pt", "model.pth")
_NEEDED = f"{CONFIG}, {WEIGHTS} and {' or '.join(TOKENIZERS)}"
_DROPOUTS = ("dropout", "head_dropout")


def located(name: str, setting: str) -> Path:
    """The folder that a setting names, or the downloaded files of the hub's model of that name.

    Raises:
        UserError: there is neither, or the folder holds no model that can be read; what to put where is told.
    """
    folder = Path(name).expanduser()
    if not folder.exists():
        folder = _downloaded(name, setting)
    if not folder.is_dir():
        raise UserError(f"{setting} ({name}) must be a folder: a run directory, or one with {_NEEDED}")
    if (folder / "config.yaml").exists():
        return folder
    if not (folder / CONFIG).exists():
        raise UserError(f"{setting} ({name}): neither config.yaml of a run nor {CONFIG} of pretrained weights is there")
    if not (folder / WEIGHTS).exists():
        pickles = [one for one in _PICKLES if (folder / one).exists()]
        because = f"; {pickles[0]} is a pickle, which may run code: convert it to safetensors" if pickles else ""
        raise UserError(f"{setting} ({name}): {WEIGHTS} is missing{because}")
    if not any((folder / one).exists() for one in TOKENIZERS):
        raise UserError(f"{setting} ({name}): {' and '.join(TOKENIZERS)} are missing; one of them is needed")
    return folder


def is_pretrained(folder: Path) -> bool:
    """Whether a folder holds pretrained weights rather than a run of ours."""
    return (folder / CONFIG).exists() and not (folder / "config.yaml").exists()


def settle(config: Config) -> Config:
    """A run's settings with the encoder of what it starts from; unchanged where it starts from nothing.

    Raises:
        UserError: `start` leads nowhere, or settings of the encoder's shape or of the vocabulary stand beside it.
    """
    if config.start is None or config.resume is not None:
        return config
    folder = located(config.start, "start")
    theirs = model_settings(folder) if is_pretrained(folder) else configuration.read(folder / "config.yaml").model
    _nothing_beside(config)
    asked = config.model.attention
    dropouts = {one: getattr(asked, one) for one in _DROPOUTS if hasattr(theirs.attention, one)}
    chosen = replace(theirs, dropout=config.model.dropout, attention=replace(theirs.attention, **dropouts))
    settled = replace(config, model=chosen)
    try:
        settled.check_model()
    except ValueError as error:
        raise UserError(str(error)) from None
    return settled


def _nothing_beside(config: Config) -> None:
    given, untouched = config.model, untouched_model()
    quiet = replace(given, dropout=0.0)
    if isinstance(given.attention, settings.MultiHead):
        quiet = replace(quiet, attention=replace(given.attention, dropout=0.0, head_dropout=0.0))
    differing = _first_difference(quiet, untouched, "model") or _first_difference(
        config.vocabulary, WordVocabulary(), "vocabulary"
    )
    if differing:
        raise UserError(
            f"{differing} cannot be set beside start={config.start}, which brings its own encoder and tokenizer; "
            "of model, only dropout, attention.dropout and attention.head_dropout can be set"
        )


def untouched_model() -> settings.Model:
    """What `scripts/train.py` composes for `model` where nobody sets anything."""
    return settings.Model(
        position=settings.Rotary(),
        attention=settings.MultiHead(),
        feed_forward=settings.Gelu(),
        norm=settings.LayerNorm(),
        initialisation=settings.Normal(),
    )


def _first_difference(one: Any, other: Any, path: str) -> str | None:
    """The path of the first setting in which two settings differ, with its value."""
    if type(one) is not type(other):
        return f"{path} ({getattr(one, 'kind', one)})"
    for each in fields(one):
        mine, yours = getattr(one, each.name), getattr(other, each.name)
        if mine != yours:
            inner = hasattr(mine, "kind")
            return _first_difference(mine, yours, f"{path}.{each.name}") if inner else f"{path}.{each.name} ({mine})"
    return None


def _downloaded(name: str, setting: str) -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(
            snapshot_download(
                name,
                allow_patterns=[CONFIG, WEIGHTS, *TOKENIZERS, "tokenizer_config.json"],
                etag_timeout=5,
                local_files_only=not is_reachable(),  # else it tries for long
            )
        )
    except Exception as error:  # unrelated classes for a bad name, a missing model and no network
        raise UserError(
            f"{setting} ({name}): there is no such folder, and no such model could be fetched from the hub "
            f"({type(error).__name__}); without a network put {_NEEDED} into a folder and name it"
        ) from None
