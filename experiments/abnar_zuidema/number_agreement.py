"""English sentence prefixes for predicting the number of the next word, the verb: "the keys to the cabinet" is plural.

The task is that of Linzen et al. 2016, section 2, with generated sentences in place of Wikipedia's. Between subject and
verb are prepositional phrases and relative clauses. The number of each noun is drawn independently, so that the nearest
noun, the first noun and the majority of nouns do not predict the verb's number.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from random import Random

SHORTEST, LONGEST = 4, 24
"""Range of the number of words; a rank correlation over fewer than four words is meaningless."""


def _words(listed: str) -> tuple[str, ...]:
    return tuple(listed.split())


_REGULAR = _words(
    "teacher doctor farmer painter singer lawyer soldier pilot nurse writer guard student neighbour visitor reporter "
    "king queen girl boy dog horse bird key cabinet lamp table chair book letter picture window door garden river "
    "bridge tower road car boat train ship shirt coat plate bottle basket"
)
_IRREGULAR = {"man": "men", "woman": "women", "child": "children", "mouse": "mice", "foot": "feet"}
NOUNS: tuple[tuple[str, str], ...] = (*((noun, f"{noun}s") for noun in _REGULAR), *_IRREGULAR.items())
"""Nouns in singular and plural."""
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
"""Verbs in singular, plural and past tense; the past agrees with both numbers."""
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
"""All words of the sentences."""
MARKED_DETERMINER_SHARE = 0.15
"""Share of determiners that mark the number."""


@dataclass(frozen=True)
class NumberItem:
    """Sentence up to its verb.

    Attributes:
        text: the words in lower case, separated by spaces.
        plural: whether the verb is plural.
        subject: index of the subject noun among the words.
        attractors: number of nouns with the other number between subject and verb (Linzen et al. 2016, section 4).
        template: structure of the sentence.
    """

    text: str
    plural: bool
    subject: int
    attractors: int
    template: str


def generate_items(count: int, seed: int, apart_from: Collection[str] = ()) -> list[NumberItem]:
    """Generate different sentences, about half of them plural.

    Args:
        count: number of sentences.
        seed: random seed.
        apart_from: texts to exclude.
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
    """Generator of one sentence, which is built word by word."""

    draw: Random
    words: list[str] = field(default_factory=list)
    nouns: list[tuple[int, bool]] = field(default_factory=list)  # index and number
    parts: list[str] = field(default_factory=list)

    def sentence(self) -> NumberItem:
        """Generate an opening, the subject with its modifiers, and an optional adverb, up to the verb."""
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
        """Add a determiner, an optional adjective and a noun, and return the index of the noun."""
        marked = self._happens(MARKED_DETERMINER_SHARE)
        self.words.append(self.draw.choice(DETERMINERS[plural] if marked else FREE_DETERMINERS))
        if self._happens(0.3):
            self.words.append(self.draw.choice(ADJECTIVES))
        self.words.append(self.draw.choice(NOUNS)[plural])
        self.nouns.append((len(self.words) - 1, plural))
        return len(self.words) - 1

    def _verb(self, plural: bool) -> str:
        """Draw a verb, half of the time in the past tense, which does not agree with the subject."""
        singular, many, past = self.draw.choice(VERBS)
        return past if self._even() else many if plural else singular

    def _even(self) -> bool:
        return self._happens(0.5)

    def _happens(self, share: float) -> bool:
        return self.draw.random() < share
