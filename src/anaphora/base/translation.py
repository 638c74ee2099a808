"""Language of the interface, and translation of its messages: English in the code, Chinese in zh.po.

`python tests/catalogue.py` updates zh.po from the code. Messages have typographic apostrophes and quotation marks, as
in “the head’s row”; straight ones enclose what a user types, as in 'only=[base]', and occur in stored files (`stored`).
"""

from __future__ import annotations

import functools
import json
import os
import re
import string
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, ParamSpec

from anaphora.base.language import LANGUAGES

VARIABLE = "ANAPHORA_LANGUAGE"  # environment variable for the language of the interface
CATALOGUE = Path(__file__).with_name("zh.po")
_LINE = re.compile(r'"(.*)"\n')
_ENTRY = re.compile(r'(?:msgctxt ((?:".*"\n)+))?msgid ((?:".*"\n)+)msgstr ((?:".*"\n)+)')
P = ParamSpec("P")
_SETTING = "interface_language="
_SPOKEN: ContextVar[str | None] = ContextVar("spoken", default=None)


def interface_language() -> str:
    """Return the language of the interface, set on the command line or in the environment; English by default.

    If the setting requests pages in both languages, it is ignored here. The locale is also ignored, so that the output
    is the same on every machine.
    """
    settings = [argument.removeprefix(_SETTING) for argument in sys.argv[1:] if argument.startswith(_SETTING)]
    named = settings[-1].strip("'\"") if settings else None
    return named if named in LANGUAGES else environment_language()


def environment_language(otherwise: str = "en") -> str:
    """Return the language in the environment variable ANAPHORA_LANGUAGE, or `otherwise` if it is unset or empty."""
    return os.environ.get(VARIABLE) or otherwise


@contextmanager
def spoken_in(language: str) -> Iterator[None]:
    """Set the language into which the function `_` translates inside the `with` block."""
    token = _SPOKEN.set(language)
    try:
        yield
    finally:
        _SPOKEN.reset(token)


def in_language_of_messages(write: Callable[P, None]) -> Callable[P, None]:
    """Decorate a function that prints, so that it prints in the interface's language, even while a page is written."""

    @functools.wraps(write)
    def written(*arguments: P.args, **named: P.kwargs) -> None:
        with spoken_in(interface_language()):
            write(*arguments, **named)

    return written


def spoken_language() -> str:
    """Return the language into which `_` translates: the one set by `spoken_in`, or else that of the interface."""
    return _SPOKEN.get() or interface_language()


class Message(str):
    """Message in which "{jobs:job is|jobs are} submitted" becomes "1 job is submitted" or "3 jobs are submitted"."""

    __slots__ = ()

    def format(self, *arguments: Any, **values: Any) -> str:
        return _AGREEMENT.vformat(self, arguments, values)


class _Agreement(string.Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        one, separator, other = format_spec.partition("|")
        return f"{value} {one if str(value) == '1' else other}" if separator else format(value, format_spec)


_AGREEMENT = _Agreement()


def _(message: str) -> str:
    """Translate a message; fill in values afterwards: `_("{jobs:job is|jobs are} submitted").format(jobs=3)`."""
    return in_language(message, spoken_language())


def pgettext(context: str, message: str) -> str:
    """Translate a message whose Chinese translation depends on the context, such as the part of a page."""
    return Message(_chinese().get((context, message), message) if spoken_language() == "zh" else message)


def N_(message: str) -> str:  # noqa: N802  (the name that gettext's tools know)
    """Mark a message for the catalogue, and return it unchanged, to be translated when it is shown."""
    return message


def stored(message: str) -> str:
    """Translate a sentence that was read from a results file, and make its apostrophes typographic."""
    return _(message).replace("'", "’")


def in_language(message: str, language: str) -> str:
    """Translate a message into a language; return the English message if the catalogue has no translation."""
    return Message(_chinese().get(("", message), message) if language == "zh" else message)


@functools.cache
def _chinese() -> dict[tuple[str, str], str]:
    """Return the Chinese translations by context ("" if there is none) and message."""
    entries = _ENTRY.findall(CATALOGUE.read_text(encoding="utf-8"))
    texts = ([json.loads(f'"{"".join(_LINE.findall(part))}"') for part in entry] for entry in entries)
    return {(context, message): chinese for context, message, chinese in texts if message and chinese}
