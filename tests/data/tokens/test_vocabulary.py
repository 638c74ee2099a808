from __future__ import annotations

import json
import subprocess
import sys
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as draw

from anaphora.base.errors import UserError
from anaphora.data.text import UNKNOWN_WORD
from anaphora.data.tokens.tokenizer import TokenizedText, Tokenizer, independent_segments
from anaphora.data.tokens.words import word_numbers
from anaphora.settings.vocabulary import (
    CLS,
    MASK,
    SPECIAL_TOKENS,
    UNKNOWN,
    Bpe,
    CharacterVocabulary,
    Vocabulary,
    WordPiece,
    WordVocabulary,
)

ENGLISH = ["Anna saw the king's son because she was late.", "The mother-in-law saw Anna; 12 cats ran, and cats ran."]
CHINESE = ["王芳碰到李强以后,她去了公园。", "公园里的小明看见王芳。公园里的小明去了公园。"]
MIXED_TEXTS = [*ENGLISH, *CHINESE, "Ａnna 看见 é 和 e\u0301。", "Emoji 👩‍👩‍👧 and 🇨🇳 stand here."]
KINDS: list[Vocabulary] = [
    WordVocabulary(min_count=1),
    CharacterVocabulary(min_count=1),
    WordPiece(size=120),
    Bpe(size=120),
]
BUILT = {one.kind: one.build(MIXED_TEXTS) for one in KINDS}
every_kind = pytest.mark.parametrize("kind", BUILT)
ANY = draw.lists(
    draw.one_of(
        draw.text(max_size=6),
        draw.sampled_from(
            [
                "Anna",
                "KING'S",
                "王芳",
                "公园",
                "ABC",
                "，",
                "é",
                "e\u0301",
                "한",
                "👩‍👩‍👧",
                "🇨🇳",
                "İ",
                "ß",
                "ﬁ",
                "١٢",
                "[MASK]",
                "ｋ",
                "豈",
                "か\u3099",
            ]
        ),
        draw.sampled_from([" ", "\t", "\n", "\u3000", "\u200b", "\x1c", "_", "-", "’"]),
    ),
    max_size=8,
).map("".join)


def normal(text: str) -> str:
    """Return a text in NFC and lower case, character by character, as in the vocabulary."""
    return "".join(character.lower() for character in unicodedata.normalize("NFC", text))


def tokens_of(text: str, tokenizer: Tokenizer) -> list[str]:
    return [tokenizer.token(number) for number in tokenizer.encode(text).ids[1:]]


@every_kind
@settings(max_examples=100, deadline=None)
@given(ANY)
@example("e\u0301 she İ. 👩‍👩‍👧王芳ABC，ﬁ Ａｎｎａ")
@example("")
@example("[MASK]王芳[MASK] [mask]Anna[MASK]")
def test_spans_are_where_the_tokens_stand_in_code_points(kind: str, text: str) -> None:
    tokenizer = BUILT[kind]
    tokens = tokenizer.encode(text)
    assert (tokens.ids[0], tokens.spans[0], tokens.words[0]) == (CLS, (0, 0), -1)
    assert len(tokens.ids) == len(tokens.spans) == len(tokens.words)
    # Of a character such as İ lower case makes two, which may stand in two tokens of one span.
    grows = any(len(normal(character)) > 1 for character in text)
    before = (0, 0)
    for number, (start, end), word in zip(tokens.ids, tokens.spans, tokens.words, strict=True):
        if word < 0:  # [CLS], or a mark that counts as a blank
            assert (start, end) == (0, 0)
            continue
        assert 0 <= start < end <= len(text)
        assert start >= (before[0] if grows else before[1])
        assert end >= before[1]
        if number == MASK:  # the one special token that a text may write; no letter of it is changed
            assert text[start:end] == SPECIAL_TOKENS[MASK]
        elif number != UNKNOWN and not grows:
            token = tokenizer.token(number)
            assert normal(text[start:end]) == (token.removeprefix("##") if kind == "wordpiece" else token)
        before = (start, end)


def textual(tokens: TokenizedText) -> list[int]:
    return [number for number, word in zip(tokens.ids, tokens.words, strict=True) if word >= 0]


@every_kind
@settings(max_examples=100, deadline=None)
@given(ANY)
def test_word_numbers_rise_by_at_most_one_and_begin_at_zero(kind: str, text: str) -> None:
    numbers = [number for number in BUILT[kind].encode(text).words if number >= 0]
    assert all(second - first in (0, 1) for first, second in pairwise(numbers))
    assert numbers[:1] in ([], [0])


@every_kind
@settings(max_examples=100, deadline=None)
@given(ANY)
@example("a\u00a0b\u3000王芳 \u0301")
def test_a_text_cut_by_its_stretches_is_the_text_cut_whole(kind: str, text: str) -> None:
    tokenizer = BUILT[kind]
    parts, whole = tokenizer.encode_batch(independent_segments(text)), tokenizer.encode(text)
    assert [number for part in parts for number in textual(part)] == textual(whole)
    assert sum(len(set(part.words) - {-1}) for part in parts) == len(set(whole.words) - {-1})


@every_kind
def test_the_pieces_of_a_word_share_its_number_and_chinese_tokens_stand_alone(kind: str) -> None:
    for text in [*MIXED_TEXTS, "Zoë's ex-wife, 3 dogs", "公园ABC的Anna"]:
        tokens = BUILT[kind].encode(text)
        assert word_numbers(text, tokens.spans) == tokens.words


def test_characters_are_single_and_rare_ones_unknown() -> None:
    tokenizer = CharacterVocabulary(min_count=2).build(["aab 公公 c"])
    assert tokens_of("ab公c", tokenizer) == ["a", "[UNK]", "公", "[UNK]"]
    assert tokenizer.encode("aab 公公").words == (-1, 0, 0, 0, 1, 2)


@pytest.mark.parametrize("kind", ["wordpiece", "bpe"])
@pytest.mark.parametrize("texts", [ENGLISH, CHINESE, MIXED_TEXTS], ids=["en", "zh", "both"])
def test_a_vocabulary_is_no_larger_than_asked_for(kind: str, texts: list[str]) -> None:
    for size in (24, 60):
        chosen = WordPiece(size=size) if kind == "wordpiece" else Bpe(size=size)
        tokenizer = chosen.build(texts * 3)
        assert len(SPECIAL_TOKENS) < tokenizer.size <= size
    assert Bpe(size=1000).build(texts).size < 1000


@every_kind
def test_special_tokens_come_first_and_text_can_write_the_mask_alone(kind: str) -> None:
    tokenizer = BUILT[kind]
    assert [tokenizer.token(number) for number in range(len(SPECIAL_TOKENS))] == list(SPECIAL_TOKENS)
    assert not set(tokenizer.encode("[CLS] [PAD] [NONE]").ids[1:]) & {0, 2, 3, 4}
    assert tokenizer.encode("[MASK]").ids[1:] == (MASK,)


@every_kind
def test_a_word_that_the_source_does_not_tell_is_unknown(kind: str) -> None:
    chosen = next(one for one in KINDS if one.kind == kind)
    tokenizer = chosen.build([f"the {UNKNOWN_WORD} cat {UNKNOWN_WORD}"] * 9)
    ids = tokenizer.encode(f"the {UNKNOWN_WORD} cat").ids[1:]
    assert ids.count(UNKNOWN) == 1
    assert tokenizer.encode("the cat").ids.count(UNKNOWN) == 0


def test_word_pieces_are_marked_inside_a_word_and_chinese_characters_stand_alone() -> None:
    tokenizer = WordPiece(size=60).build(["walk walked walking talked talking"] * 5 + ["公园"] * 50)
    assert "".join(token.removeprefix("##") for token in tokens_of("walked", tokenizer)) == "walked"
    assert all(token.startswith("##") for token in tokens_of("talking", tokenizer)[1:])
    assert tokens_of("公园", tokenizer) == ["公", "园"]


@pytest.mark.parametrize(("kind", "size"), [(WordPiece, 60), (Bpe, 40)])
def test_less_coverage_gives_the_places_of_rare_characters_to_words(kind: type[WordPiece | Bpe], size: int) -> None:
    rare = {chr(ord("一") + number) for number in range(20)}
    words = {"elephant", "umbrella", "walking"}

    def known(coverage: float) -> set[str]:
        tokenizer = kind(size=size, coverage=coverage).build([" ".join(sorted(words))] * 200 + sorted(rare))
        return {tokenizer.token(number) for number in range(tokenizer.size)}

    assert known(1.0) & rare and words - known(1.0)
    assert not known(0.99) & rare and not words - known(0.99)


def test_byte_pairs_merge_chinese_characters_into_words() -> None:
    tokenizer = Bpe(size=60).build(["她在公园。", "公园里", "去公园"])
    assert tokens_of("在公园里", tokenizer) == ["在", "公园", "里"]
    assert tokenizer.encode("在公园里").words == (-1, 0, 1, 2)


@every_kind
def test_neither_order_nor_process_change_a_vocabulary(kind: str) -> None:
    chosen = next(one for one in KINDS if one.kind == kind)
    assert chosen.build(MIXED_TEXTS[::-1]).dumps() == BUILT[kind].dumps()
    if kind == "wordpiece":  # its library orders by a hash table, another one in each process
        code = (
            "import sys, json;"
            "from anaphora.settings.vocabulary import WordPiece;"
            "sys.stdout.write(WordPiece(size=120).build(json.loads(sys.argv[1])).dumps())"
        )
        process = subprocess.run(
            [sys.executable, "-c", code, json.dumps(MIXED_TEXTS)],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONPATH": ":".join(sys.path)},
        )
        assert process.stdout == BUILT[kind].dumps()


def test_an_unknown_kind_is_reported() -> None:
    with pytest.raises(UserError, match=r"vocabulary.kind \('other'\)"):
        Vocabulary(kind="other").build([])
