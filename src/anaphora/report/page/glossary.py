"""The words of the report that a reader may not know, from glossary.toml, in the language of the page."""

from __future__ import annotations

import tomllib
from pathlib import Path

from anaphora.base.locale.translation import spoken_language


def glossary() -> list[tuple[str, str, str]]:
    """Term, meaning and source of every word; the source is empty where it has none."""
    language = spoken_language()
    table = tomllib.loads(Path(__file__).with_name("glossary.toml").read_text(encoding="utf-8"))
    return [
        (word["term"][language], word["meaning"][language], word.get("source", {}).get(language, ""))
        for word in table["words"]
    ]
