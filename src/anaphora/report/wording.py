"""The words of the report by language, from wording.toml; what a language lacks is shown in English.

A page is written in one language, which `spoken_in` sets for all that is drawn and written inside; a caller that writes
several languages side by side names the language of each phrase.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from anaphora.base.locale import translation

DEFAULT = "en"
"""The language of a page of which nobody named another."""
_STORED = "stored"
"""Where the words of files stand that are not those of pages."""


def spoken_language() -> str:
    """Return the language of phrases if none is named: that of the enclosing `spoken_in`, else English."""
    return translation.spoken_language() or DEFAULT


@lru_cache(maxsize=1)
def _table() -> dict[str, dict[str, dict[str, str]]]:
    return tomllib.loads(Path(__file__).with_name("wording.toml").read_text(encoding="utf-8"))


def phrase(section: str, name: str, language: str | None = None, **values: Any) -> str:
    """One phrase with its names filled in."""
    phrases = labels(section, language)
    return phrases[name].format(**values) if values else phrases[name]


def labels(section: str, language: str | None = None) -> dict[str, str]:
    """All phrases of a section by name, in the order of the file."""
    by_language = _table()[section]
    return by_language[DEFAULT] | by_language.get(language or spoken_language(), {})


def label(section: str, name: str, language: str | None = None) -> str:
    """What a name of the evidence is called; a name that has no phrase of its own is written with blanks."""
    return labels(section, language).get(name, name.replace("_", " "))


def language_name(code: str, language: str | None = None) -> str:
    """The name of a language: "English" for "en"."""
    return labels("languages", language).get(code, code)


def group_label(code: str, kind: str, language: str | None = None) -> str:
    """A language and kind of cue: "English, role cues"; the language alone for "all"."""
    name = language_name(code, language)
    if kind == "all":
        return name
    return phrase("joined", "group", language, spoken=name, kind=label("kinds", kind, language))


def head_name(layer: int, head: int | None = None, language: str | None = None) -> str:
    """A head by its number, "layer 2 head 1", or a layer alone."""
    if head is None:
        return phrase("explorer", "layer", language, layer=layer)
    return phrase("explorer", "layer_head", language, layer=layer, head=head)


def heads_listed(heads: Sequence[tuple[int, int]]) -> str:
    """Heads in a sentence, layer by layer: "layer 2 head 0", "layer 2 heads 0 and 3; layer 3 head 1"."""
    by_layer: dict[int, list[int]] = {}
    for layer, head in heads:
        by_layer.setdefault(layer, []).append(head)
    return clauses(
        [
            head_name(layer, numbers[0])
            if len(numbers) == 1
            else phrase("joined", "layer_heads", layer=layer, heads=listed([str(number) for number in numbers]))
            for layer, numbers in by_layer.items()
        ]
    )


def value_label(value: str) -> str:
    """What a value of a factor is called; numbers from one to another stand on either side of a dash."""
    ends = re.fullmatch(r"(\d+)-(\d+)", value)
    return phrase("joined", "numbers", low=ends[1], high=ends[2]) if ends else label("factor_values", value)


def listed(parts: Sequence[str]) -> str:
    """Parts as a list in a sentence: "a, b and c"."""
    if len(parts) == 1:
        return parts[0]
    return phrase("joined", "last_of_list", before=phrase("joined", "comma").join(parts[:-1]), last=parts[-1])


def clauses(parts: Sequence[str]) -> str:
    """Clauses one after the other: "a; b"."""
    return phrase("joined", "semicolon").join(parts)


def translated(section: str, text: str) -> str:
    """What a stored file says in its own English, in the words of the page and in its language.

    Every stretch of `text` that a phrase of the section could have written into a file (one under `_STORED`, else the
    English one) is written by that phrase in the page's language, with the same values: numbers, a share of 1 in
    percent (`{fraction}`), or names, where the value is called after their section (`{kinds}`). Text that no phrase
    could have written stays as it is.
    """
    of_language = labels(section)
    for name, pattern in _stored_phrases(section):
        # A lambda is bound late, and `sub` calls it at once.
        text = pattern.sub(lambda match: of_language[name].format(**_translated_values(match)), text)  # noqa: B023
    return text


def _translated_values(match: re.Match[str]) -> dict[str, str]:
    return {name: _translated_value(name, value) for name, value in match.groupdict().items()}


def _translated_value(name: str, value: str) -> str:
    if name in _table():
        return label(name, value.replace(" ", "_"))
    return phrase("units", "share", value=f"{100 * float(value):.1f}") if name == "fraction" else value


@lru_cache(maxsize=8)
def _stored_phrases(section: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """The phrases of a section in which files hold them, as patterns."""
    phrases = _table()[section]
    return tuple(
        (name, re.compile(re.sub(r"\\{(\w+)\\}", _value_pattern, re.escape(text))))
        for name, text in (phrases[DEFAULT] | phrases.get(_STORED, {})).items()
    )


def _value_pattern(name: re.Match[str]) -> str:
    value = r"[\w-]+(?: [\w-]+)*?" if name[1] in _table() else r"[\d.,−-]*\d(?:e[−-]?\d+)?"
    return f"(?P<{name[1]}>{value})"
