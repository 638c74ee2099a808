"""Models from which training starts: runs, or pretrained weights in a folder or on the Hugging Face Hub.

Importing this module does not import torch.
"""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from anaphora.base.errors import UserError
from anaphora.base.hub import HUB_PREFIX, is_reachable, no_folder_error, pickle_advice
from anaphora.base.language import LANGUAGES
from anaphora.model.pretrained.families import ADAPTER, CONFIG, WEIGHTS, check_no_adapter, encoder_settings
from anaphora.runs.published import CALIBRATION, RUN_CONFIG, is_run, settings_of
from anaphora.runs.shipped import SHIPPED, run_folder
from anaphora.settings.model import attention as attention_settings
from anaphora.settings.model import encoder as model_settings
from anaphora.settings.model import position as position_settings
from anaphora.settings.run import Config
from anaphora.settings.vocabulary import WordVocabulary

TOKENIZERS = ("tokenizer.json", "vocab.txt")
_PICKLE_FILES = ("pytorch_model.bin", "model.pt", "model.pth")
_NEEDED_FILES = f"{CONFIG}, {WEIGHTS} and {' or '.join(TOKENIZERS)}"
_DOWNLOADED = [
    *(RUN_CONFIG, CONFIG, WEIGHTS, ADAPTER, *TOKENIZERS, "tokenizer_config.json", "training.json", CALIBRATION),
    *("metrics.json", *(f"{language}/metrics.json" for language in LANGUAGES)),
]
_DROPOUTS = {"dropout": "attention weights", "head_dropout": "heads"}
"""Names of the dropout rates of attention, each with a description of what is dropped."""


def locate_model(name: str, setting: str) -> Path:
    """Return the folder of the model that a setting names: local, in the package, or from the Hugging Face Hub.

    Raises:
        UserError: the model does not exist or cannot be downloaded, is an adapter, or its folder has neither
            config.yaml nor all files of an exported run or of pretrained weights.
    """
    folder = _download(name, setting) if name.startswith(HUB_PREFIX) else run_folder(name)
    if not folder.exists():
        raise no_folder_error(setting, name)
    if not folder.is_dir():
        raise UserError(f"{setting} ({name}) must be a folder: a run directory, or one with {_NEEDED_FILES}")
    if (folder / RUN_CONFIG).exists():
        return folder
    check_no_adapter(folder / ADAPTER, str(folder), f"{setting} ({name})")
    if not (folder / CONFIG).exists():
        raise UserError(
            f"{setting} ({name}): neither {RUN_CONFIG} of a run nor {CONFIG} of pretrained weights is there"
        )
    if not (folder / WEIGHTS).exists():
        pickles = [one for one in _PICKLE_FILES if (folder / one).exists()]
        is_split = (folder / f"{WEIGHTS}.index.json").exists()
        advice = "; the weights are in several files: store them in one" if is_split else pickle_advice(pickles)
        raise UserError(f"{setting} ({name}): {WEIGHTS} is missing{advice}")
    if not any((folder / one).exists() for one in TOKENIZERS):
        raise UserError(f"{setting} ({name}): {' and '.join(TOKENIZERS)} are missing; one of them is needed")
    return folder


def holds_run(name: str) -> bool:
    """Return whether a folder, "shipped" or "hf://owner/name" holds a run of this package.

    For a model on the Hub, the file with its settings is downloaded; if this fails, the result is False.
    """
    if not name.startswith(HUB_PREFIX):
        return name == SHIPPED or is_run(Path(name).expanduser())
    from huggingface_hub import hf_hub_download

    offline = not is_reachable()
    for file in (CONFIG, RUN_CONFIG):
        try:
            path = Path(hf_hub_download(name.removeprefix(HUB_PREFIX), file, etag_timeout=5, local_files_only=offline))
        except Exception:  # unrelated classes for a bad name, a missing file and no network
            continue
        if is_run(path.parent):
            return True
    return False


def is_pretrained(folder: Path) -> bool:
    """Return whether a folder holds pretrained weights rather than a run of this package."""
    return (folder / CONFIG).exists() and not is_run(folder)


def with_start_model(config: Config) -> Config:
    """Return a run's settings with the encoder settings of the model whose weights it starts from (`config.start`).

    Dropout rates are not taken from this start model. The settings are returned unchanged if there is no start model,
    or if the run is resumed. A start model on the Hugging Face Hub is downloaded.

    Raises:
        UserError: the start model cannot be found or is damaged; the user has changed settings that the start model
            determines (the vocabulary, and the model except for dropout rates); the start model's kind of attention
            lacks a dropout rate that the user has set; or another setting does not fit the start model's encoder.
    """
    if config.start is None or config.resume is not None:
        return config
    folder = locate_model(config.start, "start")
    theirs = encoder_settings(folder) if is_pretrained(folder) else settings_of(folder).model
    _refuse_other_settings(config)
    attention = config.model.attention
    for one in _DROPOUTS:
        if getattr(attention, one) and not hasattr(theirs.attention, one):
            raise UserError(
                f"model.attention.{one} ({getattr(attention, one)}) has no effect: start={config.start} has "
                f"model.attention={theirs.attention.kind}, which drops no {_DROPOUTS[one]}"
            )
    dropouts = {one: getattr(attention, one) for one in _DROPOUTS if hasattr(theirs.attention, one)}
    chosen = replace(theirs, dropout=config.model.dropout, attention=replace(theirs.attention, **dropouts))
    settled = replace(config, model=chosen)
    try:
        settled.check_model()
    except ValueError as error:
        raise UserError(str(error)) from None
    return settled


def _refuse_other_settings(config: Config) -> None:
    given, untouched = config.model, default_model()
    quiet = replace(given, dropout=0.0)
    if isinstance(given.attention, attention_settings.MultiHead):
        quiet = replace(quiet, attention=replace(given.attention, dropout=0.0, head_dropout=0.0))
    differing = _first_difference(quiet, untouched, "model") or _first_difference(
        config.vocabulary, WordVocabulary(), "vocabulary"
    )
    if differing:
        raise UserError(
            f"{differing} cannot be set together with start={config.start}, which brings its own encoder and "
            "tokenizer; the only settings of model that can be set are dropout, attention.dropout and "
            "attention.head_dropout"
        )


def default_model() -> model_settings.Model:
    """Return the default settings of `model`."""
    return model_settings.Model(
        position=position_settings.Rotary(),
        attention=attention_settings.MultiHead(),
        feed_forward=model_settings.Gelu(),
        norm=model_settings.LayerNorm(),
        initialisation=model_settings.Normal(),
    )


def _first_difference(one: Any, other: Any, path: str) -> str | None:
    """Return the name and value in `one` of the first setting that differs between two groups of settings.

    The format is "name (value)", where the name begins with `path`. The result is None if no setting differs.
    """
    if type(one) is not type(other):
        return f"{path} ({getattr(one, 'kind', one)})"
    for each in fields(one):
        mine, yours = getattr(one, each.name), getattr(other, each.name)
        if mine != yours:
            inner = hasattr(mine, "kind")
            return _first_difference(mine, yours, f"{path}.{each.name}") if inner else f"{path}.{each.name} ({mine})"
    return None


def _download(name: str, setting: str) -> Path:
    from huggingface_hub import snapshot_download

    try:
        folder = snapshot_download(
            name.removeprefix(HUB_PREFIX),
            allow_patterns=_DOWNLOADED,
            etag_timeout=5,
            local_files_only=not is_reachable(),  # otherwise it would retry for a long time
        )
    except Exception as error:  # unrelated classes for a bad name, a missing model and no network
        raise UserError(
            f"{setting} ({name}): no such model could be fetched from the hub ({type(error).__name__}); without a "
            f"network put {_NEEDED_FILES} into a folder and name it"
        ) from None
    return Path(folder)
