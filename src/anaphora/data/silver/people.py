"""Detection of people named in English text, without a tagger: given names are learned from the text itself.

The gender of a given name is that of the pronouns on pages about people with this name, such as encyclopedia articles:
"Marta Dahl (born 1950) is a ... She ...".
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from anaphora.data.corpora.word_classes import word_set
from anaphora.data.text import Text

MALE = ("he", "him", "his", "himself")
FEMALE = ("she", "her", "hers", "herself")
TITLES = {**dict.fromkeys(("Mr", "Sir", "Lord"), "male"), **dict.fromkeys(("Mrs", "Miss", "Ms", "Lady"), "female")}
"""Gender of each title that may precede a name."""

_WORD = r"[A-Z][\w'’]*[^\W\d_A-Z](?:-[A-Z]\w+)?"
_INNER = rf"(?: (?:[A-Z]\.|{_WORD}|de|van|von|der|bin|al|la))*"
_NAME = re.compile(rf"(?:(?P<title>{'|'.join(TITLES)})\.? )?(?P<name>{_WORD}{_INNER} {_WORD}|{_WORD})")
_PERSON_PAGE = re.compile(rf"({_WORD}){_INNER} ({_WORD})(?: \(.*\))?")
_BIOGRAPHY = re.compile(r"\bborn\b|\((?:\d|c\.|née|[A-Z])| (?:is|was) an? ")
_POSSESSIVE = re.compile(r"['’]s$")
_WORDS = re.compile(r"[a-z]+")
_OPENING = 400  # characters at the start of a page that decide whether it is about a person
_PRONOUNS, _SHARE = 5, 0.85  # minimum number of pronouns, and share of one gender, that decide a page's gender
_MIN_AGREEMENT = 0.9  # minimum share of one gender among the pages about people with a given name
_MAX_NAME_WORDS = 4  # longer names are lists of people or titles of works
_NOT_IN_NAMES = word_set("""
    The In On At He She His Her Him Hers Himself Herself After When While And But As For From With By A An It They This
    That There Then New San South North West East Saint St
    University College School Award Prize Street City County Park Church Cup Institute Hall House Foundation Museum
    Center Centre Company Records Music River Theatre Theater Hospital Medal Party Trophy Stadium Show Day Festival
    Airport Court Act Bank Group Library Press Orchestra Band Competition Magazine Journal
    January February March April May June July August September October November December
""")
"""Capitalised words that are not part of a person's name; before a name they are removed."""


@dataclass(frozen=True, slots=True)
class PersonMention:
    """Character span in a passage that names a person."""

    start: int  # first character; a title is included
    end: int  # exclusive; a possessive 's is left out
    person: str  # such as "Marta Dahl" or "Mrs Dahl"; the same for all mentions of this person in the passage
    gender: str | None  # "male" or "female"; None if unknown


@dataclass(frozen=True, slots=True)
class PageSubject:
    """Person whom a page, such as an encyclopedia article, is about."""

    name: str  # title of the page without the part in brackets
    given: str
    family: str
    gender: str | None  # "male" or "female"; None if unknown


class NameLexicon:
    """Given names with their genders, and family names, learned from pages about people.

    Only documents in English whose title and first word show that they are about a person are used.

    Attributes:
        given: for each given name, the number of pages about people who have this name and a known gender.
        genders: for each given name, the gender, "male" or "female", of the people on at least 90 % of these pages; a
            name without such a majority is left out.
        of: for each gender, a tuple of its given names, in order of first occurrence.
        families: the distinct family names, in order of first occurrence.
    """

    def __init__(self, documents: Iterable[Text]) -> None:
        bearers: defaultdict[str, Counter[str]] = defaultdict(Counter)
        families: dict[str, None] = {}
        for document in documents:
            page = _person_page(document)
            if page is None:
                continue
            given, family = page
            families[family] = None
            gender = gender_of(document.text) if _BIOGRAPHY.search(document.text[:_OPENING]) else None
            if gender is not None:
                bearers[given][gender] += 1
        self.given = {name: counts.total() for name, counts in bearers.items()}
        self.genders = {
            name: counts.most_common(1)[0][0]
            for name, counts in bearers.items()
            if counts.most_common(1)[0][1] >= _MIN_AGREEMENT * counts.total()
        }
        self.families = tuple(families)
        self.of = {each: tuple(n for n in self.genders if self.genders[n] == each) for each in ("male", "female")}

    def subject(self, document: Text) -> PageSubject | None:
        """Return the person that a page is about; None if title and first word do not name a person.

        The gender is that of the page's pronouns or else that of the given name.
        """
        page = _person_page(document)
        if page is None:
            return None
        given, family = page
        gender = gender_of(document.text) or self.genders.get(given)
        return PageSubject(document.title.split(" (")[0], given, family, gender)

    def mentions(self, passage: str, subject: PageSubject | None) -> list[PersonMention]:
        """Find the mentions of people in a passage, in order.

        A title or a known given name, followed by another name, is a mention. The given name or the family name alone
        is a mention if the full name precedes it in the passage, or if the person is the page's subject. Otherwise, a
        given name alone is a mention only in texts without a page subject, such as stories, and only if its gender is
        known and at least two pages are about people with this name. Names with a word of `_NOT_IN_NAMES`, such as
        "Street", and names of more than four words are ignored.
        """
        known: dict[str, tuple[str, str | None]] = {}
        if subject is not None:
            known = dict.fromkeys((subject.family, subject.given), (subject.name, subject.gender))
        mentions = []
        for match in _NAME.finditer(passage):
            start, name = match.start("name"), match["name"]
            while len(parts := name.split(" ", 1)) == 2 and self._before_a_name(*parts):
                start, name = start + len(parts[0]) + 1, parts[1]
            name = _POSSESSIVE.sub("", name)
            words = name.split()
            if _NOT_IN_NAMES.intersection(words) or len(words) > _MAX_NAME_WORDS:
                continue
            title = match["title"] if start == match.start("name") else None
            person = self._person(words, title, known, alone=subject is None)
            if person is not None:
                begin = match.start() if title else start
                mentions.append(PersonMention(begin, start + len(name), *person))
        return mentions

    def _before_a_name(self, first: str, rest: str) -> bool:
        """Return whether a capitalised word is not part of the following name, like "Later" in "Later Marta Dahl"."""
        return first in _NOT_IN_NAMES or (
            first not in self.given and rest.split(" ", 1)[0] in self.given and " " in rest
        )

    def _person(
        self, words: list[str], title: str | None, known: dict[str, tuple[str, str | None]], alone: bool
    ) -> tuple[str, str | None] | None:
        """Return (name, gender) of the person that a name refers to; None if it does not refer to a person.

        `known` maps given names, family names, and titles with family names to the (name, gender) of people mentioned
        so far; new people are added. `alone` tells whether a given name alone may introduce a person.
        """
        first, last = words[0], words[-1]
        name = " ".join(words)
        if title is not None:
            return known.setdefault(f"{title} {last}", (f"{title} {last}", TITLES[title]))
        if len(words) == 1:
            if first not in known and alone and self.given.get(first, 0) > 1 and first in self.genders:
                known[first] = (name, self.genders[first])
            return known.get(first)
        if first in known and known.get(last) == known[first]:
            return known[first]
        if first not in self.given:
            return None
        known[first] = known[last] = (name, self.genders.get(first))
        return known[first]


def _person_page(document: Text) -> tuple[str, str] | None:
    """Return (given name, family name) of the person that a page is about; None if a page is not about a person.

    The title of the page must look like a person's name. The text must begin with the first word of the title or with a
    longer form of this given name, such as "Maximilian Dahl" on the page "Max Dahl".
    """
    page = _PERSON_PAGE.fullmatch(document.title)
    if page is None or not document.text.startswith(page[1]) or page[1] in _NOT_IN_NAMES:
        return None
    return page[1], page[2]


def gender_of(text: str) -> str | None:
    """Return the gender, "male" or "female", of at least 85 % of the forms of "he" and "she" in a text.

    The result is None if neither gender reaches this share, or if the text has fewer than five such pronouns.
    """
    counted = Counter(_WORDS.findall(text.lower()))
    counts = {"male": sum(counted[form] for form in MALE), "female": sum(counted[form] for form in FEMALE)}
    total = sum(counts.values())
    for gender, count in counts.items():
        if total >= _PRONOUNS and count >= _SHARE * total:
            return gender
    return None
