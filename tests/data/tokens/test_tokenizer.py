from __future__ import annotations

import pickle
import re
import unicodedata
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as draw
from tokenizers import Tokenizer as Backend

from anaphora.base.errors import UserError
from anaphora.data.tokens.tokenizer import Tokenizer
from anaphora.data.tokens.vocabulary import bpe_vocabulary, character_vocabulary, word_vocabulary, wordpiece_vocabulary
from anaphora.settings.vocabulary import CLS, MASK, SPECIAL_TOKENS, UNKNOWN

TEXTS = [
    "Anna saw the king's son because she was late.",
    "The mother-in-law saw Anna; 12 cats ran.",
    "王芳碰到李强以后,她去了公园。",
    "公园里的小明看见王芳。",
]
WORDS = ("王芳", "李强", "公园", "碰到", "以后", "小明")
TOKENIZER = word_vocabulary(TEXTS, WORDS, min_count=1)
VOCABULARIES = {
    "word": TOKENIZER,
    "character": character_vocabulary(TEXTS, min_count=1),
    "wordpiece": wordpiece_vocabulary(TEXTS, 60),
    "bpe": bpe_vocabulary(TEXTS, 60),
}
MIXED = draw.lists(
    draw.one_of(
        draw.text(max_size=6),
        draw.sampled_from(
            ["Anna", "KING'S", "王芳", "公园", "ABC", "，", "é", "e\u0301", "한", "👩‍👩‍👧", "🇨🇳", "İ", "ß", "ﬁ", "١٢"]
        ),
        draw.sampled_from([" ", "\t", "\n", "\u3000", "\u200b", "_", "-", "’"]),
    ),
    max_size=8,
).map("".join)


def pieces_of(text: str) -> list[str]:
    return [text[start:end] for start, end in TOKENIZER.encode(text).spans[1:]]


def test_a_tokenizer_can_be_copied_to_another_process() -> None:
    copied = pickle.loads(pickle.dumps(TOKENIZER))
    assert [copied.encode(text) for text in TEXTS] == [TOKENIZER.encode(text) for text in TEXTS]


@settings(max_examples=300, deadline=None)
@given(MIXED)
@example("e\u0301 she İ. 👩‍👩‍👧王芳ABC，ﬁ")
@example("")
def test_spans_rise_lie_inside_the_text_and_cut_it(text: str) -> None:
    tokens = TOKENIZER.encode(text)
    assert (tokens.ids[0], tokens.spans[0], tokens.words[0]) == (CLS, (0, 0), -1)
    assert len(tokens.ids) == len(tokens.spans) == len(tokens.words)
    # Of a character such as İ lower case makes two, which may stand in two tokens.
    grows = any(len(unicodedata.normalize("NFC", character).lower()) > 1 for character in text)
    before = (0, 0)
    for start, end in tokens.spans[1:]:
        if (start, end) == (0, 0):
            continue  # a control character that counts as a blank, U+001F
        assert 0 <= start < end <= len(text)
        assert start >= (before[0] if grows else before[1])
        assert end >= before[1]
        before = (start, end)


PLAIN = draw.lists(
    draw.sampled_from(
        ["Anna", "KING'S", "王芳", "公园", "龘", "qx-Z9", "，", "。", ".", "@", " ", "  ", "'", "12a", "[MASK]", "ﬁ"]
    ),
    max_size=9,
).map("".join)


@pytest.mark.parametrize("kind", ["word", "character", "wordpiece", "bpe"])
@settings(max_examples=200, deadline=None)
@given(PLAIN)
@example("Anna saw 王芳碰到, the qq-son's 3rd.")
def test_plain_texts_have_the_same_tokens_without_their_short_cut(kind: str, text: str) -> None:
    tokenizer = VOCABULARIES[kind]
    assert tokenizer._keeps_segments
    quick, slow = (Tokenizer(Backend.from_str(tokenizer.dumps()), keeps_segments=False) for _ in range(2))
    assert quick._splits_into_words
    slow._splits_into_words = False
    assert tokenizer.encode(text) == quick.encode(text) == slow.encode(text)


@settings(max_examples=300, deadline=None)
@given(MIXED)
@example("e\u0301 she İ. 👩‍👩‍👧王芳ABC，ﬁ")
def test_every_visible_character_is_in_a_token(text: str) -> None:
    covered = {place for start, end in TOKENIZER.encode(text).spans for place in range(start, end)}
    for place, character in enumerate(text):
        if re.fullmatch(r"\w|[^\w\s]", character) and not unicodedata.category(character).startswith(("M", "C", "Z")):
            assert place in covered, (place, character)


@settings(max_examples=300, deadline=None)
@given(MIXED)
def test_word_numbers_rise_by_at_most_one_and_begin_at_zero(text: str) -> None:
    numbers = [number for number in TOKENIZER.encode(text).words if number >= 0]
    assert all(second - first in (0, 1) for first, second in pairwise(numbers))
    assert numbers[:1] in ([], [0])


def test_known_chinese_words_stay_whole() -> None:
    assert pieces_of("王芳碰到李强以后,她去了公园。") == [
        "王芳",
        "碰到",
        "李强",
        "以后",
        ",",
        "她",
        "去",
        "了",
        "公园",
        "。",
    ]


def test_the_fewest_known_words_win() -> None:
    tokenizer = word_vocabulary(["ab abc cd d"], min_count=1)
    assert [tokenizer.token(number) for number in tokenizer.encode("abcd").ids[1:]] == ["abc", "d"] or [
        tokenizer.token(number) for number in tokenizer.encode("abcd").ids[1:]
    ] == ["ab", "cd"]
    assert len(tokenizer.encode("abcdabc").ids) == 4


def test_a_known_english_word_is_one_token_and_case_does_not_matter() -> None:
    assert pieces_of("KING'S mother-in-law") == ["KING'S", "mother-in-law"]
    assert TOKENIZER.encode("ANNA").ids == TOKENIZER.encode("anna").ids


def test_pieces_of_an_unknown_word_share_its_number() -> None:
    tokens = TOKENIZER.encode("Annas cats")
    assert len(tokens.ids) > 3
    assert tokens.words[-1] == 1


def test_what_stays_unknown_is_one_unknown_token() -> None:
    tokens = TOKENIZER.encode("she 龘龘 she")
    assert tokens.ids.count(UNKNOWN) >= 1
    assert "".join(pieces_of("she 龘龘 she")) == "she龘龘she"


def test_rare_words_are_cut_where_min_count_says_so() -> None:
    texts = ["zebra cat cat", "cat zeal"]
    assert len(word_vocabulary(texts, min_count=1).encode("zebra").ids) == 2
    assert len(word_vocabulary(texts, min_count=2).encode("zebra").ids) > 2
    assert len(word_vocabulary(texts, min_count=2).encode("cat").ids) == 2


def test_the_vocabulary_begins_with_the_special_tokens_and_text_can_write_one_alone() -> None:
    assert [TOKENIZER.token(number) for number in range(len(SPECIAL_TOKENS))] == list(SPECIAL_TOKENS)
    assert not set(TOKENIZER.encode("[UNKNOWN] [CLS] [PAD] [NONE]").ids[1:]) & {0, 2, 3, 4}


def test_a_mask_that_a_text_writes_is_one_token() -> None:
    tokens = TOKENIZER.encode("Anna saw [MASK] and 王芳[MASK]")
    assert tokens.ids.count(MASK) == 2
    assert pieces_of("Anna saw [MASK].") == ["Anna", "saw", "[MASK]", "."]


def test_training_does_not_depend_on_the_order_of_the_texts() -> None:
    assert word_vocabulary(TEXTS[::-1], WORDS[::-1], min_count=1).dumps() == TOKENIZER.dumps()


@settings(max_examples=50, deadline=None)
@given(draw.lists(MIXED, max_size=3))
def test_a_stored_tokenizer_reads_the_same(texts: list[str]) -> None:
    path = Path(STORED)
    if not path.exists():
        path.write_text(TOKENIZER.dumps(), encoding="utf-8")
    assert Tokenizer.load(path).encode_batch(texts) == TOKENIZER.encode_batch(texts)


@pytest.fixture(autouse=True, scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> None:
    global STORED
    STORED = str(tmp_path_factory.mktemp("tokenizer") / "tokenizer.json")


STORED = ""


def test_a_missing_broken_or_foreign_file_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    with pytest.raises(UserError, match="there is no tokenizer here"):
        Tokenizer.load(path)
    path.write_text(TOKENIZER.dumps()[:500], encoding="utf-8")
    with pytest.raises(UserError, match="not a readable tokenizer"):
        Tokenizer.load(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="not a readable tokenizer"):
        Tokenizer.load(path)
    path.write_text(TOKENIZER.dumps().replace("[CLS]", "[BOS]"), encoding="utf-8")
    with pytest.raises(UserError, match=r"must begin with \[PAD\] \[UNK\] \[CLS\]"):
        Tokenizer.load(path)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"id":"[CLS]","ids":[2]', '"id":"[CLS]","ids":[99999]'),
        ('"id":"[CLS]","ids":[2]', '"id":"[CLS]","ids":[]'),
        ('"special_tokens":{"[CLS]"', '"special_tokens":{"[BOS]"'),  # the backend panics
        (',{"Sequence":{"id":"A","type_id":0}}', ""),
    ],
)
def test_a_file_that_tokenizes_no_text_is_reported(before: str, after: str, tmp_path: Path) -> None:
    path, content = tmp_path / "tokenizer.json", TOKENIZER.dumps()
    assert before in content
    path.write_text(content.replace(before, after, 1), encoding="utf-8")
    with pytest.raises(UserError, match="not a readable tokenizer"):
        Tokenizer.load(path)


def test_covering_names_the_tokens_that_share_a_character() -> None:
    tokens = TOKENIZER.encode("Anna saw the king's son")
    assert tokens.covering((0, 4)) == [1]
    assert tokens.covering((3, 6)) == [1, 2]
    assert tokens.covering((4, 5)) == []
