"""Content of training sentences: nouns by class, events, clauses about participants, scenes, asides and openings.

Each language has three files, such as english.toml and english_more.toml here, and english.toml in
experiments/everyday.
"""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from experiments.shipped.scenes import (
    OF_FIRST,
    OF_SECOND,
    OF_THIRD,
    SWAPPED,
    WORDINGS,
    WrittenScene,
    link_and_clause,
    read_scenes,
)

HERE = Path(__file__).parent
FILES = {
    "en": (HERE / "english.toml", HERE / "english_more.toml", HERE.parent / "everyday" / "english.toml"),
    "zh": (HERE / "chinese.toml", HERE / "chinese_more.toml", HERE.parent / "everyday" / "chinese.toml"),
}
GENDERS = ("male", "female")
GENDERS_OF_CLASS = {"person": GENDERS, "group": GENDERS, "man": ("male",), "woman": ("female",)}
"""Genders of persons by the first word of their class; all other classes have things and animals."""
THING, ANIMAL, PERSON = "thing", "animal", "person"
"""Sorts, which a context may name in place of classes."""
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
"""First words of the names of animal classes, in addition to names with the word "animal"."""
ONE_WORD = "word:"
"""Prefix of the class of one noun, which a scene lists."""
KIN = ("parent", "kin", "family", "relative", "child")
"""Words in the names of classes of relatives."""


@dataclass(frozen=True, eq=False)  # no two nouns of a lexicon are equal, and hashing the fields is slow
class Noun:
    """Noun or given name.

    Attributes:
        word: singular form.
        other: plural form in English, classifier in Chinese; "" for a name.
        genders: male, female or both for persons; empty for things and animals.
        classes: semantic classes of the noun, such as food.
        is_plural: whether the noun is a group with only a plural.
        is_animal: whether one of the classes has animals.
    """

    word: str
    other: str
    genders: tuple[str, ...]
    classes: frozenset[str]
    is_plural: bool = False
    is_animal: bool = False

    @cached_property
    def is_name(self) -> bool:
        """Return whether the noun is a given name, which has no determiner."""
        return "name" in self.classes

    @property
    def is_kin(self) -> bool:
        """Return whether one of the classes has relatives."""
        return any(part in KIN for kind in self.classes for part in kind.split("_"))

    @cached_property
    def is_mass(self) -> bool:
        """Return whether the noun is a mass noun, without plural and indefinite article."""
        return any(kind.endswith("_mass") for kind in self.classes)

    def has_plural(self, language: str) -> bool:
        """Return whether the noun can be plural; nouns that only a scene has cannot, except Chinese ones for things.

        The persons of a scene may have names, which are in no table of nouns.
        """
        if self.is_name or self.is_mass:
            return False
        is_listed = any(not kind.startswith(ONE_WORD) for kind in self.classes)
        return bool(self.other) or (language == "zh" and (is_listed or not self.genders))

    @cached_property
    def sort(self) -> str:
        """Return the sort of the noun: person, animal or thing."""
        return PERSON if self.genders else ANIMAL if self.is_animal else THING

    def fits(self, kinds: Collection[str]) -> bool:
        """Return whether the noun has one of these classes or sorts."""
        return self.sort in kinds or not self.classes.isdisjoint(kinds)


@dataclass(frozen=True)
class Reading:
    """Clause about a participant, with a slot for the pronoun: {he}, {him} or {his}.

    Attributes:
        say: alternative texts of the clause.
        fits: classes of nouns that the clause fits.
        never: classes of nouns that the clause never fits.
        links: possible links before the clause.
        animals: whether a clause about persons also fits animals.
    """

    say: tuple[str, ...]
    fits: frozenset[str] = frozenset()
    never: frozenset[str] = frozenset()
    links: tuple[str, ...] = ()
    animals: bool = False

    def is_of(self, noun: Noun, *, rather_than: Noun) -> bool:
        """Return whether the clause fits `noun` and never fits `rather_than`."""
        other = rather_than.classes
        return (
            not noun.classes.isdisjoint(self.fits) and other.isdisjoint(self.fits) and not other.isdisjoint(self.never)
        )


@dataclass(frozen=True)
class Context:
    """Event with the participants {A}, {B} and maybe {C}: texts (wordings) with {A} first, and in another order."""

    say: tuple[str, ...]
    swapped: tuple[str, ...]
    kinds: tuple[list[str], ...]


@dataclass(frozen=True)
class Scene:
    """Event, and for each participant the clauses in which common knowledge makes the pronoun refer to it."""

    context: Context
    readings: tuple[tuple[Reading, ...], ...]
    plural: bool = False


@dataclass(frozen=True)
class Lexicon:
    """Content of one language."""

    language: str
    nouns: tuple[Noun, ...]
    contexts: tuple[Context, ...]
    predicates: tuple[Reading, ...]
    of_persons: tuple[Reading, ...]
    of_things: tuple[Reading, ...]
    scenes: tuple[Scene, ...]
    thing_scenes: tuple[Scene, ...]
    asides: tuple[str, ...]
    openings: tuple[str, ...]

    @cached_property
    def by_class(self) -> dict[str, tuple[Noun, ...]]:
        """Return the nouns of each class and of each sort."""
        found: dict[str, list[Noun]] = defaultdict(list)
        for noun in self.nouns:
            for kind in noun.classes:
                found[kind].append(noun)
            found[noun.sort].append(noun)
        return {kind: tuple(nouns) for kind, nouns in found.items()}

    def nouns_of(self, kinds: Iterable[str]) -> tuple[Noun, ...]:
        """Return the nouns of the given classes without duplicates."""
        key = tuple(kinds)
        if key not in self._unions:
            self._unions[key] = tuple(dict.fromkeys(noun for kind in key for noun in self.by_class.get(kind, ())))
        return self._unions[key]

    @cached_property
    def _unions(self) -> dict[tuple[str, ...], tuple[Noun, ...]]:
        """Return the results of `nouns_of` so far; every drawn item asks for several."""
        return {}


@cache
def load(language: str) -> Lexicon:
    """Read the nouns, events and clauses of a language."""
    tables = [tomllib.loads(path.read_text(encoding="utf-8")) for path in FILES[language]]
    written = {sort: list(read_scenes(HERE / f"{sort}s.{language}.txt")) for sort in (PERSON, THING)}

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
        nouns=_nouns(tables, written),
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
                    (Reading(tuple(entry["first"]), links=tuple(entry["link"])),),
                    (Reading(tuple(entry["second"]), links=tuple(entry["link"])),),
                ),
                entry.get("plural", False),
            )
            for entry in entries("scene")
        )
        + tuple(map(_scene, written[PERSON])),
        thing_scenes=tuple(map(_scene, written[THING])),
        asides=tuple(entry["say"] for entry in entries("aside")),
        openings=tuple(entry["say"] for entry in entries("opening")),
    )


def _holds_animals(kind: str) -> bool:
    return kind.partition("_")[0] in ANIMAL_WORDS or ANIMAL in kind.split("_")


def _scene(written: WrittenScene) -> Scene:
    def readings(continuations: list[str]) -> tuple[Reading, ...]:
        split = map(link_and_clause, continuations)
        return tuple(Reading((clause,), links=(link,)) for link, clause in split)

    kinds = tuple([ONE_WORD + noun for noun in nouns] or [PERSON] for nouns in written.nouns)
    lines = written.lines
    return Scene(
        Context(tuple(lines[WORDINGS]), tuple(lines[SWAPPED]), kinds),
        tuple(readings(lines[kind]) for kind in (OF_FIRST, OF_SECOND, OF_THIRD)[: len(kinds)]),
    )


def _nouns(tables: list[dict[str, Any]], scenes: dict[str, list[WrittenScene]]) -> tuple[Noun, ...]:
    """Return each noun once with all its classes; homonyms, such as the two meanings of coach, are two nouns.

    A noun that a scene lists has a class of its own. If no class of the tables holds it, it has no plural, and a person
    can have either gender.
    """
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
    keys = defaultdict(list)
    for key in classes:
        if not key[3]:
            keys[key[0], key[2]].append(key)
    for sort, of_sort in scenes.items():
        is_person = sort == PERSON
        for word in sorted({word for scene in of_sort for nouns in scene.nouns for word in nouns}):
            known = keys.get((word, is_person), [])
            for key in known or [(word, "", is_person, False)]:
                classes[key].add(ONE_WORD + word)
                if not known and is_person:
                    genders[key].update(GENDERS)
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
