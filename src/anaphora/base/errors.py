"""Exception class of user errors, and the command that installs a missing package."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from anaphora.base.translation import Message, _

LONGEST_MESSAGE = 500  # maximum number of characters of an error message, since it may quote a value of any length


class UserError(ValueError):
    """Error in a setting, a file or a command, shown in one line without a traceback; exit status 2.

    The command line shows the message in English. A message that a page may show is marked with `N_`; it is then a
    format string such as "{name} ({value}) must be a text", whose `values` are separate so that it can be translated.
    """

    exit_status = 2

    def __init__(self, message: str, **values: object) -> None:
        self._message, self._values = message, values
        super().__init__(self._filled(message))

    def translated(self) -> str:
        """Return the message in the language of the page or interface, or in English if there is no translation."""
        return self._filled(_(self._message))

    def _filled(self, message: str) -> str:
        return shortened(Message(message).format(**self._values) if self._values else message)


class FailedRunsError(UserError):
    """Failure of some of the runs of a command; the results of the other runs are written."""

    exit_status = 1


def counted(count: int, noun: str) -> str:
    """Return a number with its noun for an error message: "1 item", or "1,200 items"."""
    return f"{count:,} {noun}" + "s" * (count != 1)


def shortened(message: str) -> str:
    """Shorten a long message in the middle: its start names the setting or file, and its end the allowed values."""
    if len(message) <= LONGEST_MESSAGE:
        return message
    half = (LONGEST_MESSAGE - len(" ... ")) // 2
    return f"{message[:half]} ... {message[-half:]}"


def one_line(error: BaseException) -> str:
    """Summarise an error in one line, including the name of the setting, which OmegaConf writes on a later line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    key = next((line.partition(":")[2].strip() for line in lines if line.startswith("full_key:")), "")
    first = lines[0] if lines else type(error).__name__
    if first.endswith(":") and len(lines) > 1:  # Hydra names the file in the first line, and the problem in the next
        first = f"{first.partition(':')[0]}: {lines[1]}"
    return f"{key}: {first}" if key and key not in first else first


def pip_install(what: str) -> str:
    """Return the command that installs a package for the running Python.

    The command contains the path of this Python, since `pip` on the search path may belong to another installation.
    Extras of this package can be installed by name, even if the package was installed from a checkout.
    """
    path = Path(sys.executable or "python")
    here = Path.cwd()
    python = shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path))
    return f"{python} -m pip install {what}"
