"""What a name on the hub is, and whether the hub can be reached: one request, where its own libraries retry long."""

from __future__ import annotations

from importlib import import_module
from threading import Thread
from typing import Any

from anaphora.base.errors import UserError

HUB_PREFIX = "hf://"
"""What a name on the hub begins with; no other name is ever looked up there."""
TIMEOUT_SECONDS = 5.0
"""How long the hub may take to answer."""


def import_transformers(extra: str = "transformers") -> Any:
    """The library `transformers`, which the core does without.

    Args:
        extra: of this package, which installs it.

    Raises:
        UserError: it is not installed.
    """
    try:
        return import_module("transformers")
    except ImportError:
        raise UserError(f"transformers is not installed: pip install 'anaphora[{extra}]'") from None


def is_reachable() -> bool:
    """Whether the hub, or what HF_ENDPOINT names in its place, answers anything; never where HF_HUB_OFFLINE is set."""
    from huggingface_hub import constants, get_session

    answers: list[int] = []

    def request() -> None:
        try:
            answer = get_session().head(constants.ENDPOINT, timeout=TIMEOUT_SECONDS, follow_redirects=False)
        except Exception:  # no route, a proxy that refuses, too slow, set to be offline: unrelated classes
            return
        answers.append(answer.status_code)

    # In a thread, since no timeout of a request holds for the look-up of the host's name.
    thread = Thread(target=request, daemon=True)
    thread.start()
    thread.join(TIMEOUT_SECONDS)
    return bool(answers)
