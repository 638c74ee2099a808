"""Words of the built-in corpus in one language, loaded from its lexicon.toml, and the forms of pronouns.

Loading reports only missing keys and files that are not TOML; a test checks the words in the files.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
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


@dataclass(frozen=True, eq=False)  # comparison by identity is faster, and each noun exists once
class Noun:
    """Countable noun with singular, plural and their determiners, each as tokens separated by spaces."""

    kind: str  # one of `SELECTION_CLASSES` or `AGREEMENT_CLASSES`
    singular: str
    plural: str
    singular_determiner: str
    plural_determiner: str


@dataclass(frozen=True, kw_only=True)
class Lexicon:
    """Nouns, names, predicates and insertions of one language, which fill the slots (placeholders) of templates."""

    language: str
    intro: tuple[str, ...]
    gap: tuple[str, ...]
    aside: tuple[str, ...]
    syllables: tuple[str, ...]
    nouns: Mapping[str, tuple[Noun, ...]]  # by class
    predicates: Mapping[str, tuple[str, ...]]  # by selection class
    names: Mapping[str, tuple[str, ...]]  # by gender; the last DISTRACTOR_ONLY_NAMES are only distractors in training


@contextmanager
def toml_table(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the content of a TOML file, which is cached and must not be changed, to a `with` block.

    Raises:
        UserError: the file is not TOML, or the code in the `with` block looks up a key that the file does not have.
    """
    try:
        yield _parsed(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not TOML: {error}") from None
    except KeyError as error:
        raise UserError(f"{path}: {error.args[0]}: the key is missing") from None


@lru_cache(64)  # the same files are read for the sentences of a corpus and for its words
def _parsed(toml: str) -> Mapping[str, Any]:
    return tomllib.loads(toml)


def load(language: str, folder: Path = CONTENT_FOLDER) -> Lexicon:
    """Load the lexicon of a language ("en" or "zh") from `folder`/<folder of the language>/lexicon.toml."""
    with toml_table(folder / FOLDERS[language] / "lexicon.toml") as table:
        classes = table["classes"]
        return Lexicon(
            language=language,
            intro=tuple(table["intro"]),
            gap=tuple(table["gap"]),
            aside=tuple(table["aside"]),
            syllables=tuple(table["syllables"]),
            nouns={
                kind: tuple(_noun(language, kind, written) for written in classes[kind]["nouns"])
                for kind in (*AGREEMENT_CLASSES, *SELECTION_CLASSES)
            },
            predicates={kind: tuple(classes[kind]["predicates"]) for kind in SELECTION_CLASSES},
            names={gender: tuple(table["names"][gender]) for gender in GENDERS},
        )


def _noun(language: str, kind: str, written: str) -> Noun:
    """Parse a noun: "singular/plural" in English, "noun/classifier" in Chinese, where the classifier may be ""."""
    first, second = written.split("/")
    if language == "en":
        return Noun(kind, first, second, "the", "the")
    # A singular such as 爷爷 needs no determiner.
    return Noun(kind, first, first, f"那 {second}" if second else "", "那些")


def pronoun(language: str, form: str, gender: str, number: str) -> str:
    """Return the pronoun for a form (one of `PRONOUN_FORMS`) and the antecedent's gender and number.

    The gender is "male", "female" or "neuter", the number "singular" or "plural".
    """
    return PRONOUNS[language][gender, number][PRONOUN_FORMS.index(form)]
