from __future__ import annotations

from collections import Counter

from anaphora.data.tokens.tokenizer import Tokenizer
from anaphora.data.tokens.vocabulary import DroppingTokenizer, word_vocabulary

WORDS = [f"{first}{second}" for first in ("bak", "far", "min", "sing", "teach") for second in ("er", "ing", "s", "t")]
TEXTS = [f"the {word} 在公园" for word in WORDS] * 30


def tokens_of(text: str, tokenizer: Tokenizer) -> list[str]:
    return [tokenizer.token(number) for number in tokenizer.encode(text).ids[1:]]


def test_rarer_words_are_cut_now_and_then_and_frequent_ones_never() -> None:
    tokenizer = word_vocabulary([*TEXTS, *["the"] * 600], ["公园"], only_seen=True)
    dropping = DroppingTokenizer(tokenizer, 0.25, seed=0)
    cut = 0
    for text, tokens in zip(TEXTS, dropping.encode_batch(TEXTS), strict=True):
        pieces = [text[start:end] for start, end in tokens.spans[1:]]
        assert pieces[0] == "the"
        assert "".join(pieces) == text.replace(" ", "")  # no character is lost, and none becomes [UNK]
        assert [tokenizer.token(number) for number in tokens.ids[1:]] == pieces
        cut += text.split()[1] not in pieces
    assert 0.15 < cut / len(TEXTS) < 0.35
    assert dropping.size == tokenizer.size


def test_special_tokens_are_no_part_of_the_words_that_stay_whole() -> None:
    texts = [f"she saw the {word}" for word in WORDS] * 30
    tokenizer = word_vocabulary(texts, only_seen=True)
    read = DroppingTokenizer(tokenizer, 1.0, seed=0).encode_batch(texts)
    whole = Counter(
        text[start:end] for text, tokens in zip(texts, read, strict=True) for start, end in tokens.spans[1:]
    )
    assert whole["she"] == whole["saw"] == whole["the"] == len(texts)  # they are three quarters of the words
    assert not whole.keys() & set(WORDS)


def test_the_same_seed_cuts_the_same_words() -> None:
    tokenizer = word_vocabulary(TEXTS)
    one, same, other = (DroppingTokenizer(tokenizer, 0.25, seed).encode_batch(TEXTS) for seed in (3, 3, 4))
    assert one == same != other


def test_a_known_word_without_a_training_text_is_read_in_pieces_where_only_seen_ones_stay() -> None:
    known = ["nurse", "公园", "学校"]
    every, seen = (word_vocabulary([*TEXTS, "un nus 学 校"], known, only_seen=only_seen) for only_seen in (False, True))
    assert tokens_of("nurse 公园 学校", every) == ["nurse", "公园", "学校"]
    assert tokens_of("nurse 公园 学校", seen) == ["n", "u", "r", "s", "e", "公园", "学", "校"]
