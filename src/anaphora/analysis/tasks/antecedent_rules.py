"""Rules that pick a mention's antecedent from the earlier mentions, as baselines for attention heads.

The rules follow Clark et al. 2019, section 4.3; the rule "sieve" goes back to Lee et al. 2011. Here, they use the words
of an English text, but no parse, entity types or speakers: number and gender are inferred from word lists, the word
"and", the ending -s and the first names of the built-in corpus.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from anaphora.data.controlled import lexicon
from anaphora.data.corpora.coreference import extents_of
from anaphora.data.example import Example, Span

_PRONOUNS = {
    (1, False, None): "i me my mine myself",
    (1, True, None): "we us our ours ourselves",
    (2, None, None): "you your yours yourself yourselves thou thee thy thine thyself ye",
    (3, False, "male"): "he him his himself",
    (3, False, "female"): "she her hers herself",
    (3, False, "thing"): "it its itself",
    (3, True, None): "they them their theirs themselves",
}
_MALE = (
    "mr mr. sir lord king prince duke count baron master monsieur father dad papa brother son uncle nephew grandfather "
    "husband man boy gentleman lad fellow widower monk priest bishop men boys gentlemen brothers sons"
)
_FEMALE = (
    "mrs mrs. miss ms ms. lady madam madame mademoiselle queen princess duchess countess mistress mother mum mama "
    "mamma sister daughter aunt niece grandmother wife woman girl maid lass widow nun actress women girls ladies "
    "sisters daughters"
)
_PLURAL = (
    "men women children people feet teeth mice geese oxen police folk these those many several both few two three four "
    "five six seven eight nine ten dozens hundreds thousands"
)
_PRONOUN_FEATURES = {word: kind for kind, words in _PRONOUNS.items() for word in words.split()}
_GENDER_BY_WORD = {**dict.fromkeys(_MALE.split(), "male"), **dict.fromkeys(_FEMALE.split(), "female")}
_PLURAL_WORDS = frozenset(_PLURAL.split())


class AgreementFeatures(NamedTuple):
    """Person (1 to 3), number and gender ("male", "female", "thing") of a mention; None agrees with any value."""

    person: int
    plural: bool | None
    gender: str | None


@dataclass(frozen=True)
class CandidateMention:
    """Mention: character spans of its head word and of the whole mention, and the index of its candidate."""

    head: Span
    whole: Span
    candidate: int


Condition = Callable[[CandidateMention, CandidateMention, str], bool]
"""Condition that an earlier mention must meet; the arguments are the mention, the earlier mention and the text."""


def _same_words(mention: CandidateMention, earlier: CandidateMention, text: str) -> bool:
    return _casefolded(text, mention.whole) == _casefolded(text, earlier.whole)


def _same_head(mention: CandidateMention, earlier: CandidateMention, text: str) -> bool:
    return _casefolded(text, mention.head) == _casefolded(text, earlier.head)


def _agree(mention: CandidateMention, earlier: CandidateMention, text: str) -> bool:
    return agree(*(agreement_features(text, each.head, each.whole) for each in (mention, earlier)))


RULES: dict[str, tuple[Condition, ...]] = {
    "nearest": (),
    "head match": (_same_head,),
    "sieve": (_same_words, _same_head, _agree),
}
"""Conditions of each rule by name. The nearest earlier mention that meets the first condition is picked; if there is
none, the nearest that meets the second, and so on; if no mention meets any, the nearest earlier mention. Words are
compared without case. Pronouns of the first or second person agree only with pronouns of the same person, because
speakers are unknown.
"""


def rule_hits(example: Example) -> dict[str, bool]:
    """Return whether each rule in `RULES` picks a mention of an antecedent for the example's mention, by rule name.

    Raises:
        ValueError: no candidate precedes the mention.
    """
    own, entities = extents_of(example)
    mentions = [
        CandidateMention(head, whole, candidate)
        for candidate, spans in enumerate(zip(example.candidates, entities, strict=True))
        for head, whole in zip(*spans, strict=True)
    ]
    earlier = sorted((each for each in mentions if each.head < example.pronoun), key=lambda each: each.head)
    if not earlier:
        raise ValueError("no candidate comes before the mention: there is nothing to choose from")
    mention = CandidateMention(example.pronoun, own, -1)
    hits = {}
    for name, conditions in RULES.items():
        met = (each for meets in conditions for each in reversed(earlier) if meets(mention, each, example.text))
        hits[name] = next(met, earlier[-1]).candidate in example.antecedents
    return hits


def agreement_features(text: str, head: Span, whole: Span) -> AgreementFeatures:
    """Return the person, number and gender of a mention, inferred from the mention's words.

    If the head word is a pronoun, the features come from a table. Any other mention is third person. It is plural if it
    contains "and", if its head word or first word is a plural word ("these", "people"), or if its head word is in lower
    case and ends in s, but not in ss, us or is. Otherwise it is singular. The gender is that of the first word that is
    a title, a word for men or women, or a first name. The head word is tried first, then all words in order, except a
    possessor ("Tom" in "Tom's sister"). The gender is None if there is no such word or if the mention contains "and".

    Args:
        head, whole: character spans of the head word and of the whole mention.
    """
    head_word = _casefolded(text, head)
    if head_word in _PRONOUN_FEATURES:
        return AgreementFeatures(*_PRONOUN_FEATURES[head_word])
    words = _casefolded(text, whole).split()
    own = text[head[0] : head[1]]
    several = "and" in words or head_word in _PLURAL_WORDS or words[0] in _PLURAL_WORDS
    plural = own.islower() and own.endswith("s") and not own.endswith(("ss", "us", "is"))
    # The possessor in "Tom's sister" and "the king 's maid" does not count.
    free = [
        word for word, after in zip(words, [*words[1:], ""], strict=True) if not (after in ("'s", "’s") or "'" in word)
    ]
    genders = [each for each in map(_gender, [head_word, *free]) if each is not None]
    return AgreementFeatures(3, several or plural, genders[0] if genders and "and" not in words else None)


def agree(one: AgreementFeatures, other: AgreementFeatures) -> bool:
    """Return whether two mentions agree in every feature that is known for both."""
    return all(left is None or right is None or left == right for left, right in zip(one, other, strict=True))


def _casefolded(text: str, span: Span) -> str:
    return text[span[0] : span[1]].casefold()


def _gender(word: str) -> str | None:
    return _GENDER_BY_WORD.get(word) or _gender_by_name().get(word)


@cache
def _gender_by_name() -> dict[str, str]:
    known = lexicon.load("en").names
    return {name.casefold(): gender for gender, names in known.items() for name in names}
