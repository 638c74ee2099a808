"""Examples from a user's own sentence, with pronoun and candidates given as words or as character offsets.

By default, the last third-person pronoun in the sentence is resolved, since it has the most candidates before it. The
same regular expression finds pronouns in Python and in the JavaScript of the interactive page.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from anaphora.base.errors import UserError
from anaphora.base.language import CHINESE_RANGES, JOINERS, cuts_word, is_inside_word, language_of, split_names
from anaphora.base.translation import N_
from anaphora.data.example import Example, Span, in_text_order, overlap

_ENGLISH = """
    he him his himself she her hers herself it its itself they them their theirs themself themselves
"""
_CHINESE = (
    "(?<!(?<!尤)其)(?<!吉(?=他))(?<![维維](?=他命))(?<![马馬]耳(?=他))"  # not 其他, 吉他, 维他命, 马耳他
    "(?<![犹猶](?=他))(?<!利(?=他主[义義]|他行[为為]))(?<!(?<!安)排(?=他性))"  # not 犹他, 利他主义, 利他行为, 排他性
    "(?:[她它牠祂]|他(?:(?=[们們])|(?![乡鄉](?!下)|汀|人(?:[的之或，。！？、；]|$)|[ぁ-ヿ])))[们們]?"  # 他人, 他の
    "|佢[哋们們]?"  # Cantonese
)


def pronoun_pattern(letter: str, outside: str = "") -> str:
    """Return a regular expression that matches third-person pronouns of English and Chinese, in Python or JavaScript.

    The expression does not match

    - an English pronoun inside a longer word, even if a hyphen separates the parts of the word,
    - "IT" in capitals, which usually means information technology,
    - a Chinese pronoun inside a word such as 其他 or 他人, or a Japanese word such as 他の.

    Args:
        letter: pattern of a letter, digit, combining mark or joiner that is not a Chinese character.
        outside: zero-width pattern that must match before an English pronoun, for example to exclude web addresses.
    """
    forms = dict.fromkeys(
        form for word in _ENGLISH.split() for form in (word, word.capitalize(), word.upper()) if form != "IT"
    )
    return f"{outside}(?<!{letter})(?<!{letter}-)(?:{'|'.join(forms)})(?!-?{letter})|{_CHINESE}"


_ADDRESS = r"(?:https?://|www\.|@)"  # beginning of a web address or name, or middle of an e-mail address
SCRIPT_PATTERN = pronoun_pattern(
    rf"(?![{CHINESE_RANGES}])[\p{{L}}\p{{N}}\p{{M}}{JOINERS}]", rf"(?<!{_ADDRESS}[!-~]*)(?![!-~]*@[!-~])"
)
"""Pattern for JavaScript, with the flag "u"."""
_PATTERN = re.compile(pronoun_pattern(rf"[^\W_{CHINESE_RANGES}]"))


def third_person_pronouns(text: str) -> list[tuple[int, int]]:
    """Return the character spans of the third-person pronouns of a text, in order."""
    plain = re.sub("[!-~]+", _blank_address, text) if re.search(_ADDRESS, text) else text
    spans = (match.span() for match in _PATTERN.finditer(plain))
    return [span for span in spans if not cuts_word(text, span)]


def _blank_address(characters: re.Match[str]) -> str:
    """Replace a web address, e-mail address or user name ("@her") by spaces, so that no pronoun is found in it.

    The prefix of a web address, such as "www.", and the character "@" are not replaced.
    """
    run = characters[0]
    beginning = re.search(_ADDRESS, run)
    if beginning is None:
        return run
    start = max(0, run.rfind("@", 0, -1))
    end = max(start, beginning.end())
    return " " * start + run[start:end] + " " * (len(run) - end)


def example_from_query(
    text: str,
    pronoun: str | None = None,
    candidates: Sequence[str] = (),
    antecedent: str | None = None,
    language: str | None = None,
) -> Example:
    """Build an example from a sentence, with pronoun and candidates given as words or as offsets "start:end".

    Args:
        pronoun: the pronoun to resolve. If a word occurs several times, a number selects an occurrence: "it:2" is the
            second "it". The default is the last third-person pronoun of the sentence.
        candidates: the entities that the pronoun may refer to. A string with Chinese commas is split at the commas.
        antecedent: the correct candidate, if known.
        language: "en" or "zh"; by default the result of `language_of`.

    Raises:
        UserError: a word is not in the text, a span is outside the text, a candidate overlaps the pronoun or another
            candidate, the antecedent is not a candidate, the pronoun occurs several times and no number selects an
            occurrence, no pronoun is given and the sentence has no third-person pronoun, or an argument has the wrong
            type.
    """
    candidates = split_names(_list_of_words(candidates))
    same = [unicodedata.normalize("NFC", name) for name in candidates]
    answer = None if antecedent is None else unicodedata.normalize("NFC", str(antecedent))
    if answer is not None and answer not in same:
        raise UserError(f"antecedent ({antecedent!r}) must be one of candidates ({list(candidates)})")
    spans = tuple((find_span(text, name, "candidates"),) for name in candidates)
    _check_apart(text, [span for (span,) in spans])
    pronoun_span = last_pronoun(text) if pronoun is None else find_pronoun(text, pronoun)
    for (span,) in spans:
        if overlap(span, pronoun_span):
            message = N_(
                "candidates: {words!r} ({place}) and the pronoun {pronoun!r} ({pronoun_place}) share characters of the "
                "text; leave the candidate out, or choose another pronoun (pronoun=...)"
            )
            raise UserError(
                message,
                words=text[slice(*span)],
                place="{}:{}".format(*span),
                pronoun=text[slice(*pronoun_span)],
                pronoun_place="{}:{}".format(*pronoun_span),
            )
    right = () if answer is None else (same.index(answer),)
    ordered, antecedents, _ = in_text_order(spans, right)
    return Example(
        text=text,
        language=language or language_of(text),
        pronoun=pronoun_span,
        candidates=ordered,
        antecedents=antecedents,
    )


def _check_apart(text: str, spans: Sequence[Span]) -> None:
    """Check that no two candidates share a character of the text; otherwise raise a `UserError` that quotes both."""
    for second, span in enumerate(spans):
        for other in spans[:second]:
            if overlap(span, other):
                shorter, longer = sorted((span, other), key=lambda one: one[1] - one[0])
                name = text[slice(*shorter)]
                mentions = enumerate(occurrences_in_any_case(name, text), 1)
                later = next((number for number, mention in mentions if mention[0] >= longer[1]), None)
                message = N_(
                    "candidates: {words!r} ({place}) and {other!r} ({other_place}) share characters of the text; leave "
                    "one out"
                )
                if later is not None:
                    message = N_(
                        "candidates: {words!r} ({place}) and {other!r} ({other_place}) share characters of the text; "
                        "leave one out, or choose a later mention by its number, as {numbered!r}"
                    )
                raise UserError(
                    message,
                    words=text[slice(*span)],
                    place="{}:{}".format(*span),
                    other=text[slice(*other)],
                    other_place="{}:{}".format(*other),
                    numbered=f"{name}:{later}",
                )


def optional_example(
    text: str, pronoun: str | None, candidates: Sequence[str], antecedent: str | None = None
) -> Example | None:
    """Build an example as `example_from_query` does.

    If the text has no third-person pronoun, and pronoun, candidates and antecedent are not given, return None.
    """
    has_question = pronoun is not None or antecedent is not None or bool(_list_of_words(candidates))
    if not has_question and not third_person_pronouns(text):
        return None
    return example_from_query(text, pronoun, candidates, antecedent)


def _list_of_words(candidates: Sequence[str]) -> list[str]:
    words = None if isinstance(candidates, str) or getattr(candidates, "ndim", 1) != 1 else candidates
    if not isinstance(words, Collection) or not all(isinstance(one, str) for one in words):
        raise UserError(N_("candidates ({candidates!r}) must be a list of words of the text"), candidates=candidates)
    return [str(one) for one in words]


def name_of_sentence(text: str, *question: object) -> str:
    """Return a file name, without suffix: the first 24 characters of the sentence and a hash of all arguments."""
    words = re.sub(r"\W+", "_", text)[:24].strip("_")
    return f"{words}_{hashlib.sha256(repr((text, question)).encode()).hexdigest()[:8]}"


def last_pronoun(text: str) -> Span:
    """Return the span of the last third-person pronoun of a text, which must have one."""
    spans = third_person_pronouns(text)
    if not spans:
        raise UserError(
            N_(
                "text ({text!r}) has no English or Chinese third-person pronoun: choose the word to ask about"
                " (pronoun=...)"
            ),
            text=text,
        )
    return spans[-1]


def find_pronoun(text: str, pronoun: str) -> Span:
    """Return the span of a pronoun given as a word, a numbered word ("it:2" for the second "it") or "start:end".

    Raises:
        UserError: `find_span` does not find the pronoun, or it occurs several times and no number selects one.
    """
    every = list(occurrences_in_any_case(pronoun, text)) if isinstance(pronoun, str) and pronoun.strip() else []
    if len(every) > 1:
        places = ", ".join(written_span(text, span) for span in every[:5])
        raise UserError(
            N_(
                "pronoun ({pronoun!r}) appears {count} times in the text: write which one you mean as '{pronoun}:2', "
                "or its characters ({places})"
            ),
            pronoun=pronoun,
            count=len(every),
            places=places,
        )
    return find_span(text, pronoun, "pronoun")


def find_span(text: str, words: str, setting: str) -> Span:
    """Return the span of one or more words given by a user.

    The string "the cup" selects the first occurrence of "the cup" as whole words, "the cup:2" the second, and "4:11"
    the characters from 4 to 11, end exclusive. A literal occurrence of the string takes precedence: in a text with the
    time "7:15", this string selects the time, and "007:015" the characters. An occurrence with the same capitals also
    takes precedence: "Hope" selects the name in "I hope Hope comes". `setting` names the argument in error messages.

    Raises:
        UserError: `words` is blank, not a string or not in the text, there is no occurrence with the given number, or
            the character span is outside the text.
    """
    if not isinstance(words, str):
        message = N_("{setting} ({words!r}) must be a string: a word of the text, or a range of characters such as 0:4")
        raise UserError(message, setting=setting, words=words)
    if not words.strip():
        message = N_("{setting} ({words!r}) is blank; give a word of the text, or a range of characters such as 0:4")
        raise UserError(message, setting=setting, words=words)
    occurrences = list(occurrences_in_any_case(words, text))
    if occurrences:
        return next((span for span in occurrences if _has_capitals_of(words, text[slice(*span)])), occurrences[0])
    numbered = re.fullmatch(r"(.*\S.*):([0-9]{1,4})", words, re.DOTALL)
    every = list(occurrences_in_any_case(numbered[1], text)) if numbered else []
    if numbered and 1 <= int(numbered[2]) <= len(every):
        return every[int(numbered[2]) - 1]
    characters = re.fullmatch(r"([0-9]{1,9}):([0-9]{1,9})", words)
    if characters:
        start, end = int(characters[1]), int(characters[2])
        if not 0 <= start < end <= len(text):
            message = N_("{setting} ({words}) is outside the text, which has {characters} characters")
            raise UserError(message, setting=setting, words=words, characters=len(text))
        return start, end
    if numbered:
        message = N_("{setting} ({words!r}): {word!r} appears {count} times in the text {text!r}")
        raise UserError(message, setting=setting, words=words, word=numbered[1], count=len(every), text=text)
    part = next(_parts_of_words(words, text), None)
    if part is not None:
        start, end = part
        while is_inside_word(text, start):
            start -= 1
        while is_inside_word(text, end):
            end += 1
        message = N_(
            "{setting} ({words!r}) is not in the text {text!r} as a whole word, but in {whole!r}; give this word, or "
            "the characters ({characters})"
        )
        written = written_span(text, part)
        raise UserError(message, setting=setting, words=words, text=text, whole=text[start:end], characters=written)
    message = N_(
        "{setting} ({words!r}) is not in the text {text!r}; give a word of it, or a range of characters such as 0:4"
    )
    raise UserError(message, setting=setting, words=words, text=text)


def _has_capitals_of(words: str, found: str) -> bool:
    """Return whether `found`, a case-insensitive match of `words`, has a capital letter wherever `words` has one."""
    typed, written = ("".join(unicodedata.normalize("NFD", one).split()) for one in (words, found))
    return all(letter.isupper() for letter, given in zip(written, typed, strict=False) if given.isupper())


def written_span(text: str, span: Span) -> str:
    """Return a span as "start:end", with leading zeros if `find_span` would take "start:end" for words of the text."""
    written = "{}:{}".format(*span)
    while find_span(text, written, "characters") != span:
        written = ":".join(f"0{number}" for number in written.split(":"))
    return written


def numbered_words(text: str, span: Span) -> str:
    """Return the words of a span as `find_span` reads them: "dog", or "dog:2" for the second "dog", ignoring case."""
    words = text[slice(*span)]
    spans = list(occurrences_in_any_case(words, text))
    if span not in spans:  # part of a word
        return written_span(text, span)
    return words if len(spans) == 1 else f"{words}:{spans.index(span) + 1}"


def distinct_names(text: str, spans: Sequence[Span]) -> list[str]:
    """Return the words of each span, with a number as in "dog:2" if several of these spans have the same words."""
    names = [text[slice(*span)] for span in spans]
    return [
        numbered_words(text, span) if names.count(name) > 1 else name for name, span in zip(names, spans, strict=True)
    ]


def occurrences_in_any_case(words: str, text: str) -> Iterator[Span]:
    """Yield the spans of all whole-word, case-insensitive occurrences of words in a text.

    Precomposed and decomposed accents match each other, as do straight and curly apostrophes, and spaces and line
    breaks. Word boundaries are those of `is_inside_word`.
    """
    end = 0
    for span in _spellings(words, text):
        if span[0] >= end and not cuts_word(text, span):
            yield span
            end = span[1]


def _parts_of_words(words: str, text: str) -> Iterator[Span]:
    """Yield the spans of the occurrences of `words` in `text` that start or end inside a word."""
    return (span for span in _spellings(words, text) if cuts_word(text, span))


def _spellings(words: str, text: str) -> Iterator[Span]:
    """Yield the spans of all occurrences of words in a text, even inside longer words; the spans may overlap."""
    decomposed, places = _decomposed(text)
    spelled = [re.escape(part) for part in unicodedata.normalize("NFD", words).split()]
    pattern = re.compile(re.sub("['’]", "['’]", r"\s+".join(spelled)), re.IGNORECASE)
    first = 0
    while spelled and (occurrence := pattern.search(decomposed, first)):
        start, end = (places[place] for place in occurrence.span())
        if start is not None and end is not None:
            yield start, end
        first = occurrence.start() + 1


@lru_cache(maxsize=4)
def _decomposed(text: str) -> tuple[str, Sequence[int | None]]:
    """Return the NFD form (canonical decomposition) of a text, and offsets in the given text.

    There is one offset for each code point of the NFD form and one for its end. If decomposition gives a character
    several code points, only the first of them has an offset; the others have None.
    """
    if unicodedata.is_normalized("NFD", text):
        return text, range(len(text) + 1)
    parts: list[str] = []
    places: list[int | None] = []
    letters = [place for place, character in enumerate(text) if not unicodedata.combining(character)]
    for start, end in pairwise([0, *(place for place in letters if place), len(text)]):
        part = unicodedata.normalize("NFD", text[start:end])
        parts.append(part)
        places += [start, *[None] * (len(part) - 1)]
    return "".join(parts), [*places, len(text)]
