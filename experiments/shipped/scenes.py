"""Reader of scenes in text files: events between two participants, and what can be said of one of them only.

A scene is a block of lines; an empty line ends it:

    A: milk, cocoa | B: cup, mug        nouns for the two slots; without this line, any two persons
    = I poured {A} into {B}             wordings with {A} first, separated by " / "
    ~ I filled {B} with {A}             wordings with {B} first
    1 because {he} had gone sour        continuations about {A}, each with the link that it begins with
    2 , but {he} had a crack            continuations about {B}
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

WORDINGS, SWAPPED, OF_FIRST, OF_SECOND = "=", "~", "1", "2"
_NOUNS = re.compile(r"A: *(?P<first>.+?) *\| *B: *(?P<second>.+)")
_SENTENCE_END = re.compile(r"[.;。；]")


@dataclass(frozen=True)
class WrittenScene:
    """Scene as its file holds it.

    Attributes:
        nouns: nouns for the first and the second participant; empty lists for any two persons.
        lines: alternatives by the first character of their line.
    """

    nouns: tuple[list[str], list[str]]
    lines: dict[str, list[str]]


def read_scenes(path: Path) -> Iterator[WrittenScene]:
    """Yield the scenes of a file.

    Raises:
        ValueError: a line has an unknown form, or a scene lacks wordings or continuations.
    """
    text = re.sub(r"^#.*\n", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for block in re.split(r"\n\s*\n", text.strip()):
        nouns: tuple[list[str], list[str]] = ([], [])
        lines: dict[str, list[str]] = {WORDINGS: [], SWAPPED: [], OF_FIRST: [], OF_SECOND: []}
        for line in block.splitlines():
            if named := _NOUNS.fullmatch(line.strip()):
                nouns = (_listed(named["first"]), _listed(named["second"]))
            elif line[0] in lines:
                lines[line[0]] += [part.strip() for part in line[1:].split("/") if part.strip()]
            else:
                raise ValueError(f"{path}: {line!r} begins with none of A:, {', '.join(lines)}")
        if not (lines[WORDINGS] and lines[OF_FIRST] and lines[OF_SECOND]):
            raise ValueError(f"{path}: the scene {block!r} lacks a line with =, 1 or 2")
        yield WrittenScene(nouns, lines)


def link_and_clause(continuation: str) -> tuple[str, str]:
    """Split a continuation that begins a new sentence into its link and the clause; other links stay in the clause."""
    if _SENTENCE_END.match(continuation):
        return continuation[0], continuation[1:].strip()
    return "", continuation


def _listed(nouns: str) -> list[str]:
    return [noun.strip() for noun in re.split("[,，、]", nouns) if noun.strip()]
