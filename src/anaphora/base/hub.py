"""Names on the hub, and a check of whether it is reachable: one request instead of the library's long retries."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from threading import Thread
from typing import Any

from anaphora.base.errors import UserError, pip_install

HUB_PREFIX = "hf://"
"""What a name on the hub begins with; no other name is ever looked up there."""
TIMEOUT_SECONDS = 5.0
"""How long the hub may take to answer."""
_ANSWER_HOLDS_SECONDS = 10.0
"""For so long at most it is not asked again, so that one command waits once."""


def import_transformers(extra: str = "transformers") -> Any:
    """Import `transformers`, which is optional.

    Args:
        extra: of this package, which installs it.

    Raises:
        UserError: it is not installed.
    """
    try:
        return import_module("transformers")
    except ImportError:
        command = pip_install(f"'anaphora[{extra}]'")
        raise UserError(f"transformers is not installed: {command}") from None


def no_folder_error(setting: str, name: str) -> UserError:
    """Return the error for a setting that names a model by a missing folder."""
    return UserError(f"{setting} ({name}): there is no such folder; a model on the hub is written hf://owner/name")


def pickle_advice(pickles: Sequence[str]) -> str:
    """Return advice for a message about missing safetensors if there are pickled weights instead."""
    return f"; {pickles[0]} is a pickle, which may run code: convert it to safetensors" if pickles else ""


def is_reachable() -> bool:
    """Check whether the hub, or HF_ENDPOINT, answers; False if HF_HUB_OFFLINE is set."""
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
        except Exception:  # no route, a proxy that refuses, too slow, set to be offline: unrelated classes
            return
        answers.append(answer.status_code)

    # In a thread, since no timeout of a request holds for the look-up of the host's name.
    thread = Thread(target=request, daemon=True)
    thread.start()
    thread.join(seconds)
    return bool(answers)
