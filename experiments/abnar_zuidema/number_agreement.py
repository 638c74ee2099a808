"""English sentences up to their verb, whose number is to be predicted: "the keys to the cabinet" needs a plural.

The task of Linzen et al. 2016, section 2, with generated sentences instead of Wikipedia's. Between subject and
verb stand prepositional phrases and relative clauses; every noun's number is drawn by itself, so that the nearest noun,
the first noun and the majority of nouns are all poor guides.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from random import Random

SHORTEST, LONGEST = 4, 24
"""Words of a sentence; a rank correlation over fewer than four says nothing."""


def _words(listed: str) -> tuple[str, ...]:
    return tuple(listed.split())


_REGULAR = _words(
    "teacher doctor farmer painter singer lawyer soldier pilot nurse writer guard student neighbour visitor reporter "
    "king queen girl boy dog horse bird key cabinet lamp table chair book letter picture window door garden river "
    "bridge tower road car boat train ship shirt coat plate bottle basket"
)
_IRREGULAR = {"man": "men", "woman": "women", "child": "children", "mouse": "mice", "foot": "feet"}
NOUNS: tuple[tuple[str, str], ...] = (*((noun, f"{noun}s") for noun in _REGULAR), *_IRREGULAR.items())
"""Singular and plural."""
VERBS = (
    ("likes", "like", "liked"),
    ("sees", "see", "saw"),
    ("knows", "know", "knew"),
    ("helps", "help", "helped"),
    ("follows", "follow", "followed"),
    ("watches", "watch", "watched"),
    ("finds", "find", "found"),
    ("needs", "need", "needed"),
    ("hates", "hate", "hated"),
    ("remembers", "remember", "remembered"),
)
"""Singular, plural and past, which agrees with anything."""
ADJECTIVES = _words("grey young small large quiet famous strange happy heavy new red broken clever tired local")
PREPOSITIONS = _words("to near behind beside with above under from for by")
ADVERBS = _words("often still never always probably usually rarely certainly")
TIMES = ("today", "yesterday", "last year", "in the morning", "after a while", "this time")
SPEECH = _words("said thought believed claimed hoped")
DETERMINERS = {False: ("a", "this", "every", "that"), True: ("these", "many", "some", "those")}
FREE_DETERMINERS = ("the", "my", "their", "our")
VOCABULARY: tuple[str, ...] = tuple(
    dict.fromkeys(
        word
        for listed in (*NOUNS, *VERBS, ADJECTIVES, PREPOSITIONS, ADVERBS, TIMES, SPEECH, *DETERMINERS.values(),
                       FREE_DETERMINERS, (",",))
        for entry in listed
        for word in entry.split()
    )
)  # fmt: skip
"""Every word that a sentence may hold."""
MARKED_DETERMINER_SHARE = 0.15
"""How often a determiner shows the number too."""


@dataclass(frozen=True)
class NumberItem:
    """A sentence up to its verb.

    Attributes:
        text: its words, lower case, separated by blanks.
        plural: the verb's number.
        subject: the index of the subject's noun among the words.
        attractors: nouns of the other number between subject and verb (Linzen et al. 2016, section 4).
        template: its parts; sentences of one template are alike.
    """

    text: str
    plural: bool
    subject: int
    attractors: int
    template: str


def generate_items(count: int, seed: int, apart_from: Collection[str] = ()) -> list[NumberItem]:
    """So many different sentences, half of them plural in the long run.

    Args:
        count: how many.
        seed: the same seed gives the same sentences.
        apart_from: texts that may not occur.
    """
    draw = Random(seed)
    texts = set(apart_from)
    items: list[NumberItem] = []
    while len(items) < count:
        item = _SentenceGenerator(draw).sentence()
        if SHORTEST <= len(item.text.split()) <= LONGEST and item.text not in texts:
            texts.add(item.text)
            items.append(item)
    return items


@dataclass
class _SentenceGenerator:
    """One sentence as it grows."""

    draw: Random
    words: list[str] = field(default_factory=list)
    nouns: list[tuple[int, bool]] = field(default_factory=list)  # index and number
    parts: list[str] = field(default_factory=list)

    def sentence(self) -> NumberItem:
        """An opening, the subject with what belongs to it, perhaps an adverb; the verb would come next."""
        self._opening()
        plural = self._even()
        subject = self._noun(plural)
        for depth in range(1 + self._happens(0.35)):
            self._modifier(plural, depth)
        if self._happens(0.3):
            self.parts.append("adverb")
            self.words.append(self.draw.choice(ADVERBS))
        attractors = sum(index > subject and number != plural for index, number in self.nouns)
        return NumberItem(" ".join(self.words), plural, subject, attractors, " ".join(self.parts))

    def _opening(self) -> None:
        kind = self.draw.choices(("", "time", "place", "speech"), (0.4, 0.2, 0.2, 0.2))[0]
        if kind:
            self.parts.append(kind)
        match kind:
            case "time":
                self.words += [*self.draw.choice(TIMES).split(), ","]
            case "place":
                self._prepositional()
                self.words.append(",")
            case "speech":
                self._noun(self._even())
                self.words += [self.draw.choice(SPEECH), "that"]

    def _modifier(self, plural: bool, depth: int) -> None:
        kinds = ("prepositional", "subject relative", "object relative") if depth == 0 else ("prepositional",)
        kind = self.draw.choice((*kinds, "none") if depth == 0 else kinds)
        self.parts.append(kind)
        match kind:
            case "prepositional":
                self._prepositional()
            case "subject relative":
                self.words += ["that", self._verb(plural)]
                self._noun(self._even())
            case "object relative":
                other = self._even()
                self.words.append("that")
                self._noun(other)
                self.words.append(self._verb(other))

    def _prepositional(self) -> None:
        self.words.append(self.draw.choice(PREPOSITIONS))
        self._noun(self._even())

    def _noun(self, plural: bool) -> int:
        """A determiner, perhaps an adjective, a noun; the noun's index."""
        marked = self._happens(MARKED_DETERMINER_SHARE)
        self.words.append(self.draw.choice(DETERMINERS[plural] if marked else FREE_DETERMINERS))
        if self._happens(0.3):
            self.words.append(self.draw.choice(ADJECTIVES))
        self.words.append(self.draw.choice(NOUNS)[plural])
        self.nouns.append((len(self.words) - 1, plural))
        return len(self.words) - 1

    def _verb(self, plural: bool) -> str:
        """Half the verbs agree, half stand in the past."""
        singular, many, past = self.draw.choice(VERBS)
        return past if self._even() else many if plural else singular

    def _even(self) -> bool:
        return self._happens(0.5)

    def _happens(self, share: float) -> bool:
        return self.draw.random() < share
