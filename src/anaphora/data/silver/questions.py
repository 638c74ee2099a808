"""Silver-standard items for pre-training: English text with antecedents that two rules found and nobody checked.

Text is read, and unsuitable paragraphs are dropped, as in `corpora.plain_text`. Both rules modify the text:

- by gender: if a passage names exactly one person of a pronoun's gender, this person is the antecedent. All names and
  pronouns are then changed to one gender. Unchanged words such as "wife" may still reveal the antecedent.
- by name: a pronoun replaces a repeated name, whose bearer is the antecedent. The other candidate has the same or an
  unknown gender. The rule follows Kocijan et al. 2019 (WikiCREM), who replace the name by a mask token.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from anaphora.base.errors import UserError
from anaphora.data.corpora import plain_text
from anaphora.data.corpora.division import ReadingReport
from anaphora.data.corpora.reading import example_of
from anaphora.data.corpora.word_classes import word_set
from anaphora.data.example import Example, Span
from anaphora.data.names import replace_spans
from anaphora.data.silver.people import FEMALE, MALE, TITLES, NameLexicon, PageSubject, PersonMention
from anaphora.data.text import Text
from anaphora.settings.data import SilverStandard

CORPUS = "silver"

_PRONOUN = re.compile(rf"\b(?:{'|'.join((*MALE, *FEMALE))})\b", re.IGNORECASE)
_OPPOSITE_PRONOUN = {
    "he": "she",
    "him": "her",
    "his": "her",
    "himself": "herself",
    "she": "he",
    "hers": "his",
    "herself": "himself",
}
_AFTER_OBJECTS = word_set("""
    to in and at on with for from as by a the that into but when if or of so up down out away back then was is had an
    his her before after about until who while than not because again over
""")
"""Words before which "her" is an object pronoun ("him"); before any other word it is possessive ("his")."""
_BEFORE_SUBJECTS = word_set("""
    and but when while that because if as after before where although though which since until who whom
""")
_BEFORE_OBJECTS = word_set("""
    of to with by for from against at on in about between behind over under into than like near toward towards alongside
    told met asked gave married joined beat defeated replaced succeeded helped made
""")
_SENTENCE_END = re.compile(r"(?<=[.!?])(?<!Mr\.)(?<!Mrs\.)(?<!Ms\.)(?<!Dr\.)(?<!St\.)(?<! [A-Z]\.) +(?=[A-Z\"'])")
_MIN_WORDS = 20  # minimum number of words of a passage
_NO_ANTECEDENT_SHARE = 0.25  # share of the items by name without a correct candidate, if two other people are possible
_NEAREST_SHARE = 0.5  # probability that the other candidate of an item by name is the nearest person
ORIGIN, DECONTAMINATES, files = plain_text.ORIGIN, plain_text.DECONTAMINATES, plain_text.files

MAX_FIRST_RATIO = 2
"""Largest number of items whose antecedent is the first candidate, per item whose antecedent is the second. Further
items are left out, since writers mostly return to the person named first, and a model would learn only that."""


def silver_items(document: Text, names: NameLexicon, words: int, seed: int) -> Iterator[Example]:
    """Generate the items of one document; the seed determines all random choices.

    A passage has at most `words` words; one that names fewer than two people gives no item.
    """
    draw = random.Random(f"{seed}/{CORPUS}/{document.group}")
    subject = names.subject(document)
    for passage in passages(document.text, words, draw):
        people = _Passage(passage, names.mentions(passage, subject), document.group)
        if len(people.spans) >= 2:
            yield from _by_gender(people, names, subject, draw)
            yield from _by_name(people, draw)


def passages(text: str, words: int, draw: random.Random) -> Iterator[str]:
    """Yield passages of a text; a passage consists of successive sentences of one paragraph.

    Passages may overlap, since one begins at each sentence. The maximum length of a passage is drawn at random between
    `words` / 2 and `words`. Passages with fewer than 20 or more than `words` words, and passages that end where an
    earlier passage ends, are left out.
    """
    for paragraph in text.split("\n"):
        sentences = _SENTENCE_END.split(paragraph)
        lengths = [len(sentence.split()) for sentence in sentences]
        ended: set[int] = set()
        for first in range(len(sentences)):
            limit, end, total = draw.randint(words // 2, words), first, 0
            while end < len(sentences) and (end == first or total + lengths[end] <= limit):
                total += lengths[end]
                end += 1
            if _MIN_WORDS <= total <= words and end not in ended:
                ended.add(end)
                yield " ".join(sentences[first:end])


class _Passage:
    """Passage with the mentions and the genders of the people that the passage names."""

    def __init__(self, text: str, mentions: Sequence[PersonMention], group: str) -> None:
        self.text, self.mentions, self.group = text, mentions, group
        self.spans: defaultdict[str, list[Span]] = defaultdict(list)
        self.gender = {each.person: each.gender for each in mentions}
        for each in mentions:
            self.spans[each.person].append((each.start, each.end))

    def of(self, gender: str | None) -> list[str]:
        """Return the people of a gender; None selects those of unknown gender."""
        return [person for person in self.spans if self.gender[person] == gender]


def _by_gender(people: _Passage, names: NameLexicon, subject: PageSubject | None, draw: random.Random) -> list[Example]:
    """Build at most two items by the gender rule: with the first and with the second candidate as antecedent.

    There is no item if the gender of a person is unknown, all people have the same gender, several people have the
    gender of one of the pronouns, or a pronoun may refer to the page's subject although the passage does not name this
    person. Reflexive pronouns, and those before the first mention of their antecedent, are not used.
    """
    text = people.text
    forms = list(_PRONOUN.finditer(text))
    present = {_gender(form[0]) for form in forms}
    alone = {gender: people.of(gender)[0] for gender in present if len(people.of(gender)) == 1}
    if not forms or people.of(None) or len(alone) < len(present) or not people.of("male") or not people.of("female"):
        return []
    if subject is not None and subject.name not in people.spans and subject.gender in (None, *present):
        return []  # the page's subject may be meant without being named
    turned_to = draw.choice(sorted(present))
    written, mentions, pronouns = _with_one_gender(people, forms, turned_to, names, draw)
    possible = []
    for span, gender in pronouns:
        right = alone[gender]
        before = [person for person in mentions if mentions[person][0] < span]
        if right not in before or written[slice(*span)].lower().endswith("self"):
            continue
        other = draw.choice([person for person in mentions if person != right])
        if {written[slice(*span)] for span in mentions[right]} & {written[slice(*span)] for span in mentions[other]}:
            continue  # both people got the same name
        first = mentions[right][0] < mentions[other][0]
        possible.append((first, span, right, other))
    hard = [each for each in possible if not each[0]] or possible
    chosen = [draw.choice(hard)] if hard else []
    rest = [each for each in possible if chosen and each[0] != chosen[0][0]]
    chosen += [draw.choice(rest)] if rest else []
    return [
        example_of(CORPUS, written, span, (mentions[right], mentions[other]), (0,), group=people.group, rule="gender")
        for _, span, right, other in chosen
    ]


def _with_one_gender(
    people: _Passage, forms: Sequence[re.Match[str]], gender: str, names: NameLexicon, draw: random.Random
) -> tuple[str, dict[str, tuple[Span, ...]], list[tuple[Span, str]]]:
    """Change all people of a passage to one gender, with random new names for those of the other gender.

    Return the new text, the spans of each person's mentions, and the span and the old gender of each pronoun.
    """
    new = {person: (draw.choice(names.of[gender]), draw.choice(names.families)) for person in people.spans}
    written = {form.span(): form[0] if _gender(form[0]) == gender else _opposite_pronoun(form) for form in forms}
    for each in people.mentions:
        old = people.text[each.start : each.end]
        written[each.start, each.end] = old if each.gender == gender else _renamed(each, old, *new[each.person])
    text, moved = replace_spans(people.text, written)
    mentions = {person: tuple(moved[span] for span in spans) for person, spans in people.spans.items()}
    return text, mentions, [(moved[form.span()], _gender(form[0])) for form in forms]


def _renamed(mention: PersonMention, old: str, given: str, family: str) -> str:
    """Return the new name of a mention of a person whose gender is changed.

    The new name has the form of the old name `old`: title and family name, full name, given name, or family name.
    """
    title, _, rest = old.partition(" ")
    if title.rstrip(".") in TITLES and rest:
        return f"{'Mr.' if mention.gender == 'female' else 'Mrs.'} {family}"
    if rest:
        return f"{given} {family}"
    return given if old == mention.person.split()[0] else family


def _opposite_pronoun(form: re.Match[str]) -> str:
    """Return the pronoun of the opposite gender; "her" becomes "his" if a noun seems to follow, else "him"."""
    word = form[0].lower()
    if word == "her":
        following = re.match(r" ([\w'-]+)", form.string[form.end() :])
        turned = "his" if following and following[1].lower() not in _AFTER_OBJECTS else "him"
    else:
        turned = _OPPOSITE_PRONOUN[word]
    return turned.capitalize() if form[0][0].isupper() else turned


def _by_name(people: _Passage, draw: random.Random) -> list[Example]:
    """Build at most one item by the name rule, in which a pronoun replaces a repeated mention of a person.

    The candidates are this person, who is the antecedent, and another person of the same or of unknown gender. If two
    such other people exist, they become the candidates with a probability of 25 %; the correct answer is then "none of
    them". There is no item if no person of known gender is mentioned twice, a pronoun has the opposite gender, there is
    no other candidate, or the case of the new pronoun is unclear.
    """
    text = people.text
    again = [person for person in people.spans if people.gender[person] and len(people.spans[person]) > 1]
    if not again:
        return []
    right = draw.choice(again)
    gender = people.gender[right]
    if any(_gender(form[0]) != gender for form in _PRONOUN.finditer(text)):
        return []
    others = [person for person in people.spans if person != right and people.gender[person] in (gender, None)]
    start, end = draw.choice(people.spans[right][1:])
    written = _as_pronoun(text, start, end, gender == "male")
    if not others or written is None:
        return []
    word, end = written
    moved = len(word) - (end - start)

    def spans(person: str) -> tuple[Span, ...]:
        kept = [span for span in people.spans[person] if span[0] != start]
        return tuple((low + moved * (low > start), high + moved * (low > start)) for low, high in kept)

    nearest = min(others, key=lambda person: min(abs(span[0] - start) for span in people.spans[person]))
    other = nearest if draw.random() < _NEAREST_SHARE else draw.choice(others)
    third = [person for person in others if person != other]
    neither = bool(third) and draw.random() < _NO_ANTECEDENT_SHARE
    offered = [spans(draw.choice(third) if neither else right), spans(other)]
    passage = text[:start] + word + text[end:]
    pronoun, answers = (start, start + len(word)), () if neither else (0,)
    return [example_of(CORPUS, passage, pronoun, offered, answers, group=people.group, rule="name")]


def _as_pronoun(text: str, start: int, end: int, male: bool) -> tuple[str, int] | None:
    """Return the pronoun that replaces a name, and the end of the replaced characters, including a possessive 's.

    The result is None if the words around the name do not decide the pronoun's case.
    """
    subject, object_, possessive = ("he", "him", "his") if male else ("she", "her", "her")
    before, behind = text[:start].rstrip(), text[end:]
    last = before.rsplit(" ", 1)[-1]
    follows = behind.split(maxsplit=1)[0] if behind.strip() else ""
    if behind.startswith(("'s", "’s")):
        word, end = possessive, end + 2
    elif last.lower() in _BEFORE_OBJECTS:
        word = object_
    elif (not last or last[-1] in '.,;!?"' or last.lower() in _BEFORE_SUBJECTS) and follows[:1].isalpha():
        if follows in ("and", "or"):
            return None
        word = subject
    else:
        return None
    return (word.capitalize() if not last or last[-1] in ".!?" else word), end


def _gender(form: str) -> str:
    return "male" if form.lower() in MALE else "female"


def read(settings: SilverStandard) -> tuple[dict[str, list[Example]], ReadingReport]:
    """Return the items by split and a report on dropped paragraphs.

    Only English documents are used. The list of given names is collected from the documents of all splits. All items of
    a document are in the same split. `MAX_FIRST_RATIO` limits the number of items whose antecedent is the first
    candidate.

    Raises:
        UserError: `plain_text.read` rejects the text, no male or no female given name is found, or no training item
            results.
    """
    texts, report = plain_text.read(settings)
    english = {split: [one for one in documents if one.language == "en"] for split, documents in texts.items()}
    names = NameLexicon(one for documents in english.values() for one in documents)
    if not all(names.of.values()):
        raise UserError(
            f"data.path ({settings.path}): no given names were found; some documents must be pages about people: "
            "a `title` with given and family name, and a text that begins with that name and uses he or she"
        )
    splits = {
        split: _balanced(
            [each for one in documents for each in silver_items(one, names, settings.words, settings.seed)]
        )
        for split, documents in english.items()
    }
    if not splits["train"]:
        raise UserError(f"data.path ({settings.path}): no passage names two people between whom a rule can decide")
    return splits, report


def _balanced(examples: list[Example]) -> list[Example]:
    """Keep an evenly spaced sample of the items whose antecedent is the first candidate, and keep all other items.

    The sample has at least one item, and at most `MAX_FIRST_RATIO` times as many items as there are items whose
    antecedent is the second candidate.
    """
    first = [number for number, example in enumerate(examples) if example.antecedents == (0,)]
    later = sum(example.antecedents == (1,) for example in examples)
    most = min(len(first), max(1, MAX_FIRST_RATIO * later))
    kept = {first[number * len(first) // most] for number in range(most)} if first else set()
    return [example for number, example in enumerate(examples) if example.antecedents != (0,) or number in kept]
