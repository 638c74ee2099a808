"""The words of the walk-through in both languages; they stand in phrases.toml."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any


@lru_cache(maxsize=1)
def _load_phrases() -> dict[str, dict[str, dict[str, str]]]:
    return tomllib.loads(Path(__file__).with_name("phrases.toml").read_text(encoding="utf-8"))


class Phrases:
    """The words of one language."""

    def __init__(self, language: str) -> None:
        self.language = language

    def __call__(self, section: str, name: str, **values: Any) -> str:
        """One phrase with its names filled in."""
        phrase = _load_phrases()[section][self.language][name]
        return phrase.format(**values) if values else phrase

    def joined(self, *sentences: str) -> str:
        """Sentences one after the other; Chinese has no blank between them."""
        return ("" if self.language == "zh" else " ").join(sentences)

    def section(self, section: str) -> dict[str, str]:
        """All phrases of a section by name."""
        return dict(_load_phrases()[section][self.language])
