"""Pronoun items from repeated nouns in running text, after Kocijan et al. 2019 (MaskedWiki, WikiCREM).

If a noun of the lexicon occurs twice in a few sentences, its second mention is replaced by a pronoun. The first mention
is the antecedent, and another noun that agrees with the pronoun in gender, number and animacy is the other candidate.
Only the content of the sentence disambiguates the pronoun, and no manual labels are needed.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random

from anaphora.base.language import LANGUAGES
from anaphora.data.corpora import plain_text
from anaphora.data.text import Text
from anaphora.settings.data import PlainText
from experiments.shipped.lexicon import ANIMAL, Noun, load
from experiments.shipped.phrases import NEUTER, PRONOUNS
from experiments.shipped.settings import Row, TrainingItems

_SENTENCE = {"en": re.compile(r"[^.!?\n]+[.!?]+[\"'”’]*\s*"), "zh": re.compile(r"[^。！？…\n]+[。！？…]+[”’」』]*")}
_MOST = {"en": 240, "zh": 80}
"""Maximum number of characters in a passage, by language."""
_LEAST = {"en": 40, "zh": 12}
_SENTENCES = 3
_AROUND = 20
"""Number of characters on either side that identify a pronoun and its context."""
NEARER = 0.8
"""Probability of a second candidate nearer to the pronoun than the antecedent, if there are nearer and farther ones."""
_WORD = re.compile(r"[A-Za-z]+(?:-[a-z]+)*")
_DEFINITE = frozenset(["the", "this", "that", "his", "her", "my", "our", "your", "its", "their", "these", "those"])
_INDEFINITE = frozenset(["a", "an", "some", "two", "three", "every", "each", "another", "one"])
_CLOSING = ".,;:!?'’\"”"
_ADJECTIVES = 2
"""Maximum number of words between a determiner and its noun."""
_BEFORE_A_SUBJECT_LIST = """
    and but when while that because if as after before where although though which since until so then for
"""
_BEFORE_A_SUBJECT = frozenset(_BEFORE_A_SUBJECT_LIST.split())
_BEFORE_AN_OBJECT_LIST = """
    of to with by for from against at on in about between behind over under into than like near toward towards told
    met asked gave saw found took made let called kissed loved helped upon beside
"""
_BEFORE_AN_OBJECT = frozenset(_BEFORE_AN_OBJECT_LIST.split())
_AFTER_A_NOUN_LIST = """
    was were is are had has have did does do would could will can should must might may said went came ran saw took
    made got put gave found looked thought knew began stood lay sat fell felt grew kept left let lost told met led
    held heard brought caught broke and but or to in on at with for from as by so that until till where when which
    who if because while than into over under out up down off away back about again near upon through across along
    behind before after around between against without within beside too also not never there here then now he she
    it they we you I his her
"""
_AFTER_A_NOUN = frozenset(_AFTER_A_NOUN_LIST.split())
_NO_ADJECTIVES = _BEFORE_A_SUBJECT | _BEFORE_AN_OBJECT
_NO_NOUN = ("er", "or", "man", "men", "ist", "ess", "ian", "folk", "ing", "one", "est", "ly", "ed", "en", "n't")
"""Suffixes of nouns that may refer to persons, and of other words."""
_NO_NOUNS_LIST = """
    same other others first second last next whole rest time way day night morning evening moment matter truth
    thought kind sort part place thing things end side own most more least little poor old young giant fool king
    queen prince thief witch fairy child be been ready cold which sure glad good bad well much many all children
    people friend friends guest guests knight
"""
_NO_NOUNS = _AFTER_A_NOUN | _NO_ADJECTIVES | frozenset(_NO_NOUNS_LIST.split())
_VERB = re.compile(
    r" (?:was|were|is|are|had|has|have|did|does|do|would|could|will|can|should|must|might|said|went|came|ran|saw|took|"
    r"made|got|put|gave|found|looked|thought|knew|began|\w+ed)\b"
)
_PLURAL = True
_CHINESE_DETERMINER = re.compile(r"(?:[这那](?:[位只个条头匹棵把件座辆张些]|一[位只个]))?[小大老]?$")


@dataclass(frozen=True)
class Mention:
    """Occurrence of a lexicon noun in a passage, with the span that a pronoun would replace."""

    start: int
    end: int
    outer: int  # start of its determiner
    noun: Noun
    is_plural: bool

    def is_like(self, other: Mention) -> bool:
        """Return whether one pronoun could refer to either mention."""
        if self.is_plural != other.is_plural:
            return False
        if self.noun.genders and other.noun.genders:
            return not set(self.noun.genders).isdisjoint(other.noun.genders)
        return not self.noun.genders and not other.noun.genders


class Finder:
    """Finder of lexicon nouns in running text.

    Args:
        language: language of the texts.
    """

    def __init__(self, language: str) -> None:
        self.language = language
        self.forms: dict[str, tuple[Noun, bool]] = {}
        for noun in load(language).nouns:
            if language == "zh" and len(noun.word) < 2:
                continue
            self.forms.setdefault(noun.word, (noun, noun.is_plural))
            if language == "en" and noun.other and not noun.is_mass:
                self.forms.setdefault(noun.other, (noun, _PLURAL))
        self.longest = max(map(len, self.forms))

    def mentions(self, text: str) -> list[Mention]:
        """Return the nouns in a passage in text order, with the longest match at each position."""
        return list(self._english(text) if self.language == "en" else self._chinese(text))

    def _english(self, text: str) -> Iterator[Mention]:
        words = list(_WORD.finditer(text))
        for number, word in enumerate(words):
            found = self.forms.get(word[0]) or _unlisted(word[0])
            if found is None:
                continue
            noun, is_plural = found
            following = words[number + 1] if number + 1 < len(words) else None
            is_followed = following is not None and text[word.end() : following.start()] == " "
            after = following[0] if following is not None and is_followed else ""
            if after and after not in _AFTER_A_NOUN and (after in self.forms or not after.endswith(("ed", "s", "ly"))):
                continue  # a part of a longer name, or of a compound
            opening = None if noun.is_name else _determiner(text, words, number)
            if not noun.is_name and opening is None:
                continue
            is_closed = after in _AFTER_A_NOUN if after else text[word.end() : word.end() + 1] in _CLOSING
            if word[0] not in self.forms and not is_closed:
                continue  # perhaps an adjective
            is_definite = opening is not None and opening[0].lower() in _DEFINITE
            yield Mention(
                word.start(), word.end(), opening.start() if opening and is_definite else word.start(), noun, is_plural
            )

    def _chinese(self, text: str) -> Iterator[Mention]:
        place = 0
        while place < len(text):
            for length in range(min(self.longest, len(text) - place), 1, -1):
                found = self.forms.get(text[place : place + length])
                if found is not None:
                    end = place + length
                    many = text.startswith("们", end)
                    determiner = _CHINESE_DETERMINER.search(text, 0, place)
                    outer = determiner.start() if determiner else place
                    yield Mention(place, end + many, outer, found[0], many or text[outer:place].endswith("些"))
                    place = end + many
                    break
            else:
                place += 1


def _unlisted(word: str) -> tuple[Noun, bool] | None:
    """Return a noun outside the lexicon as a thing, and whether it is plural; None for persons and other words."""
    if len(word) < 3 or not word.islower() or word.endswith(_NO_NOUN) or word in _NO_NOUNS:
        return None
    return Noun(word, "", (), frozenset({"unlisted"})), word.endswith("s") and not word.endswith("ss")


def _determiner(text: str, words: list[re.Match[str]], number: int) -> re.Match[str] | None:
    """Return the determiner of a noun, with at most a few adjectives in between; None if there is no determiner."""
    for distance in range(1, _ADJECTIVES + 2):
        if number < distance or text[words[number - distance].end() : words[number - distance + 1].start()] != " ":
            return None
        before = words[number - distance]
        if before[0].lower() in _DEFINITE | _INDEFINITE:
            return before
        if before[0].lower() in _NO_ADJECTIVES:
            return None
    return None


def passages(text: Text) -> Iterator[str]:
    """Yield passages of one to three sentences of a paragraph, each of which starts one sentence later."""
    for paragraph in text.text.split("\n"):
        sentences = _SENTENCE[text.language].findall(paragraph)
        for first in range(len(sentences)):
            held = ""
            for sentence in sentences[first : first + _SENTENCES]:
                if len(held) + len(sentence) > _MOST[text.language]:
                    break
                held += sentence
                yield held.strip()


def item_of(passage: str, finder: Finder, chance: Random) -> Row | None:
    """Return an item for a repeated noun of a passage; None if no noun is suitable."""
    if len(passage) < _LEAST[finder.language]:
        return None
    mentions = finder.mentions(passage)
    by_word: defaultdict[tuple[str, bool], list[Mention]] = defaultdict(list)
    for mention in mentions:
        by_word[mention.noun.word, mention.is_plural].append(mention)
    possible = []
    for places in by_word.values():
        if len(places) < 2 or passage.count(places[0].noun.word) != len(places):
            continue
        first, again = places[0], places[1]
        if first.end > again.outer or passage.startswith((" of ", " which ", " who ", " that "), again.end):
            continue
        others = [
            each
            for each in mentions
            if each.is_like(first)
            and each.noun.word != first.noun.word
            and len(by_word[each.noun.word, each.is_plural]) == 1
            and each.end <= again.outer
        ]
        pronoun = _pronoun(passage, again, finder.language, chance) if others else None
        if pronoun is not None:
            possible.append((first, again, others, pronoun))
    if not possible:
        return None
    first, again, others, pronoun = chance.choice(possible)
    nearer = [each for each in others if each.start > first.start]
    farther = [each for each in others if each.start < first.start]
    other = chance.choice(nearer if nearer and (not farther or chance.random() < NEARER) else farther)
    text = passage[: again.outer] + pronoun.text + passage[pronoun.end :]
    candidates = sorted([(first.start, first.end), (other.start, other.end)])
    return {
        "text": text,
        "pronoun": [again.outer, again.outer + len(pronoun.text)],
        "candidates": [list(each) for each in candidates],
        "antecedents": [candidates.index((first.start, first.end))],
        "language": finder.language,
        "factors": {"type": "running"},
    }


@dataclass(frozen=True)
class _Pronoun:
    text: str
    end: int  # end of the replaced span


def _pronoun(passage: str, mention: Mention, language: str, chance: Random) -> _Pronoun | None:
    """Return the pronoun for a mention, and the end of the replaced span; None if its grammatical case is unknown."""
    noun = mention.noun
    gender = chance.choice(noun.genders) if noun.genders else NEUTER
    if noun.sort == ANIMAL and not mention.is_plural and chance.random() < 0.3:
        gender = chance.choice(("male", "female"))
    subject, direct, possessive = PRONOUNS[language, gender, mention.is_plural]
    if language == "zh":
        return None if passage[: mention.outer].endswith("的") else _Pronoun(subject, mention.end)
    if not noun.is_name and mention.outer == mention.start:
        return None  # "a dog" is another dog
    if passage.startswith(("'s", "’s"), mention.end):
        return _Pronoun(_cased(possessive, passage, mention), mention.end + 2)
    if subject == direct:
        return _Pronoun(_cased(subject, passage, mention), mention.end)
    before = passage[: mention.outer].rstrip()
    word = re.search(r"[A-Za-z]+$", before)
    begins = not before or before[-1] in '.!?,;:"“”—-' or (word is not None and word[0].lower() in _BEFORE_A_SUBJECT)
    if begins and _VERB.match(passage, mention.end):
        return _Pronoun(_cased(subject, passage, mention), mention.end)
    if word is not None and word[0].lower() in _BEFORE_AN_OBJECT and not _VERB.match(passage, mention.end):
        return _Pronoun(direct, mention.end)
    return None


def _cased(word: str, passage: str, mention: Mention) -> str:
    before = passage[: mention.outer].rstrip(" \"“'‘")
    return word.capitalize() if not before or before[-1] in ".!?" else word


def running_items(settings: TrainingItems) -> Iterator[Row]:
    """Yield items of both languages, in half of which the antecedent is the first candidate.

    Raises:
        UserError: a text cannot be read; the message names the file.
    """
    if not settings.texts:
        return
    texts, _ = plain_text.read(
        PlainText(
            path=settings.texts[0],
            also=settings.texts[1:],
            without=settings.without,
            dev_share=settings.dev_share,
            test_share=0,
        )
    )
    for language in LANGUAGES:
        chance = Random(f"{settings.seed}/{language}/running")
        rows: dict[int, list[Row]] = {0: [], 1: []}
        for row in _all_rows(texts, language, chance):
            rows[row["antecedents"][0]].append(row)
        most = min(map(len, rows.values()))
        yield from (row for half in rows.values() for row in chance.sample(half, most))


def _all_rows(texts: Mapping[str, list[Text]], language: str, chance: Random) -> Iterator[Row]:
    """Yield an item for every suitable passage, without duplicates of a pronoun and its context."""
    finder = Finder(language)
    for split in ("train", "dev"):
        for number, text in enumerate(texts[split]):
            seen: set[str] = set()
            for passage in passages(text) if text.language == language else ():
                row = item_of(passage, finder, chance)
                around = row["text"][max(0, row["pronoun"][0] - _AROUND) : row["pronoun"][1] + _AROUND] if row else ""
                if row and around not in seen:
                    seen.add(around)
                    yield {**row, "group": f"{language}/running/{split}/{text.group or number}", "split": split}
