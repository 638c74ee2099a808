"""What the live page says, in English and in Chinese."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=2)
def phrases(language: str) -> dict[str, str]:
    """The page's phrases by name, "en" or "zh"."""
    table = tomllib.loads(Path(__file__).with_name("phrases.toml").read_text(encoding="utf-8"))
    return {name: str(both[language]) for name, both in table.items()}
