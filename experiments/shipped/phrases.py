"""Noun phrases of participants, and the assembly of clauses into a text, in English and Chinese."""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random

from experiments.shipped.lexicon import Noun

NEUTER = "neuter"
PRONOUNS = {
    ("en", "male", False): ("he", "him", "his"),
    ("en", "female", False): ("she", "her", "her"),
    ("en", NEUTER, False): ("it", "it", "its"),
    ("zh", "male", False): ("他", "他", "他的"),
    ("zh", "female", False): ("她", "她", "她的"),
    ("zh", NEUTER, False): ("它", "它", "它的"),
    ("zh", "male", True): ("他们", "他们", "他们的"),
    ("zh", "female", True): ("她们", "她们", "她们的"),
    ("zh", NEUTER, True): ("它们", "它们", "它们的"),
    **{("en", gender, True): ("they", "them", "their") for gender in ("male", "female", NEUTER)},
}
"""Subject, object and possessive pronoun by language, gender and whether it is plural."""
AGREEMENT = {"was": ("was", "were"), "is": ("is", "are"), "has": ("has", "have"), "does": ("does", "do")}
"""Singular and plural forms of English verbs that agree with a participant."""
LINKS = {
    "en": (", and", ".", ", but", ".", ";", "because", "while", "when", "although", "even though", "so", "before"),
    "zh": ("，", "。", "，可是", "。", "；", "，因为", "，所以", "，于是", "，结果", "，当时", "，虽然"),
}
"""Default links before a clause about a participant (reading), by language."""
MARKS, ASKED, END = "\x01\x02\x03", "\x04", "\x05"
"""Marks for the start of each participant and of the pronoun, and for the end of a span."""

_SLOT = re.compile(r"\{(\w+)\}")
_DETERMINERS = {
    "kin": ("my ", "my ", "our ", "the ", "your "),
    "person": ("the ", "the ", "the ", "a ", "that "),
    "thing": ("the ", "the ", "the ", "the ", "a ", "my ", "this ", "that ", "our "),
    "single": ("the ", "the ", "our ", "that "),
    "mass": ("the ", "the ", "the ", "some ", "our ", "that "),
    "plural": ("the ", "the ", "the ", "my ", "these ", "those ", "two ", "our "),
}
_VOWEL = re.compile(r"(?!uni[cfv]|use|one|ewe|eu)[aeiou]|hour|heir")
"""Start of an English noun that takes "an"."""
_DETERMINER = re.compile(r"(?:the|an?|some|my|our|your|this|that|these|those|two) ")


@dataclass(frozen=True)
class Participant:
    """Participant of a sentence: a noun with its form in the text."""

    noun: Noun
    gender: str  # male, female, neuter
    is_plural: bool
    written: str

    def pronouns(self, language: str) -> tuple[str, str, str]:
        """Return the subject, object and possessive pronoun."""
        return PRONOUNS[language, self.gender, self.is_plural]

    def reflexive(self, language: str) -> str:
        """Return the reflexive pronoun."""
        subject, as_object, possessive = self.pronouns(language)
        if language == "zh":
            return f"{subject}自己"
        stem = possessive if self.gender == "female" and not self.is_plural else as_object
        return stem + ("selves" if self.is_plural else "self")


def phrase(noun: Noun, plural: bool, language: str, chance: Random) -> str:
    """Return a noun with a fitting determiner, drawn at random."""
    if noun.is_name:
        return noun.word
    if language == "zh":
        return _chinese_phrase(noun, plural, chance)
    kind = "plural" if plural else "kin" if noun.is_kin else "person" if noun.genders else "thing"
    if noun.is_mass:
        kind = "mass"
    elif kind == "thing" and not noun.other:
        kind = "single"
    determiner = chance.choice(_DETERMINERS[kind])
    if determiner == "a " and _VOWEL.match(noun.word):
        determiner = "an "
    return determiner + (noun.other if plural else noun.word)


def _chinese_phrase(noun: Noun, plural: bool, chance: Random) -> str:
    if plural and noun.genders:
        return chance.choice(("{}们", "{}们" if noun.is_kin else "那几位{}", "那些{}")).format(
            noun.word.removesuffix("们")
        )
    classifier = noun.other or "个"
    if plural:
        return chance.choice(("那些", "这些", f"几{classifier}", f"那几{classifier}")) + noun.word
    if noun.is_kin and not noun.other:
        return chance.choice(("", "", "我")) + noun.word
    if not noun.other or chance.random() < 0.5:
        return noun.word
    return chance.choice(("那", "那", "这", "一")) + noun.other + noun.word


def without_determiner(text: str, span: tuple[int, int]) -> tuple[int, int]:
    """Return the span of a participant without its English determiner."""
    found = _DETERMINER.match(text[slice(*span)].lower())
    return (span[0] + found.end(), span[1]) if found else span


@dataclass(frozen=True)
class Frame:
    """Shared part of the items of a pair: the text of an event, its participants, and the surrounding text.

    Attributes:
        wording: text of the event with {A}, {B}, {C} if there are three participants, and optionally {P}.
        bystander: the person {P}.
        opening: text before the event, or "".
        aside: sentences between the event and the clause with the pronoun, or after both, or "".
    """

    language: str
    wording: str
    participants: tuple[Participant, ...]
    bystander: str
    opening: str
    aside: str

    def text(self, link: str, said: str, meant: Participant) -> str:
        """Return the text in which the pronoun of `said` refers to `meant`, with pronoun and participants marked."""
        clause = self._clause()
        said = self._filled(said, meant)
        if self.language == "en":
            return _english(self.opening, clause, self.aside, link, said)
        return _chinese(self.opening, clause, self.aside, link, said)

    def _clause(self) -> str:
        marked = list(zip(MARKS, "ABC", self.participants, strict=False))
        singular = {slot: words[0] for slot, words in AGREEMENT.items()}
        names = {slot: f"{mark}{participant.written}{END}" for mark, slot, participant in marked}
        fill = {**singular, **names, "P": self.bystander}
        clause = _SLOT.sub(lambda slot: fill.get(slot[1], slot[0]), self.wording)
        for mark, _, participant in marked:
            if participant.is_plural:
                clause = _agreeing(clause, mark)
        return clause

    def _filled(self, said: str, meant: Participant) -> str:
        subject, as_object, possessive = meant.pronouns(self.language)
        forms = {"he": subject, "him": as_object, "his": possessive}
        plural = meant.is_plural and self.language == "en"
        fill = {slot: words[plural] for slot, words in AGREEMENT.items()}
        fill |= {slot: _marked(form) for slot, form in forms.items()}
        fill |= {f"{slot}_": form for slot, form in forms.items()} | {"himself_": meant.reflexive(self.language)}
        said = _SLOT.sub(lambda slot: fill.get(slot[1], slot[0]), said)
        return _agreeing(said, ASKED) if plural else said


def _agreeing(text: str, mark: str) -> str:
    """Put the verb after a marked span into the plural."""
    verb = re.compile(rf"({mark}[^{END}]*{END} )(was|is|has|does)\b")
    return verb.sub(lambda found: found[1] + AGREEMENT[found[2]][1], text)


def _marked(form: str) -> str:
    """Enclose a pronoun in its marks; the Chinese possessive suffix 的 stays outside."""
    pronoun = form.removesuffix("的")
    return ASKED + pronoun + END + form[len(pronoun) :]


def _english(opening: str, clause: str, aside: str, link: str, said: str) -> str:
    link = f", {link}" if link in ("and", "so", "but") else f" {link}" if link[:1].isalpha() else link
    aside = aside.rstrip(" .")
    if clause.endswith((",", "?")):  # a subordinate clause, whose main clause is the reading; or a question
        text = f"{clause} {said}"
    elif aside and link in (".", ";"):
        text = f"{clause}. {aside}. {said}"
    else:
        text = f"{clause}{link} {said}" + (f". {aside}" if aside else "")
    text = re.sub(r" ([,.;:!?”]|'s\b|' )", r"\1", f"{opening} {text}.".replace("“ ", "“")).lstrip()
    text = re.sub(rf"(s{END})'s\b", r"\1'", text)
    text = re.sub(r"\bi\b", "I", text.replace("?.", "?"))
    # The lexicon has words in lower case, names aside; a sentence begins with a capital.
    return re.sub(rf"(^|[.!?] )([{MARKS}{ASKED}]?)([a-z])", lambda found: found[1] + found[2] + found[3].upper(), text)


def _chinese(opening: str, clause: str, aside: str, link: str, said: str) -> str:
    aside = aside.rstrip("。")
    if clause.endswith("，"):
        text = f"{clause}{said}"
    elif aside and link.startswith("。"):
        text = f"{clause}。{aside}{link}{said}"
    else:
        text = f"{clause}{link}{said}" + (f"。{aside}" if aside else "")
    return re.sub(r"([，。？！])[，。]+", r"\1", f"{opening}{text}。".replace(" ", ""))
