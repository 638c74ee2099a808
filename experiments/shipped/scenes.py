"""Reader of scenes in text files: events with two or three participants, and clauses that fit only one of them.

A scene is a block of lines; an empty line ends it:

    A: milk, cocoa | B: cup, mug        nouns for the slots; without this line, any persons
    = I poured {A} into {B}             wordings with {A} first, separated by " / "
    ~ I filled {B} with {A}             wordings in another order
    1 because {he} had gone sour        continuations about {A}, each with the link that it begins with
    2 , but {he} had lost {his_} handle continuations about {B}; an underscore marks a further pronoun

A third participant is {C}, with continuations in lines that begin with 3.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

WORDINGS, SWAPPED, OF_FIRST, OF_SECOND, OF_THIRD = "=", "~", "1", "2", "3"
_NOUNS = re.compile(r"A: *(.+?) *\| *B: *(.+?)(?: *\| *C: *(.+))?")
_SENTENCE_END = re.compile(r"[.;。；]")


@dataclass(frozen=True)
class WrittenScene:
    """Scene as written in its file.

    Attributes:
        nouns: nouns for each participant; empty lists for any persons.
        lines: alternatives by the first character of their line.
    """

    nouns: tuple[list[str], ...]
    lines: dict[str, list[str]]


def read_scenes(path: Path) -> Iterator[WrittenScene]:
    """Yield the scenes of a file.

    Raises:
        ValueError: a line has an unknown form, or a scene lacks wordings or continuations.
    """
    text = re.sub(r"^#.*\n", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for block in re.split(r"\n\s*\n", text.strip()):
        nouns: tuple[list[str], ...] = ()
        lines: dict[str, list[str]] = {kind: [] for kind in (WORDINGS, SWAPPED, OF_FIRST, OF_SECOND, OF_THIRD)}
        for line in block.splitlines():
            if named := _NOUNS.fullmatch(line.strip()):
                nouns = tuple(_listed(of_one) for of_one in named.groups() if of_one)
            elif line[0] in lines:
                lines[line[0]] += [part.strip() for part in line[1:].split("/") if part.strip()]
            else:
                raise ValueError(f"{path}: {line!r} begins with none of A:, {', '.join(lines)}")
        if not (lines[WORDINGS] and lines[OF_FIRST] and lines[OF_SECOND]):
            raise ValueError(f"{path}: the scene {block!r} lacks a line with =, 1 or 2")
        number = 3 if lines[OF_THIRD] else 2
        if len(nouns) not in (0, number):
            raise ValueError(f"{path}: the scene {block!r} lists nouns for {len(nouns)} of {number} participants")
        yield WrittenScene(nouns or ([],) * number, lines)


def link_and_clause(continuation: str) -> tuple[str, str]:
    """Split a continuation that begins a new sentence into its link and the clause; other links stay in the clause."""
    if _SENTENCE_END.match(continuation):
        return continuation[0], continuation[1:].strip()
    return "", continuation


def _listed(nouns: str) -> list[str]:
    return [noun.strip() for noun in re.split("[,，、]", nouns) if noun.strip()]
