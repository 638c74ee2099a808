"""The words of the controlled corpus in one language, read from lexicon.toml and checked."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anaphora.base.errors import UserError

CONTENT_FOLDER = Path(__file__).parent
FOLDERS = {"en": "english", "zh": "chinese"}
SELECTION_CLASSES = ("animal", "food", "place", "garment", "machine", "text")
AGREEMENT_CLASSES = ("male", "female", "thing")
GENDERS = ("male", "female")
COSETS = 5  # of nouns and of predicates: one for test, one for dev, three for training
NAME_COSETS = 10  # two a role type, one for test and one for dev
DISTRACTOR_ONLY_NAMES = 8  # names a gender that are distractors alone in training


@dataclass(frozen=True)
class Noun:
    """A countable noun: its head in singular and plural, and the determiners before it, tokens joined by blanks."""

    kind: str  # its class
    singular: str
    plural: str
    singular_determiner: str
    plural_determiner: str


@dataclass(frozen=True, kw_only=True)
class Lexicon:
    """All words that fill templates, except those of one type's scenarios."""

    language: str
    intro: tuple[str, ...]
    gap: tuple[str, ...]
    aside: tuple[str, ...]
    syllables: tuple[str, ...]
    nouns: Mapping[str, tuple[Noun, ...]]  # by class
    predicates: Mapping[str, tuple[str, ...]]  # by selection class
    names: Mapping[str, tuple[str, ...]]  # by gender; the last DISTRACTOR_ONLY_NAMES are distractors alone in training


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file as a dictionary.

    Raises:
        UserError: the file is not there or is not TOML.
    """
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file; the controlled corpus needs it") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not TOML: {error}") from None


def words(path: Path, entry: str, value: Any, least: int) -> tuple[str, ...]:
    """Return a list of at least `least` different texts, each in tokens with single blanks.

    Raises:
        UserError: naming file, entry and value.
    """
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise UserError(f"{path}, {entry}: {value!r} must be a list of texts")
    if len(value) < least:
        raise UserError(f"{path}, {entry}: it has {len(value)}, and at least {least} are needed")
    known = set()
    for text in value:
        if not text or " ".join(text.split()) != text:
            raise UserError(f"{path}, {entry}: {text!r} must be tokens separated by single spaces")
        if text in known:
            raise UserError(f"{path}, {entry}: {text!r} appears twice")
        known.add(text)
    return tuple(value)


def load(language: str, content: Path = CONTENT_FOLDER) -> Lexicon:
    """Load the lexicon of a language ("en" or "zh") from the folder `content`.

    Raises:
        UserError: an entry is missing, too short, or contradicts another; the message names file and entry.
    """
    path = content / FOLDERS[language] / "lexicon.toml"
    table = read_toml(path)
    allowed = {"intro", "gap", "aside", "syllables", "classes", "names"}
    check_keys(path, "the file", table, allowed)
    classes = section(path, "classes", table.get("classes"))
    check_keys(path, "classes", classes, {*SELECTION_CLASSES, *AGREEMENT_CLASSES})
    names = section(path, "names", table.get("names"))
    check_keys(path, "names", names, set(GENDERS))
    nouns, predicates = {}, {}
    owners: dict[str, str] = {}
    judged: dict[str, str] = {}
    for kind in (*AGREEMENT_CLASSES, *SELECTION_CLASSES):
        entries = section(path, f"classes.{kind}", classes.get(kind))
        check_keys(
            path, f"classes.{kind}", entries, {"nouns", "predicates"} if kind in SELECTION_CLASSES else {"nouns"}
        )
        written = words(path, f"classes.{kind}.nouns", entries.get("nouns"), COSETS)
        nouns[kind] = tuple(_noun(path, language, kind, each) for each in written)
        for noun in nouns[kind]:
            for form in (noun.singular, noun.plural):
                if owners.setdefault(form, kind) != kind:
                    raise UserError(f"{path}, classes.{kind}.nouns: {form!r} is also in classes.{owners[form]}")
        if kind in SELECTION_CLASSES:
            predicates[kind] = words(path, f"classes.{kind}.predicates", entries.get("predicates"), COSETS)
            for predicate in predicates[kind]:
                if judged.setdefault(predicate, kind) != kind:
                    raise UserError(
                        f"{path}, classes.{kind}.predicates: {predicate!r} is also in classes.{judged[predicate]}"
                    )
    people = {
        gender: words(path, f"names.{gender}", names.get(gender), 3 * NAME_COSETS + DISTRACTOR_ONLY_NAMES)
        for gender in GENDERS
    }
    for name in people["male"]:
        if name in people["female"]:
            raise UserError(f"{path}, names: {name!r} is listed as both male and female")
    return Lexicon(
        language=language,
        intro=words(path, "intro", table.get("intro"), 1),
        gap=words(path, "gap", table.get("gap"), 1),
        aside=words(path, "aside", table.get("aside"), 3),
        syllables=words(path, "syllables", table.get("syllables"), 10),
        nouns=nouns,
        predicates=predicates,
        names=people,
    )


def section(path: Path, entry: str, value: Any) -> dict[str, Any]:
    """Return a section, written [entry].

    Raises:
        UserError: it is missing.
    """
    if not isinstance(value, dict):
        raise UserError(f"{path}, [{entry}]: the section is missing")
    return value


def tables(path: Path, table: Mapping[str, Any], entry: str) -> list[dict[str, Any]]:
    """Return the tables written [[entry]], at least one.

    Raises:
        UserError: there is none, or it is written otherwise.
    """
    entries = table.get(entry)
    if not isinstance(entries, list) or not entries or not all(isinstance(each, dict) for each in entries):
        raise UserError(f"{path}, {entry}: must be written [[{entry}]], at least once")
    return entries


def check_keys(path: Path, entry: str, section: Mapping[str, Any], allowed: set[str]) -> None:
    """Check that a table has only allowed keys.

    Raises:
        UserError: naming file, entry, key and what is allowed.
    """
    for name in section:
        if name not in allowed:
            raise UserError(f"{path}, {entry}: unknown entry {name!r}; allowed: {', '.join(sorted(allowed))}")


def noun_parts(path: Path, language: str, entry: str, written: str) -> tuple[str, str]:
    """Return a noun and its plural, or in Chinese its classifier, which may be "".

    Raises:
        UserError: naming file, entry, text and how it must be written.
    """
    first, slash, second = written.partition("/")
    if not slash or not first or "/" in second or " " in written or (language == "en" and not second):
        form = "singular/plural" if language == "en" else "noun/classifier"
        raise UserError(f"{path}, {entry}: {written!r} must be written {form}")
    return first, second


def _noun(path: Path, language: str, kind: str, written: str) -> Noun:
    first, second = noun_parts(path, language, f"classes.{kind}.nouns", written)
    if language == "en":
        return Noun(kind, first, second, "the", "the")
    # 爷爷 and its like need no determiner where one of them is meant.
    return Noun(kind, first, first, f"那 {second}" if second else "", "那些")
