"""Names of models on the Hugging Face Hub, a check of whether the Hub is reachable, and import of `transformers`."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from threading import Thread
from typing import Any

from anaphora.base.errors import UserError, one_line, pip_install

HUB_PREFIX = "hf://"  # prefix of names on the Hugging Face Hub; other names are never looked up there
OLDEST_TRANSFORMERS = (5, 2)
"""Oldest version of `transformers` whose models are read; the extras in pyproject.toml name the same version."""
TIMEOUT_SECONDS = 5.0
_ANSWER_HOLDS_SECONDS = 10.0  # lifetime of a cached answer, so that a command waits only once


def import_transformers(extra: str = "transformers") -> Any:
    """Import `transformers`.

    Raises:
        UserError: it is missing, too old or broken; the message names the `extra` of this package that installs it.
    """
    command = pip_install(f"'anaphora[{extra}]'")
    try:
        transformers = import_module("transformers")
    except ImportError as error:
        if error.name == "transformers":
            raise UserError(f"transformers is not installed: {command}") from None
        raise UserError(f"transformers cannot be imported ({one_line(error)}): {command}") from None
    version = str(transformers.__version__)
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < OLDEST_TRANSFORMERS:
        oldest = ".".join(map(str, OLDEST_TRANSFORMERS))
        raise UserError(f"transformers {version} is too old; at least {oldest} is needed: {command}")
    return transformers


def no_folder_error(setting: str, name: str) -> UserError:
    """Return the error for a model setting whose value is a folder that does not exist."""
    return UserError(
        f"{setting} ({name}): there is no such folder; a model on the hub is written hf://owner/name, and shipped is "
        "the run inside the package"
    )


def pickle_advice(pickles: Sequence[str]) -> str:
    """Return the end of a message about a missing safetensors file: advice to convert a pickle, if there is one."""
    return f"; {pickles[0]} is a pickle, which may run code: convert it to safetensors" if pickles else ""


def is_reachable() -> bool:
    """Return whether the Hub or the server in HF_ENDPOINT answers in time; False if HF_HUB_OFFLINE is set.

    The result is cached for up to ten seconds.
    """
    from huggingface_hub import constants

    now = int(time.monotonic() / _ANSWER_HOLDS_SECONDS)
    return _answers(constants.ENDPOINT, TIMEOUT_SECONDS, constants.HF_HUB_OFFLINE, now)


@lru_cache(maxsize=1)
def _answers(address: str, seconds: float, offline: bool, _now: int) -> bool:
    if offline:
        return False
    from huggingface_hub import get_session

    answers: list[int] = []

    def request() -> None:
        try:
            answer = get_session().head(address, timeout=seconds, follow_redirects=False)
        except Exception:  # no route, a refusing proxy, a timeout or offline mode raise unrelated classes
            return
        answers.append(answer.status_code)

    # In a thread, since the timeout of a request does not cover the DNS lookup.
    thread = Thread(target=request, daemon=True)
    thread.start()
    thread.join(seconds)
    return bool(answers)
