"""Reader of Mandarinograd (Bernard and Han 2020): Chinese Winograd schemas, segmented, without character offsets.

The file is a tab-separated table with the Mandarin columns of the Parallel Winograd Schemata: orig_id (shared by the
two rows of a schema), sentence_man (words separated by spaces), snippet_man (the question), answer1_man, answer2_man
and correct_answer_man. Words are joined without spaces, except between Latin words.

A row becomes an example if the sentence has exactly one overt third-person pronoun and contains both answers, as whole
words or at the end of a word, since the last part of a Chinese compound is its head (卡车 in 大卡车, never 老鼠 in
老鼠洞). Many other schemas have a zero pronoun or a paraphrased answer. A question with "where", or with "what" if the
pronoun refers to a person, is not about the pronoun, and its row is dropped.
"""

from __future__ import annotations

from anaphora.base.translation import N_
from anaphora.data.corpora.division import Origin, ReadingReport, existing_path, non_overlapping
from anaphora.data.corpora.reading import DroppedRowError, Row, check_words, example_of, read_examples, tab_separated
from anaphora.data.example import Example, Span
from anaphora.settings.data import Mandarinograd

ORIGIN = Origin(files="the table with the Mandarin columns of PWS", licence="CC BY-SA 4.0 (PWS)")

_COLUMNS = ("orig_id", "sentence_man", "snippet_man", "answer1_man", "answer2_man", "correct_answer_man")
_PERSONS = ("他", "她", "他们", "她们")
_PRONOUNS = (*_PERSONS, "它", "它们")
_WHERE, _WHAT = ("哪里", "哪儿"), "什么"


def read(settings: Mandarinograd) -> tuple[dict[str, list[Example]], ReadingReport]:
    """Return the examples by split and a report on dropped rows.

    The two rows of a schema share a group and are a minimal pair.
    """
    return read_examples(settings, _example, tab_separated(existing_path(settings.path, ORIGIN.files), _COLUMNS))


def _example(row: Row) -> Example:
    check_words(row["sentence_man"])
    answers = [_answer(row["answer1_man"]), _answer(row["answer2_man"])]
    right = _answer(row["correct_answer_man"])
    if not all(answers):
        raise DroppedRowError(N_("an answer is empty"))
    if answers[0] == answers[1]:
        raise DroppedRowError(N_("two candidates are the same"))
    if right not in answers:
        raise DroppedRowError(N_("the right answer is neither of the two"))
    words = row["sentence_man"].split()
    text, spans = _joined(words)
    pronouns = [place for place, word in enumerate(words) if word in _PRONOUNS]
    if len(pronouns) != 1:
        raise DroppedRowError(
            N_("no overt pronoun") if not pronouns else N_("several overt pronouns, none of them marked")
        )
    pronoun, question = spans[pronouns[0]], row["snippet_man"]
    if any(word in question for word in _WHERE) or (_WHAT in question and words[pronouns[0]] in _PERSONS):
        raise DroppedRowError(N_("its question is not about the pronoun"))
    if "[" in text:
        raise DroppedRowError(N_("the sentence still holds the other ending"))
    mentions_of: dict[int, list[Span]] = {}
    taken = [pronoun]
    for index in sorted((0, 1), key=lambda index: -len(answers[index])):
        mentions_of[index] = non_overlapping(_occurrences(answers[index], words, spans), taken)
        if not mentions_of[index]:
            raise DroppedRowError(N_("a candidate is not in the sentence"))
        taken += mentions_of[index]
    mentions = (tuple(mentions_of[0]), tuple(mentions_of[1]))
    schema = f"mandarinograd/{row['orig_id']}"
    right_one = (answers.index(right),)
    return example_of(
        "mandarinograd", text, pronoun, mentions, right_one, language="zh", group=schema, minimal_pair=schema
    )


def _answer(written: str) -> list[str]:
    """Return the words of an answer, without a final 的 unless it is the only word."""
    words = written.split()
    return words[:-1] if len(words) > 1 and words[-1] == "的" else words


def _joined(words: list[str]) -> tuple[str, list[Span]]:
    """Join words without spaces, except between ASCII letters or digits; return the sentence and each word's span."""
    text, spans = "", []
    for word in words:
        if text and text[-1].isascii() and text[-1].isalnum() and word[0].isascii() and word[0].isalnum():
            text += " "
        spans.append((len(text), len(text) + len(word)))
        text += word
    return text, spans


def _occurrences(wanted: list[str], words: list[str], spans: list[Span]) -> list[Span]:
    """Return the spans in which a sentence contains the wanted words, one after the other.

    The first wanted word may also be the end of a longer Chinese word.
    """
    length, occurrences = len(wanted), []
    for place in range(len(words) - length + 1):
        whole = words[place] == wanted[0]
        ends = whole or (words[place].endswith(wanted[0]) and not wanted[0].isascii())
        if ends and words[place + 1 : place + length] == wanted[1:]:
            occurrences.append((spans[place][1] - len(wanted[0]), spans[place + length - 1][1]))
    return occurrences
