"""The words of the report by language, from wording.toml; what a language lacks is shown in English."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any

DEFAULT = "en"
"""The language of the page."""


@lru_cache(maxsize=1)
def _table() -> dict[str, dict[str, dict[str, str]]]:
    return tomllib.loads(Path(__file__).with_name("wording.toml").read_text(encoding="utf-8"))


def phrase(section: str, name: str, language: str = DEFAULT, **values: Any) -> str:
    """One phrase with its names filled in."""
    phrases = labels(section, language)
    return phrases[name].format(**values) if values else phrases[name]


def labels(section: str, language: str = DEFAULT) -> dict[str, str]:
    """All phrases of a section by name, in the order of the file."""
    by_language = _table()[section]
    return by_language[DEFAULT] | by_language.get(language, {})


def label(section: str, name: str, language: str = DEFAULT) -> str:
    """What a name of the evidence is called; a name that has no phrase of its own is written with blanks."""
    return labels(section, language).get(name, name.replace("_", " "))


def language_name(code: str, language: str = DEFAULT) -> str:
    """The name of a language: "English" for "en"."""
    return labels("languages", language).get(code, code)


def group_label(code: str, kind: str, language: str = DEFAULT) -> str:
    """A language and kind of cue: "English, role cues"; the language alone for "all"."""
    name = language_name(code, language)
    return name if kind == "all" else f"{name}, {label('kinds', kind, language)}"
