"""Words of the controlled corpus in one language, loaded from its lexicon.toml, and the pronouns.

The functions that read content raise a `UserError` that names file, entry, value and what is allowed.
"""

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
COSETS = 5  # sets of nouns, and of predicates: one for test, one for dev, three for training
NAME_COSETS = 10  # sets of names: two for each role type, one for test and one for dev
DISTRACTOR_ONLY_NAMES = 8  # names of each gender that are only distractors in training

SUBJECT, OBJECT, POSSESSIVE, REFLEXIVE = "he", "him", "his", "himself"
PRONOUN_FORMS = (SUBJECT, OBJECT, POSSESSIVE, REFLEXIVE)
PRONOUNS = {
    "en": {
        ("male", "singular"): ("he", "him", "his", "himself"),
        ("female", "singular"): ("she", "her", "her", "herself"),
        ("neuter", "singular"): ("it", "it", "its", "itself"),
        ("male", "plural"): ("they", "them", "their", "themselves"),
        ("female", "plural"): ("they", "them", "their", "themselves"),
        ("neuter", "plural"): ("they", "them", "their", "themselves"),
    },
    "zh": {
        ("male", "singular"): ("他", "他", "他的", "他自己"),
        ("female", "singular"): ("她", "她", "她的", "她自己"),
        ("neuter", "singular"): ("它", "它", "它的", "它自己"),
        ("male", "plural"): ("他们", "他们", "他们的", "他们自己"),
        ("female", "plural"): ("她们", "她们", "她们的", "她们自己"),
        ("neuter", "plural"): ("它们", "它们", "它们的", "它们自己"),
    },
}
FORM_WORDS = {"him": OBJECT, "himself": REFLEXIVE, "他": OBJECT, "他自己": REFLEXIVE}
"""Pronoun form of each word that a scenario may give for the slot {form}."""


@dataclass(frozen=True, eq=False)  # a noun is listed once, and draws look it up often
class Noun:
    """Countable noun with singular, plural and their determiners, each as tokens separated by spaces."""

    kind: str  # one of `SELECTION_CLASSES` or `AGREEMENT_CLASSES`
    singular: str
    plural: str
    singular_determiner: str
    plural_determiner: str


@dataclass(frozen=True, kw_only=True)
class Lexicon:
    """Words and phrases that fill the slots of templates, except those of scenarios."""

    language: str
    intro: tuple[str, ...]
    gap: tuple[str, ...]
    aside: tuple[str, ...]
    syllables: tuple[str, ...]
    nouns: Mapping[str, tuple[Noun, ...]]  # by class
    predicates: Mapping[str, tuple[str, ...]]  # by selection class
    names: Mapping[str, tuple[str, ...]]  # by gender; the last DISTRACTOR_ONLY_NAMES are only distractors in training


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file as a dictionary."""
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file; the controlled corpus needs it") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not TOML: {error}") from None


def words(path: Path, entry: str, value: Any, least: int) -> tuple[str, ...]:
    """Check and return the texts of an entry: at least `least` distinct texts of tokens separated by single spaces."""
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise UserError(f"{path}, {entry}: {value!r} must be a list of texts")
    if len(value) < least:
        raise UserError(f"{path}, {entry}: it has {len(value)}, and at least {least} are needed")
    for number, text in enumerate(value):
        if not text or " ".join(text.split()) != text:
            raise UserError(f"{path}, {entry}: {text!r} must be tokens separated by single spaces")
        if text in value[:number]:
            raise UserError(f"{path}, {entry}: {text!r} appears twice")
    return tuple(value)


def load(language: str, content: Path = CONTENT_FOLDER) -> Lexicon:
    """Load the lexicon of a language ("en" or "zh") from its folder in `content`.

    Raises:
        UserError: the file or an entry is missing, an entry is unknown, too short or of another form, a noun or
            predicate is in two classes, or a name has two genders; the message names file and entry.
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
        named = {"nouns", "predicates"} if kind in SELECTION_CLASSES else {"nouns"}
        check_keys(path, f"classes.{kind}", entries, named)
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
    """Return `value`, the content of the TOML section [entry], after checking that it is a table."""
    if not isinstance(value, dict):
        raise UserError(f"{path}, [{entry}]: the section is missing")
    return value


def tables(path: Path, table: Mapping[str, Any], entry: str) -> list[dict[str, Any]]:
    """Return the tables of a TOML array of tables, written [[entry]]."""
    entries = table.get(entry)
    if not isinstance(entries, list) or not entries or not all(isinstance(each, dict) for each in entries):
        raise UserError(f"{path}, {entry}: must be written [[{entry}]], at least once")
    return entries


def check_keys(path: Path, entry: str, section: Mapping[str, Any], allowed: set[str]) -> None:
    """Check that a table has only allowed keys."""
    for name in section:
        if name not in allowed:
            raise UserError(f"{path}, {entry}: unknown entry {name!r}; allowed: {', '.join(sorted(allowed))}")


def noun_parts(path: Path, language: str, entry: str, written: str) -> tuple[str, str]:
    """Parse a noun: "singular/plural" in English, "noun/classifier" in Chinese, where the classifier may be ""."""
    first, slash, second = written.partition("/")
    if not slash or not first or "/" in second or " " in written or (language == "en" and not second):
        form = "singular/plural" if language == "en" else "noun/classifier"
        raise UserError(f"{path}, {entry}: {written!r} must be written {form}")
    return first, second


def _noun(path: Path, language: str, kind: str, written: str) -> Noun:
    first, second = noun_parts(path, language, f"classes.{kind}.nouns", written)
    if language == "en":
        return Noun(kind, first, second, "the", "the")
    # A singular such as 爷爷 needs no determiner.
    return Noun(kind, first, first, f"那 {second}" if second else "", "那些")


def pronoun(language: str, form: str, gender: str, number: str) -> str:
    """Return the pronoun for a form (one of `PRONOUN_FORMS`) and the antecedent's gender and number.

    The gender is "male", "female" or "neuter", the number "singular" or "plural".
    """
    return PRONOUNS[language][gender, number][PRONOUN_FORMS.index(form)]
