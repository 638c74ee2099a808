"""One line for the user in Chinese where that is the language of the interface.

Messages are written in English where they are raised. zh.toml has the Chinese of each as a template, "{0} is missing",
and a message is translated by the templates that could have written it. The file is read when the first message is
printed in Chinese, so that nothing else waits for it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from anaphora.base.checks import one_of
from anaphora.base.language import LANGUAGES

VARIABLE = "ANAPHORA_LANGUAGE"
"""The environment variable that names the language of messages."""
_SETTING = "interface_language="
_JOINED = {": ": "：", "; ": "；", ", ": "，"}
"""What joins a message to its place and its way out, with the Chinese mark for it."""
_VALUE = re.compile(r"""'[^']*'|"[^"]*"|\[[^\[\]]*\]|-?[\d.e+-]*""")
"""A value as Python writes it: a text, a list or a number."""
_PLACE = re.compile(r"\{(\d+)\}")


class Reading(NamedTuple):
    """One way to read a text: how many of its characters belong to templates, and the text in Chinese."""

    characters: int
    chinese: str


class Template(NamedTuple):
    """A message with numbered places for values."""

    words: tuple[str, ...]
    pattern: str
    chinese: str


def interface_language() -> str:
    """The language of messages: that of the setting on the command line, else of the variable, else English.

    A setting that asks for pages in both languages names none for messages. The locale does not count: a log or a
    script that reads messages stays the same on every machine.
    """
    settings = [argument.removeprefix(_SETTING) for argument in sys.argv[1:] if argument.startswith(_SETTING)]
    named = settings[-1].strip("'\"") if settings else None
    return named if named in LANGUAGES else environment_language()


def environment_language(otherwise: str = "en") -> str:
    """The language of pages, figures and messages unless a setting names one: that of the variable, else English.

    Args:
        otherwise: the language where the variable names none.
    """
    return os.environ.get(VARIABLE) or otherwise


def check_interface_language() -> None:
    """Refuse a language that messages do not have.

    Raises:
        UserError: the environment variable names one.
    """
    one_of(VARIABLE, environment_language(), LANGUAGES)


def in_interface_language(message: str) -> str:
    """A message for the user in the language of the interface."""
    return in_language(message, interface_language())


def in_language(message: str, language: str) -> str:
    """A message in Chinese where that is the language; what no template could have written stays as it is."""
    return _Readings(message).best(message).chinese if language == "zh" else message


class _Readings:
    """The readings of a message and its parts, each read once, by the templates whose words the message has."""

    def __init__(self, message: str) -> None:
        self._templates = [one for one in _templates() if all(words in message for words in one.words)]
        self._read: dict[str, Reading] = {}

    def best(self, text: str) -> Reading:
        """The reading in which most characters belong to templates; of those with equally many, the first."""
        if text not in self._read:
            readings = [Reading(0, text)]
            if not _VALUE.fullmatch(text):
                readings += [*self._by_parts(text), *self._by_template(text)]
            self._read[text] = max(readings, key=lambda reading: reading.characters)
        return self._read[text]

    def _by_parts(self, text: str) -> Iterator[Reading]:
        """A place or a message, and a message behind it; commas stand between values too, where neither is read."""
        for joint, mark in _JOINED.items():
            for match in re.finditer(re.escape(joint), text):
                before, after = self.best(text[: match.start()]), self.best(text[match.end() :])
                if (after.characters and (before.characters or joint != ", ")) or (before.characters and joint == "; "):
                    yield Reading(before.characters + after.characters, f"{before.chinese}{mark}{after.chinese}")
        if text.endswith(")"):
            for match in re.finditer(r" \(", text):
                before, inside = self.best(text[: match.start()]), self.best(text[match.end() : -1])
                if inside.characters:
                    yield Reading(before.characters + inside.characters, f"{before.chinese}（{inside.chinese}）")

    def _by_template(self, text: str) -> Iterator[Reading]:
        for template in self._templates:
            if match := _compiled(template.pattern).fullmatch(text):
                values = [self.best(value) for value in match.groups()]
                characters = sum(map(len, template.words)) + sum(value.characters for value in values)
                yield Reading(characters, template.chinese.format(*(value.chinese for value in values)))


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.DOTALL)


@cache
def _templates() -> tuple[Template, ...]:
    """Every template of the file."""
    import tomllib  # no command that goes well needs it

    table = tomllib.loads(Path(__file__).with_name("zh.toml").read_text(encoding="utf-8"))
    return tuple(_template(english, chinese) for room in table.values() for english, chinese in room.items())


def _template(english: str, chinese: str) -> Template:
    words = [part.replace("{{", "{").replace("}}", "}") for part in _PLACE.split(english)[::2]]
    pattern = "(.*?)".join(map(re.escape, words))
    return Template(tuple(filter(None, words)), pattern, chinese)
