"""The one error that is a user's to mend."""

from __future__ import annotations


class UserError(ValueError):
    """A mistake in a setting, a file or a command: shown as one line, without a traceback, exit status 2."""
