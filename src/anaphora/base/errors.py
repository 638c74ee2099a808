"""The error class for user mistakes, and the command that installs a missing package."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from anaphora.base.locale.translation import _

LONGEST_MESSAGE = 500
"""Characters of an error's line; a value of any length may stand in it."""


class UserError(ValueError):
    """A mistake in a setting, a file or a command: shown as one line, without a traceback, exit status 2.

    The line is English, also on the command line. An error that a page shows has its message marked by `N_` and its
    values apart, so that the page can show it in its own language.

    Args:
        message: the line; with values a template with named places, "{name} ({value}) must be a text".
        values: what is filled into the places.
    """

    exit_status = 2

    def __init__(self, message: str, **values: object) -> None:
        self._message, self._values = message, values
        super().__init__(shortened(message.format(**values) if values else message))

    def translated(self) -> str:
        """Return the line in the language of the page or of the interface, in English if the catalogue lacks it."""
        message = _(self._message)
        return shortened(message.format(**self._values) if self._values else message)


class FailedRunsError(UserError):
    """An error for commands of which some runs failed; results of the other runs are written."""

    exit_status = 1


def shortened(message: str) -> str:
    """Shorten a long message in the middle, keeping the place at its start and what is allowed at its end."""
    if len(message) <= LONGEST_MESSAGE:
        return message
    half = (LONGEST_MESSAGE - len(" ... ")) // 2
    return f"{message[:half]} ... {message[-half:]}"


def one_line(error: BaseException) -> str:
    """Return the first sentence of an error of several lines."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    key = next((line.partition(":")[2].strip() for line in lines if line.startswith("full_key:")), "")
    first = lines[0] if lines else type(error).__name__
    if first.endswith(":") and len(lines) > 1:  # Hydra names the file there, and what is wrong with it below
        first = f"{first.partition(':')[0]}: {lines[1]}"
    return f"{key}: {first}" if key and key not in first else first


def pip_install(what: str) -> str:
    """Return the command that installs a package for this program.

    It names the Python that runs: the `pip` on the path may belong to another one, where `make` has installed nothing.
    There this package is known by its name, also if it was installed from a checkout, and an extra of it adds packages
    and replaces none.
    """
    path = Path(sys.executable or "python")
    here = Path.cwd()
    python = shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path))
    return f"{python} -m pip install {what}"
