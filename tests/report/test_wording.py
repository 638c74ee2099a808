from __future__ import annotations

import inspect
import re
import tomllib
from pathlib import Path

from anaphora.report import wording

TABLE = tomllib.loads(Path(wording.__file__).with_name("wording.toml").read_text(encoding="utf-8"))


def test_no_phrase_has_a_name_that_its_reader_takes_for_itself() -> None:
    """`phrase("x", "y", language=...)` chooses a language; it does not fill {language}."""
    own = set(inspect.signature(wording.phrase).parameters) - {"values"}
    for section, languages in TABLE.items():
        for phrases in languages.values():
            for name, text in phrases.items():
                assert not own & set(re.findall(r"{(\w+)", text)), f"{section}.{name}"
