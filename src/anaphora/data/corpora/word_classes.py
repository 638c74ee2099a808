"""Classes of words (pronoun, proper noun, other noun, trace, placeholder), and search for a mention's head word.

Tags are those of the Penn Treebank, the Chinese Treebank and Universal Dependencies; others, such as "-", "_", "*" or
OntoNotes' XX, are ignored. A word without a tag can be recognised as a pronoun, since pronouns are a closed class.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from anaphora.base.language import WIDE_CHARACTER
from anaphora.base.translation import N_
from anaphora.data.own_sentence import third_person_pronouns

if TYPE_CHECKING:
    from anaphora.data.example import Example

UNKNOWN_FORM = "unknown"
FORMS = ("pronoun", "proper", "nominal", UNKNOWN_FORM)
"""Classes of a mention's head word; "unknown" if neither its tag nor the word itself decides."""

REMOVED_WORD = "[WORD]"  # placeholder for every word in a CoNLL-2012 file without OntoNotes' text
_EMPTY_CELLS = ("_", "-", "*")
BLANKED_WORD = "_"  # placeholder in CoNLL-U for a word whose text may not be published, as in GUM's Reddit documents
WITHOUT_WORDS = N_("its words are left out, and [WORD] or _ stands in their place")
"""Reason for dropping a text with placeholders."""


def word_set(words: str) -> frozenset[str]:
    """Return the set of the space-separated words of a string."""
    return frozenset(words.split())


_PRONOUN_TAGS = word_set("PRP PRP$ PN PRON")
_TAGS_OF_SOME_PRONOUNS = word_set("DT WDT WP WP$")  # of "this" and "who", but also of determiners
_PROPER_NOUN_TAGS = word_set("NNP NNPS NR NR-SHORT PROPN")
_NOUN_TAGS = _PRONOUN_TAGS | word_set("NN NN-SHORT NT NT-SHORT NOUN NR NR-SHORT PROPN")
_LEXICAL_TAGS = (
    _PRONOUN_TAGS
    | _PROPER_NOUN_TAGS
    | word_set("""
    CC CD DT EX IN JJ JJR JJS MD NN NNS PDT POS RB RBR RBS RP TO UH VB VBD VBG VBN VBP VBZ WDT WP WP$ WRB AFX
    AD AS BA CS DEC DEG DER DEV ETC IJ INF LB LC M MSP NN-SHORT NT NT-SHORT OD ON P SB SP VA VC VE VV
    ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART SCONJ VERB
""")
)
_TAGS = _LEXICAL_TAGS | word_set("FW LS SYM HYPH NFP ADD GW PU URL NOI PUNCT X , . : `` '' $ # -LRB- -RRB-")

_PRONOUNS = {
    "en": word_set("""
    i me my mine myself we us our ours ourselves you your yours yourself yourselves ye thou thee thy thine thyself
    he him his himself she her hers herself it its itself they them their theirs themselves themself oneself
    'em ’em em 's ’s this that these those who whom whose which what whoever whatever everyone everybody everything
    someone somebody something anyone anybody anything nobody nothing
"""),
    "zh": word_set("""
    我 你 您 妳 他 她 它 牠 祂 我们 你们 您们 他们 她们 它们 我們 你們 妳們 他們 她們 它們 牠們 祂們 祂们 佢 佢哋
    咱 咱们 咱們 俺 俺们 俺們 自己 自身 本身 本人 其 之 此 这 那 這 谁 誰 彼此 大家 人家 吾 汝
"""),
}

_INTENSIFIER = re.compile("(?<=[我你您妳他她它们們])(?:自己|自身|本身|本人)$")  # 他自己, as "himself"

_TRACE = re.compile(r"\*(?:pro|PRO|T|OP|ICH|EXP|RNR|PPA|U|\?)\*(?:-\d+)?|\*-\d+")
_TRACE_BY_TAG = re.compile(r"(?:0|\*|\*NOT\*)(?:-\d+)?")
_NO_WORD_TAG = "-NONE-"

_AFTER_HEAD = word_set("""
    of in on at by for from with without to into upon over under above below behind before after between among near
    beside besides against about around across along through toward towards within beyond as like than
    who whom whose which that where when and or but nor he she they we you i it
    , ; : . ! ? ( [ -- – — ... itself himself herself themselves
""")
"""First words of a postmodifier: prepositions, relative pronouns, conjunctions, subjects of a relative clause, etc."""
_NO_WORD = re.compile(r"[^\w]+|['’]s?")


def word_form(word: str, tags: Sequence[str], language: str) -> str:
    """Return the class of a word, one of `FORMS`.

    The first known tag decides between "pronoun", "proper" and "nominal". However, a word in the list of pronouns is a
    "pronoun" if it has no known tag, or a tag that treebanks also give to pronouns (for instance "this" in the Penn
    Treebank). Any other word without a known tag is "unknown".
    """
    tag = next((each for each in tags if each in _TAGS), "")
    if tag and not (tag in _TAGS_OF_SOME_PRONOUNS and word.lower() in _PRONOUNS[language]):
        return "pronoun" if tag in _PRONOUN_TAGS else "proper" if tag in _PROPER_NOUN_TAGS else "nominal"
    return "pronoun" if word.lower() in _PRONOUNS[language] else UNKNOWN_FORM


def is_chinese_pronoun(text: str, span: tuple[int, int]) -> bool:
    """Return whether a span of a text is a Chinese pronoun in the list of pronouns, possibly followed by 自己.

    A 他 inside 他们 or 其他 is not a pronoun.
    """
    start, end = span
    form = _INTENSIFIER.sub("", text[start:end])
    if form not in _PRONOUNS["zh"] or text[end : end + 1] in ("们", "們"):
        return False
    return form[0] not in "他她它牠祂佢" or (start, start + len(form)) in third_person_pronouns(text)


def without_pronoun(examples: Iterable[Example]) -> list[Example]:
    """Return the examples whose marked pronoun is not in the list of pronouns of its language.

    Such examples reveal wrong offsets even in Chinese, whose texts have no visible word boundaries.
    """
    return [
        each
        for each in examples
        if not (
            is_chinese_pronoun(each.text, each.pronoun)
            if each.language == "zh"
            else each.text[slice(*each.pronoun)].lower() in _PRONOUNS["en"]
        )
    ]


def is_tag(text: str) -> bool:
    """Return whether a string is a known part-of-speech tag of at least two letters, such as NN or PRON."""
    return text in _TAGS and text.isalpha() and len(text) > 1


def is_trace(word: str, tags: Sequence[str]) -> bool:
    """Return whether a word of a treebank is a dropped pronoun or a trace, such as *pro* or *T*-1.

    "0", "*" and "*NOT*", with or without an index, are traces only if a tag is -NONE-.
    """
    return bool(_TRACE.fullmatch(word)) or (_NO_WORD_TAG in tags and bool(_TRACE_BY_TAG.fullmatch(word)))


def placeholders(words: Sequence[str], tags: Sequence[Sequence[str]]) -> frozenset[int]:
    """Return the indices of a document's words that are placeholders for removed words.

    [WORD] always is one. If "_", "-" and "*" together are more than half of the words, all of them are placeholders.
    Otherwise only a "_" with the part-of-speech tag of a word is a placeholder; others may be punctuation.
    """
    blanked = [place for place, word in enumerate(words) if word in _EMPTY_CELLS]
    if 2 * len(blanked) <= len(words):
        blanked = [
            place for place in blanked if words[place] == BLANKED_WORD and not _LEXICAL_TAGS.isdisjoint(tags[place])
        ]
    return frozenset([*blanked, *(place for place, word in enumerate(words) if word == REMOVED_WORD)])


def lacks_words(text: str) -> bool:
    """Return whether a text contains the placeholder [WORD], or consists mostly of two or more "_"."""
    words = text.split()
    return REMOVED_WORD in text or 2 * words.count(BLANKED_WORD) > max(len(words), 2)


def blanks_after(words: Sequence[str]) -> list[bool]:
    """Return whether a space follows each word; there is none next to a Chinese character or a full-width mark."""
    pairs = zip_longest(words, words[1:], fillvalue="")
    return [not (WIDE_CHARACTER.match(word[-1]) or WIDE_CHARACTER.match(after[:1])) for word, after in pairs]


def head_word(words: Sequence[str]) -> int:
    """Return the index of the head word of an unparsed English mention: the last word before a postmodifier.

    A postmodifier begins with a punctuation mark, a preposition, a relative pronoun, a conjunction, a reflexive pronoun
    or the subject of a relative clause ("the roses she liked"). The first word of a mention never begins one. A final
    's or punctuation mark is not the head.
    """
    end = len(words)
    for place, word in enumerate(words[1:], start=1):
        if word.lower() in _AFTER_HEAD:
            end = place
            break
    while end > 1 and _NO_WORD.fullmatch(words[end - 1]):
        end -= 1
    return end - 1


def unparsed_head(words: Sequence[str], tags: Sequence[Sequence[str]], language: str) -> int:
    """Return the index of the head word of an unparsed mention.

    In Chinese, this is the last word that is tagged as a noun, proper noun or pronoun, or else the last word. For
    English, see `head_word`.
    """
    if language != "zh":
        return head_word(words)
    return max((place for place, each in enumerate(tags) if not _NOUN_TAGS.isdisjoint(each)), default=len(words) - 1)
