"""Classes of words, by part of speech or by the word itself: pronoun, name, other noun, trace, placeholder.

Tags are those of the Penn Treebank, the Chinese Treebank and Universal Dependencies. A tag of none of them, such as
"-", "_", "*" or OntoNotes' XX, says nothing. Pronouns are a closed class, so a word without a tag may still be one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from anaphora.base.locale.translation import N_

UNKNOWN_FORM = "unknown"
FORMS = ("pronoun", "proper", "nominal", UNKNOWN_FORM)
"""What a mention's head word is; unknown if neither its tag nor the word decides."""

REMOVED_WORD = "[WORD]"
"""What a skeleton of CoNLL-2012 has in place of every word."""
_EMPTY_CELLS = ("_", "-", "*")
BLANKED_WORD = "_"
"""What CoNLL-U has in place of a word whose text may not be published, as in GUM's Reddit documents."""
WITHOUT_WORDS = N_("its words are left out, and [WORD] or _ stands in their place")
"""Why a text with placeholders makes no item."""

_PRONOUN_TAG_NAMES = "PRP PRP$ PN PRON"
_PROPER_NOUN_TAG_NAMES = "NNP NNPS NR PROPN"
_NOUN_TAG_NAMES = f"NN NT NOUN NR PROPN {_PRONOUN_TAG_NAMES}"
_LEXICAL_TAG_NAMES = f"""
    {_PRONOUN_TAG_NAMES} {_PROPER_NOUN_TAG_NAMES}
    CC CD DT EX IN JJ JJR JJS MD NN NNS PDT POS RB RBR RBS RP TO UH VB VBD VBG VBN VBP VBZ WDT WP WP$ WRB AFX
    AD AS BA CS DEC DEG DER DEV ETC IJ INF LB LC M MSP NN-SHORT NR-SHORT NT NT-SHORT OD ON P SB SP VA VC VE VV
    ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART SCONJ VERB
"""
_OTHER_TAG_NAMES = "FW LS SYM HYPH NFP ADD GW PU URL NOI PUNCT X , . : `` '' $ # -LRB- -RRB-"
_PRONOUN_TAGS = frozenset(_PRONOUN_TAG_NAMES.split())
_PROPER_NOUN_TAGS = frozenset(_PROPER_NOUN_TAG_NAMES.split())
_NOUN_TAGS = frozenset(_NOUN_TAG_NAMES.split())
_LEXICAL_TAGS = frozenset(_LEXICAL_TAG_NAMES.split())
_TAGS = _LEXICAL_TAGS | frozenset(_OTHER_TAG_NAMES.split())

_ENGLISH_PRONOUNS = """
    i me my mine myself we us our ours ourselves you your yours yourself yourselves ye thou thee thy thine thyself
    he him his himself she her hers herself it its itself they them their theirs themselves themself oneself
    'em ’em em 's ’s this that these those who whom whose which what whoever whatever everyone everybody everything
    someone somebody something anyone anybody anything nobody nothing
"""
_CHINESE_PRONOUNS = """
    我 你 您 妳 他 她 它 牠 祂 我们 你们 您们 他们 她们 它们 我們 你們 妳們 他們 她們 它們 牠們 咱 咱们 咱們 俺 俺们
    俺們 自己 自身 本身 本人 其 之 此 这 那 這 谁 誰 彼此 大家 人家 吾 汝
"""
_PRONOUNS = {"en": frozenset(_ENGLISH_PRONOUNS.split()), "zh": frozenset(_CHINESE_PRONOUNS.split())}

_TRACE = re.compile(r"\*(?:pro|PRO|T|OP|ICH|EXP|RNR|PPA|U|\?)\*(?:-\d+)?|\*-\d+")
_TRACE_BY_TAG = re.compile(r"(?:0|\*|\*NOT\*)(?:-\d+)?")
_NO_WORD_TAG = "-NONE-"


def word_form(word: str, tags: Sequence[str], language: str) -> str:
    """Return which of `FORMS` a word is: by the first informative tag, else by the word itself."""
    tag = next((each for each in tags if each in _TAGS), "")
    if tag:
        return "pronoun" if tag in _PRONOUN_TAGS else "proper" if tag in _PROPER_NOUN_TAGS else "nominal"
    return "pronoun" if word.lower() in _PRONOUNS[language] else UNKNOWN_FORM


def is_noun(tags: Sequence[str]) -> bool:
    """Check whether a tag is of a noun, a name or a pronoun."""
    return not _NOUN_TAGS.isdisjoint(tags)


def is_tag(text: str) -> bool:
    """Check whether a text is a part of speech in letters, such as NN or PRON."""
    return text in _TAGS and text.isalpha() and len(text) > 1


def is_trace(word: str, tags: Sequence[str]) -> bool:
    """Check whether a word of a treebank is not written: a dropped pronoun or a trace, such as *pro* or *T*-1.

    A zero or an asterisk is a trace only if its tag is -NONE-.
    """
    return bool(_TRACE.fullmatch(word)) or (_NO_WORD_TAG in tags and bool(_TRACE_BY_TAG.fullmatch(word)))


def placeholders(words: Sequence[str], tags: Sequence[Sequence[str]]) -> frozenset[int]:
    """Return the places of a document's words that only hold the place of a word.

    "_", "-" and "*" are also marks that people write. They are placeholders if most words of the document are, and a
    single "_" if its tag is that of a word.
    """
    blanked = [place for place, word in enumerate(words) if word in _EMPTY_CELLS]
    if 2 * len(blanked) <= len(words):
        blanked = [
            place for place in blanked if words[place] == BLANKED_WORD and not _LEXICAL_TAGS.isdisjoint(tags[place])
        ]
    return frozenset([*blanked, *(place for place, word in enumerate(words) if word == REMOVED_WORD)])


def lacks_words(text: str) -> bool:
    """Check whether a text has placeholders for its words: any [WORD], or more "_" than words."""
    words = text.split()
    return REMOVED_WORD in text or 2 * words.count(BLANKED_WORD) > max(len(words), 2)
