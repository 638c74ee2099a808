"""Content of everyday scenes, read from english.toml and chinese.toml.

A language has nouns by class, scenes with two participants, and clauses that disambiguate a pronoun.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from anaphora.base.errors import UserError
from anaphora.data.controlled.lexicon import (
    FOLDERS,
    GENDERS,
    PRONOUN_FORMS,
    check_keys,
    noun_parts,
    read_toml,
    section,
    tables,
    words,
)
from anaphora.data.controlled.templates import POOLS
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
LEAST_NOUNS = 2
"""Minimum number of nouns in a class."""
_SLOT = re.compile(r"\{([A-Za-z]+)\}")


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
        forward: wordings in which {A} comes first.
        backward: wordings in which {B} comes first; empty if the two nouns can be exchanged instead.
        link: text between a wording and a reading.
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
    frames: Mapping[str, tuple[str, ...]]  # by split: what stands around a clause

    def training_phrases(self) -> Iterator[str]:
        """Yield all nouns and the phrases of training sentences, as tokens separated by spaces, including slots.

        Some nouns are held out by all of their scenes, and so occur in no training sentence.
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
    """Return the file of a language's content."""
    return folder / f"{FOLDERS[language]}.toml"


def load(language: str, folder: Path = CONTENT_FOLDER) -> EverydayContent:
    """Return the content of a language.

    Raises:
        UserError: an entry is invalid; the message names the file, the entry and the allowed values.
    """
    path = path_of(language, folder)
    table = read_toml(path)
    check_keys(path, "the file", table, {"classes", "names", "frame", "scene"})
    classes = section(path, "classes", table.get("classes"))
    nouns = {kind: tuple(_nouns(path, language, kind, written)) for kind, written in classes.items()}
    if NAME in nouns:
        raise UserError(
            f"{path}, classes.{NAME}: given names belong in [names]; a scene may use this class without listing it"
        )
    names = section(path, "names", table.get("names"))
    check_keys(path, "names", names, set(GENDERS))
    scenes = [_scene(path, written, {*nouns, NAME}) for written in tables(path, table, "scene")]
    titles = [scene.name for scene in scenes]
    for title in titles:
        if titles.count(title) > 1:
            raise UserError(f"{path}, scene: {title!r} appears twice")
    return EverydayContent(
        language=language,
        nouns=nouns,
        names={gender: words(path, f"names.{gender}", names.get(gender), 1) for gender in GENDERS},
        scenes=tuple(scenes),
        frames=_frames(path, tables(path, table, "frame")),
    )


def _nouns(path: Path, language: str, kind: str, written: Any) -> Iterator[EverydayNoun]:
    for text in words(path, f"classes.{kind}", written, LEAST_NOUNS):
        yield EverydayNoun(*noun_parts(path, language, f"classes.{kind}", text))


def _scene(path: Path, written: Mapping[str, Any], classes: Collection[str]) -> EverydayScene:
    name = str(written.get("name", ""))
    place = f"scene {name!r}"
    texts = ("forward", "backward", "link", "first", "second")
    check_keys(path, place, written, {"name", "A", "B", "plural", *texts})
    kinds = tuple(words(path, f"{side} of {place}", written.get(side), 1) for side in "AB")
    for kind in (kind for named in kinds for kind in named):
        if kind not in classes:
            raise UserError(f"{path}, {place}: unknown class {kind!r}; allowed: {', '.join(sorted(classes))}")
    plural = written.get("plural", False)
    if not isinstance(plural, bool):
        raise UserError(f"{path}, {place}: plural is {plural!r}; allowed: true, false")
    forward, link, first, second = (
        words(path, f"{entry} of {place}", written.get(entry), 1) for entry in ("forward", "link", "first", "second")
    )
    backward = words(path, f"backward of {place}", written.get("backward", []), 0)
    if not backward and set(kinds[0]) != set(kinds[1]):
        raise UserError(f"{path}, {place}: A and B have different classes, so backward is needed")
    for entry, wordings, order in (("forward", forward, ["A", "B"]), ("backward", backward, ["B", "A"])):
        for wording in wordings:
            slots = [slot for slot in _SLOT.findall(wording) if slot not in AGREEMENT]
            if slots != order:
                raise UserError(
                    f"{path}, {entry} of {place}: {wording!r} must hold {{{order[0]}}}, then {{{order[1]}}}"
                )
    for entry, readings in (("first", first), ("second", second)):
        for reading in readings:
            slots = [slot for slot in _SLOT.findall(reading) if slot not in AGREEMENT]
            if len(slots) != 1 or slots[0] not in PRONOUN_FORMS:
                pronouns = ", ".join(f"{{{form}}}" for form in PRONOUN_FORMS)
                raise UserError(f"{path}, {entry} of {place}: {reading!r} must hold one of {pronouns}")
    agreements = tuple(
        Agreement(gender, number)
        for gender, number in product(("male", "female", "neuter"), ("singular", "plural"))
        if all(any(_fits(kind, Agreement(gender, number)) for kind in named) for named in kinds)
        and (plural or number == "singular" or all(any(_is_group(kind) for kind in named) for named in kinds))
    )
    if not agreements:
        raise UserError(f"{path}, {place}: A and B have no gender and number in common, so the pronoun would tell them")
    return EverydayScene(
        name=name,
        classes=(kinds[0], kinds[1]),
        agreements=agreements,
        forward=forward,
        backward=backward,
        link=link,
        readings=(first, second),
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


def _frames(path: Path, entries: Sequence[Mapping[str, Any]]) -> dict[str, tuple[str, ...]]:
    frames: dict[str, list[str]] = {split: [] for split in SPLITS}
    for written in entries:
        check_keys(path, "frame", written, {"split", "text"})
        text, split = written.get("text"), written.get("split")
        if split not in SPLITS:
            raise UserError(f"{path}, frame {text!r}: split is {split!r}; allowed: {', '.join(SPLITS)}")
        slots = _SLOT.findall(text) if isinstance(text, str) else []
        if slots.count("clause") != 1 or set(slots) - {"clause", *POOLS}:
            raise UserError(f"{path}, frame {text!r} must hold {{clause}} once; other slots are {', '.join(POOLS)}")
        frames[split].append(str(text))
    for split, texts in frames.items():
        if not texts:
            raise UserError(f"{path}: no frame has split = {split!r}; every split needs one")
    return {split: tuple(texts) for split, texts in frames.items()}
