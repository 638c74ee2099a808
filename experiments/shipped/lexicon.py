"""What training sentences are made of: nouns by class, contexts, readings, scenes, asides and openings.

Three files hold a language: english.toml and english_more.toml here, and english.toml in experiments/everyday; the same
for Chinese.
"""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FILES = {
    "en": (HERE / "english.toml", HERE / "english_more.toml", HERE.parent / "everyday" / "english.toml"),
    "zh": (HERE / "chinese.toml", HERE / "chinese_more.toml", HERE.parent / "everyday" / "chinese.toml"),
}
GENDERS = ("male", "female")
GENDERS_OF_CLASS = {"person": GENDERS, "group": GENDERS, "man": ("male",), "woman": ("female",)}
"""The genders of persons by the first word of their class; all other classes hold things and animals."""
THING, ANIMAL, PERSON = "thing", "animal", "person"
"""What a context may say in place of classes: any noun of these."""
ANIMAL_WORDS = (
    "pet",
    "beast",
    "mount",
    "predator",
    "prey",
    "bird",
    "insect",
    "fish",
    "dog",
    "cat",
    "animal",
    "songbird",
)
"""A class whose name begins with one of these words, or has the word "animal", holds animals."""
KIN = ("parent", "kin", "family", "relative", "child")
"""A class whose name has one of these words holds relatives."""


@dataclass(frozen=True)
class Noun:
    """A noun or a given name.

    Attributes:
        word: the singular.
        other: the plural in English, the classifier in Chinese; "" for a name.
        genders: male, female or both for persons; none for things and animals.
        classes: the classes that it stands in.
        is_plural: a group, named in the plural alone.
        is_animal: whether one of its classes holds animals.
    """

    word: str
    other: str
    genders: tuple[str, ...]
    classes: frozenset[str]
    is_plural: bool = False
    is_animal: bool = False

    @property
    def is_name(self) -> bool:
        """Whether it stands without a determiner."""
        return "name" in self.classes

    @property
    def is_kin(self) -> bool:
        """Whether one of its classes holds relatives."""
        return any(part in KIN for kind in self.classes for part in kind.split("_"))

    @property
    def is_mass(self) -> bool:
        """Whether it has no plural, and no "a" before it."""
        return any(kind.endswith("_mass") for kind in self.classes)

    @property
    def sort(self) -> str:
        """Person, animal or thing."""
        return PERSON if self.genders else ANIMAL if self.is_animal else THING

    def fits(self, kinds: Collection[str]) -> bool:
        """Whether a list of classes, or of sorts, covers the noun."""
        return self.sort in kinds or not self.classes.isdisjoint(kinds)


@dataclass(frozen=True)
class Reading:
    """What is said of a participant, with the pronoun's slot: {he}, {him} or {his}.

    Attributes:
        say: wordings.
        fits: classes that it can be said of.
        never: classes that nobody says it of.
        links: what may stand before it.
        animals: a reading for persons that animals allow too.
    """

    say: tuple[str, ...]
    fits: frozenset[str] = frozenset()
    never: frozenset[str] = frozenset()
    links: tuple[str, ...] = ()
    animals: bool = False

    def is_of(self, noun: Noun, *, rather_than: Noun) -> bool:
        """Whether it can be said of a noun, and never of another."""
        other = rather_than.classes
        return (
            not noun.classes.isdisjoint(self.fits) and other.isdisjoint(self.fits) and not other.isdisjoint(self.never)
        )


@dataclass(frozen=True)
class Context:
    """What happens to {A} and {B}: wordings with {A} first, and those with {B} first."""

    say: tuple[str, ...]
    swapped: tuple[str, ...]
    kinds: tuple[list[str], list[str]]


@dataclass(frozen=True)
class Scene:
    """A situation in which common knowledge decides which participant a reading means: the first or the second."""

    context: Context
    readings: tuple[Reading, Reading]
    plural: bool


@dataclass(frozen=True)
class Lexicon:
    """The content of one language."""

    language: str
    nouns: tuple[Noun, ...]
    contexts: tuple[Context, ...]
    predicates: tuple[Reading, ...]
    of_persons: tuple[Reading, ...]
    of_things: tuple[Reading, ...]
    scenes: tuple[Scene, ...]
    asides: tuple[str, ...]
    openings: tuple[str, ...]

    @cached_property
    def by_class(self) -> dict[str, tuple[Noun, ...]]:
        """The nouns of each class, and of the general words."""
        found: dict[str, list[Noun]] = defaultdict(list)
        for noun in self.nouns:
            for kind in noun.classes:
                found[kind].append(noun)
            found[noun.sort].append(noun)
        return {kind: tuple(nouns) for kind, nouns in found.items()}

    def nouns_of(self, kinds: list[str]) -> list[Noun]:
        """Return the nouns of some classes, each once."""
        return list(dict.fromkeys(noun for kind in kinds for noun in self.by_class.get(kind, ())))


def load(language: str) -> Lexicon:
    """Return the content of a language."""
    tables = [tomllib.loads(path.read_text(encoding="utf-8")) for path in FILES[language]]

    def entries(key: str) -> list[dict[str, Any]]:
        return [entry for table in tables for entry in table.get(key, [])]

    def readings(key: str) -> tuple[Reading, ...]:
        return tuple(
            Reading(
                tuple(entry["say"]),
                frozenset(entry.get("fits", ())),
                frozenset(entry.get("never", ())),
                tuple(entry.get("link", ())),
                entry.get("animals", False),
            )
            for entry in entries(key)
        )

    return Lexicon(
        language=language,
        nouns=_nouns(tables),
        contexts=tuple(
            Context(tuple(entry["say"]), tuple(entry.get("swapped", ())), (list(entry["A"]), list(entry["B"])))
            for entry in entries("context")
        ),
        predicates=readings("predicate"),
        of_persons=readings("person_predicate"),
        of_things=readings("thing_predicate"),
        scenes=tuple(
            Scene(
                Context(
                    tuple(entry["forward"]), tuple(entry.get("backward", ())), (list(entry["A"]), list(entry["B"]))
                ),
                (
                    Reading(tuple(entry["first"]), links=tuple(entry["link"])),
                    Reading(tuple(entry["second"]), links=tuple(entry["link"])),
                ),
                entry.get("plural", False),
            )
            for entry in entries("scene")
        ),
        asides=tuple(entry["say"] for entry in entries("aside")),
        openings=tuple(entry["say"] for entry in entries("opening")),
    )


def _holds_animals(kind: str) -> bool:
    return kind.partition("_")[0] in ANIMAL_WORDS or ANIMAL in kind.split("_")


def _nouns(tables: list[dict[str, Any]]) -> tuple[Noun, ...]:
    """Return each noun once with all its classes; a coach who trains and a coach that drives are two nouns."""
    classes: dict[tuple[str, str, bool, bool], set[str]] = defaultdict(set)
    genders: dict[tuple[str, str, bool, bool], set[str]] = defaultdict(set)
    for table in tables:
        for gender, names in table.get("names", {}).items():
            for name in names:
                key = (name, "", True, False)
                classes[key].add("name")
                genders[key].add(gender)
        for kind, words in table.get("classes", {}).items():
            sort = kind.partition("_")[0]
            of_persons = GENDERS_OF_CLASS.get(sort, ())
            for written in words:
                word, _, other = written.partition("/")
                key = (word, other, bool(of_persons), sort == "group")
                classes[key].add(kind)
                genders[key].update(of_persons)
    return tuple(
        Noun(
            key[0],
            key[1],
            tuple(sorted(genders[key])),
            frozenset(kinds),
            is_plural=key[3],
            is_animal=not key[2] and any(map(_holds_animals, kinds)),
        )
        for key, kinds in sorted(classes.items())
    )
