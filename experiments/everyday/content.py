"""Content of everyday scenes, read from english.toml and chinese.toml.

A language has nouns by class, scenes with two participants, and clauses that disambiguate a pronoun.

The content is checked by a test, not when it is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from anaphora.data.controlled.lexicon import FOLDERS, GENDERS, toml_table
from anaphora.settings.data import SPLITS

CONTENT_FOLDER = Path(__file__).parent
NAME = "name"
"""Class of participants with given names, from the section [names] and the lexicon."""
GENDERS_OF_PERSONS = {"person": ("male", "female"), NAME: ("male", "female"), "man": ("male",), "woman": ("female",)}
"""Genders by sort of persons; "group" is only plural, and all other sorts are things or animals.

The sort of a class is the first word of its name: "person_doctor" is a class of persons.
"""
GROUP = "group"
AGREEMENT = {"was": ("was", "were"), "is": ("is", "are"), "has": ("has", "have"), "does": ("does", "do")}
"""Singular and plural forms of the English verbs that are slots in scenes."""


@dataclass(frozen=True)
class EverydayNoun:
    """Noun with its plural, or in Chinese with its classifier ("" for nouns without a determiner)."""

    word: str
    plural_or_classifier: str


@dataclass(frozen=True)
class Agreement:
    """Gender and number of both participants, which the pronoun therefore does not distinguish."""

    gender: str  # male, female, neuter
    number: str  # singular, plural


@dataclass(frozen=True, kw_only=True)
class EverydayScene:
    """Situation with two participants, {A} and {B}.

    Attributes:
        name: the commonsense knowledge that disambiguates the pronoun.
        classes: noun classes of {A}, and of {B}.
        agreements: all combinations of gender and number that both participants can have.
        forward: descriptions of the situation in which {A} comes first (wordings).
        backward: descriptions in which {B} comes first; empty if the two nouns can be exchanged instead.
        link: text between a description and a reading.
        readings: clauses in which the pronoun refers to {A}, and clauses in which it refers to {B}.
    """

    name: str
    classes: tuple[tuple[str, ...], tuple[str, ...]]
    agreements: tuple[Agreement, ...]
    forward: tuple[str, ...]
    backward: tuple[str, ...]
    link: tuple[str, ...]
    readings: tuple[tuple[str, ...], tuple[str, ...]]

    def fitting(self, participant: int, agreement: Agreement) -> list[str]:
        """Return the noun classes of a participant (0 for {A}, 1 for {B}) with this gender and number."""
        return [kind for kind in self.classes[participant] if _fits(kind, agreement)]


@dataclass(frozen=True)
class EverydayContent:
    """Nouns, names, frames and scenes of one language."""

    language: str
    nouns: Mapping[str, tuple[EverydayNoun, ...]]  # by class
    names: Mapping[str, tuple[str, ...]]  # by gender, beside those of the lexicon
    scenes: tuple[EverydayScene, ...]
    frames: Mapping[str, tuple[str, ...]]  # texts around a scene's clauses, by split

    def training_phrases(self) -> Iterator[str]:
        """Yield all nouns and the phrases of training sentences, as tokens separated by spaces, including slots.

        A noun that all of its scenes hold out for evaluation occurs in no training sentence, but is yielded too.
        """
        for noun in (noun for nouns in self.nouns.values() for noun in nouns):
            yield noun.word
            yield noun.plural_or_classifier
        for names in self.names.values():
            yield from names
        for scene in self.scenes:
            for texts in (scene.forward, scene.backward, scene.link, *scene.readings):
                yield from texts
        yield from self.frames["train"]
        yield from (form for forms in AGREEMENT.values() for form in forms)


def path_of(language: str, folder: Path = CONTENT_FOLDER) -> Path:
    """Return the path of the TOML file with the nouns, names, frames and scenes of a language."""
    return folder / f"{FOLDERS[language]}.toml"


def load(language: str, folder: Path = CONTENT_FOLDER) -> EverydayContent:
    """Read the nouns, names, frames and scenes of a language."""
    with toml_table(path_of(language, folder)) as table:
        return EverydayContent(
            language=language,
            nouns={
                kind: tuple(EverydayNoun(*text.split("/")) for text in written)
                for kind, written in table["classes"].items()
            },
            names={gender: tuple(table["names"][gender]) for gender in GENDERS},
            scenes=tuple(_scene(written) for written in table["scene"]),
            frames={
                split: tuple(written["text"] for written in table["frame"] if written["split"] == split)
                for split in SPLITS
            },
        )


def _scene(written: Mapping[str, Any]) -> EverydayScene:
    kinds = (tuple(written["A"]), tuple(written["B"]))
    agreements = tuple(
        Agreement(gender, number)
        for gender, number in product(("male", "female", "neuter"), ("singular", "plural"))
        if all(any(_fits(kind, Agreement(gender, number)) for kind in named) for named in kinds)
        and (
            written.get("plural", False)
            or number == "singular"
            or all(any(_is_group(kind) for kind in named) for named in kinds)
        )
    )
    return EverydayScene(
        name=written["name"],
        classes=kinds,
        agreements=agreements,
        forward=tuple(written["forward"]),
        backward=tuple(written.get("backward", ())),
        link=tuple(written["link"]),
        readings=(tuple(written["first"]), tuple(written["second"])),
    )


def _is_group(kind: str) -> bool:
    return kind.partition("_")[0] == GROUP


def _fits(kind: str, agreement: Agreement) -> bool:
    if _is_group(kind):
        return agreement.number == "plural" and agreement.gender == "male"
    sort = kind.partition("_")[0]
    if sort == NAME and agreement.number == "plural":
        return False
    return agreement.gender in GENDERS_OF_PERSONS.get(sort, ("neuter",))
